"""Windows from panes: partial states by pane and key, and running aggregates that cost a window its new panes."""

from skewless.panes.layout import Layout
from skewless.panes.owner import Owner
from skewless.panes.spec import WindowSpec

__all__ = ["Layout", "Owner", "WindowSpec"]
