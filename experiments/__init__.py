"""Code and modules for the papers' figures, outside the wheel."""
