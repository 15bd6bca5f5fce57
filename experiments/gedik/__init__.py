"""Gedik's partitioning functions in the form of his paper, with the equations that measure them.

Reference
---------
Gedik. Partitioning functions for stateful data parallelism in stream processing. VLDB Journal 23(4), 2014.
"""
