"""Figures of Prompt: block plans of whole micro-batches against the ways that rivals divide them."""
