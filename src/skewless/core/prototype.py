"""Objects that others can be made like: with the options they were made with, and nothing that they learned since."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class Prototype:
    """Remembers what it was made with.

    >>> class Counter(Prototype):
    ...     def __init__(self, step: int = 1) -> None:
    ...         self.step, self.n = step, 0
    >>> one = Counter(step=2)
    >>> one.n = 7
    >>> one.again().n, one.again().step, one.again(step=5).step, one.was_given("step")
    (0, 2, 5, True)
    """

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Remember what was asked for."""
        made = super().__new__(cls)
        made._made_with = args, options
        return made

    def was_given(self, option: str) -> bool:
        """Whether an option was asked for, by its name or as the first."""
        args, options = self._made_with
        return option in options or (bool(args) and option == self._options()[0])

    def again(self, **options: Any) -> Self:
        """One like this that has learned nothing yet, with some options changed; those count by name."""
        args, made_with = self._made_with
        named = dict(zip(self._options(), args, strict=False))
        return type(self)(**{**named, **made_with, **options})

    @classmethod
    def _options(cls) -> list[str]:
        # The signature of the class would be that of __new__ in Python 3.10.
        return list(signature(cls.__init__).parameters)[1:]
