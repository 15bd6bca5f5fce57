"""Code for the figures of the papers, outside the wheel."""
