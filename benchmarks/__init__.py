"""The papers' experiments, one module each."""
