"""What skewless raises when it is asked for something it cannot do."""


class SkewlessError(ValueError):
    """Bad input: the message names the value and says what to do instead."""
