"""A placement that nothing changes, for rows that all come at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from skewless.control.location import Location
from skewless.place.placement import Placement


@dataclass(frozen=True)
class Still(Location):
    """No folder: the one placement travels with the plan."""

    fixed: Placement = field(kw_only=True)

    @classmethod
    def of(cls, placement: Placement) -> Still:
        """With this placement."""
        return cls("", "", fixed=placement)

    def placement(self, version: int) -> Placement:
        """The one there is."""
        return self.fixed
