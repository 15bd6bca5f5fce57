"""Windows from panes: partial states by pane and key, and running aggregates that cost a window its new panes."""

from skewless.core.windows import Windows
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.worker import Owner

__all__ = ["Layout", "Owner", "Windows"]
