"""Figures of the papers, made again: a module `<paper>/figure_<number>.py` each, outside the wheel.

`python -m experiments` makes them, as `make figures` does; `experiments.figure` says what a figure is.
"""
