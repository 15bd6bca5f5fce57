"""Where a worker keeps its state: named blobs."""

from __future__ import annotations

from abc import ABC, abstractmethod

from skewless.core.errors import SkewlessError


class Store(ABC):
    """Blobs by name."""

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether there is no blob at all."""

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """The blob, or None."""

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Write a blob, over one of the same name."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Delete the blob of that name, if there is one."""

    def need(self, name: str) -> bytes:
        """The blob, which must be there."""
        data = self.get(name)
        if data is None:
            raise SkewlessError(f"the state lacks {name!r}: the checkpoint is damaged; go on from an older copy")
        return data


class MemoryStore(Store):
    """Blobs in a dictionary."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    @property
    def empty(self) -> bool:
        """Whether there is no blob at all."""
        return not self.blobs

    def get(self, name: str) -> bytes | None:
        """The blob, or None."""
        return self.blobs.get(name)

    def put(self, name: str, data: bytes) -> None:
        """Write a blob."""
        self.blobs[name] = data

    def drop(self, name: str) -> None:
        """Delete a blob."""
        self.blobs.pop(name, None)
