"""What a user calls: keyed, windowed, watch, ordered, and the checks of their arguments."""
