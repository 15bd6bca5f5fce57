"""State of keys that does not merge: kept in slots by the worker that owns them, and moved with them."""

from skewless.operators.process.processor import Processor, Rows, SlotProcessor, State

__all__ = ["Processor", "Rows", "SlotProcessor", "State"]
