"""Where the demo is shown: panels that update on a terminal, a line for each micro-batch in a pipe."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.live import Live

from skewless.demo.lines import NAMES, line, panel
from skewless.demo.measured import Run


@dataclass(frozen=True)
class Screen:
    """A console, and whether what it shows may update in place."""

    console: Console
    updating: bool

    @classmethod
    def of_stdout(cls) -> Screen:
        """A screen on stdout; plain text without control codes if stdout is not a terminal or NO_COLOR is set."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show blocks is no reason to fail
        terminal = sys.stdout.isatty()
        if terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
            return cls(Console(), updating=True)
        return cls(Console(width=None if terminal else 100, color_system=None, force_terminal=False), updating=False)

    def say(self, text: RenderableType) -> None:
        """Show a text below what is already shown."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=isinstance(text, str))

    @contextmanager
    def shown(self, split: str) -> Iterator[Callable[[Run], None]]:
        """Show a run for as long as it lasts."""
        if not self.updating:
            self.say(f"{NAMES[split]}:")
            yield lambda run: self.say(f"  {line(run.batches[-1])}")
            return
        with Live(panel(Run(split)), console=self.console, auto_refresh=False) as live:
            yield lambda run: live.update(panel(run), refresh=True)
