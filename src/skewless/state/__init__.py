"""What all keepers of state share: keys as numbers, columns as bytes, and named blobs."""

from skewless.state.store import MemoryStore, Store

__all__ = ["MemoryStore", "Store"]
