"""Dalton's experiments.

Reference
---------
E. Zapridou, I. Mytilinis, A. Ailamaki: Dalton: learned partitioning for distributed data streams. PVLDB 2022.
"""
