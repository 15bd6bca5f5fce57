"""The policy of a running query as a small file that every micro-batch reads anew.

Spark lists a static file once and remembers its length, but reads its content in every micro-batch. So the file keeps
one length, padded with spaces, and is replaced whole: a micro-batch sees one version, and never a half of one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from skewless.control.folder import FORMAT, Folder
from skewless.core.policy import Policy

LENGTH = 1 << 18  # bytes


@dataclass(frozen=True)
class PolicyFile(Folder):
    """Writes policies where the executors of a running query find the newest.

    Parameters
    ----------
    length
        The length of the file in bytes. A policy that needs more is cut down to fewer lanes for each key.
    """

    length: int = LENGTH

    @property
    def name(self) -> str:
        """The file's name."""
        return f"policy-{self.stream}.json"

    @property
    def path(self) -> str:
        """The path of the file, for Spark."""
        return self.for_spark(self.name)

    def put(self, policy: Policy, query: str | None = None) -> None:
        """Make this the policy of every micro-batch of a query that starts from now on."""
        self.write(self.name, self._text(policy, query).ljust(self.length))

    def _text(self, policy: Policy, query: str | None) -> bytes:
        """A JSON object of all keys, with fewer lanes a key, and at last fewer keys, where they would not fit."""
        parts = np.split(policy.lanes, policy.offsets[1:-1]) if len(policy) else []
        rows = [(int(key), lanes.tolist()) for key, lanes in zip(policy.keys, parts, strict=True)]
        head = {"format": FORMAT, "stream": self.stream, "query": query, "version": policy.version}
        while True:
            keys = [{"key": key, "lanes": lanes} for key, lanes in rows]
            text = json.dumps({**head, "keys": keys}, separators=(",", ":")).encode()
            if len(text) <= self.length:
                return text
            if max(len(lanes) for _, lanes in rows) > 1:
                rows = [(key, lanes[::2]) for key, lanes in rows]
            else:
                rows = rows[: len(rows) // 2]
