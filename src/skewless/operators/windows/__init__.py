"""Functions of whole windows: rows wait with the workers that have their windows, and are then sliced."""
