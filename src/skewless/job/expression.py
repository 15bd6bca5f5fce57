"""Aggregates as text: `count`, `sum(price)`, `quantile(latency, 0.99)`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from skewless import aggregate
from skewless.aggregate import Measure
from skewless.core.errors import SkewlessError

Value: TypeAlias = str | float | bool
"""The value of an argument: the name of a column, a number, or true or false."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an aggregate: its name, what is given for it, in words, and whether it may be omitted."""

    name: str
    kind: str
    optional: bool


_COLUMN, _NUMBER, _WHOLE, _FLAG = "the name of a column", "a number", "a whole number", "true or false"
_KINDS = {"str": _COLUMN, "str | None": _COLUMN, "float | Sequence[float]": _NUMBER, "int": _WHOLE, "bool": _FLAG}


def _parameters(function: Callable[..., Measure]) -> tuple[Parameter, ...]:
    """What a function of `skewless.aggregate` takes, by its annotations."""
    known = inspect.signature(function).parameters.values()
    return tuple(Parameter(each.name, _KINDS[each.annotation], each.default is not each.empty) for each in known)


_NAMES = "count sum min max mean var std first last distinct quantile top collect"
FUNCTIONS = {name: _parameters(getattr(aggregate, name)) for name in _NAMES.split()}
"""The aggregates of `skewless.aggregate`, with their parameters."""

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"
    r"|(?P<word>[^\W\d]\w*)(?!\.)|(?P<mark>[(),=])|(?P<end>\Z))"
)


@dataclass(frozen=True)
class Call:
    """An aggregate with its arguments.

    Parameters
    ----------
    function
        The aggregate's name in `skewless.aggregate`.
    arguments
        The arguments by the names of their parameters; a parameter that is omitted has its default.
    """

    function: str
    arguments: Mapping[str, Value]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(value for value in self.arguments.values() if isinstance(value, str))

    def measure(self) -> Measure:
        """The aggregate itself; an argument out of its range is refused."""
        measure: Measure = getattr(aggregate, self.function)(**self.arguments)
        return measure


def parse(text: str) -> Call:
    """The aggregate that a text names; names with spaces or dots are in backquotes.

    Examples
    --------
    >>> parse("quantile(`response time`, 0.99)")
    Call(function='quantile', arguments={'column': 'response time', 'q': 0.99})
    >>> parse("summ(price)")
    Traceback (most recent call last):
        ...
    skewless.core.errors.SkewlessError: there is no aggregate summ; did you mean sum?
    """
    tokens = _tokens(text)
    kind, function = next(tokens)
    if kind != "word":
        raise SkewlessError(f"an aggregate starts with its name, such as sum(price), not with {function or 'nothing'}")
    if function not in FUNCTIONS:
        raise SkewlessError(f"there is no aggregate {function}; {nearest(function, FUNCTIONS)}")
    given: list[tuple[str | None, str, str]] = []
    kind, token = next(tokens)
    if token == "(":
        kind, token = next(tokens)
        while token != ")":
            name: str | None = None
            following = next(tokens)
            if kind == "word" and following[1] == "=":
                name, (kind, token), following = token, next(tokens), next(tokens)
            if kind in ("mark", "end") or following[1] not in (",", ")"):
                raise SkewlessError(f"{text} is not complete; write {usage(function)}")
            given.append((name, kind, token))
            kind, token = next(tokens) if following[1] == "," else following
        kind, token = next(tokens)
    if kind != "end":
        raise SkewlessError(f"nothing may follow the aggregate, but {token} does; write {usage(function)}")
    return Call(function, _bind(function, given))


def usage(function: str) -> str:
    """How to write an aggregate: `top(column[, k])`."""
    first, *others = FUNCTIONS[function]
    start = f"{function} or {function}({first.name}" if first.optional else f"{function}({first.name}"
    return start + "".join(f"[, {each.name}]" if each.optional else f", {each.name}" for each in others) + ")"


def nearest(name: str, known: Iterable[str]) -> str:
    """What to write in place of a name that is not known."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there is only {', '.join(names)}"


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """The tokens of a text, each with its kind; after the last one there are only ends."""
    at = 0
    while True:
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            raise SkewlessError(f"cannot read {text[at:].lstrip()}; write names with spaces or dots in `backquotes`")
        yield token.lastgroup, token[token.lastgroup]
        at = token.end()


def _bind(function: str, given: list[tuple[str | None, str, str]]) -> dict[str, Value]:
    parameters = {each.name: each for each in FUNCTIONS[function]}
    arguments: dict[str, Value] = {}
    for place, (name, kind, token) in enumerate(given):
        if name is None and place >= len(parameters):
            raise SkewlessError(f"{function} takes no argument {token} there; write {usage(function)}")
        name = name or list(parameters)[place]
        if name not in parameters or name in arguments:
            what = "twice" if name in arguments else "which it does not take"
            raise SkewlessError(f"{function} is given {name}, {what}; write {usage(function)}")
        value = _value(parameters[name], kind, token)
        if value is None:
            raise SkewlessError(f"{name} of {function} is {parameters[name].kind}, not {token}")
        arguments[name] = value
    for each in parameters.values():
        if not each.optional and each.name not in arguments:
            raise SkewlessError(f"{function} needs {each.name}; write {usage(function)}")
    return arguments


def _value(parameter: Parameter, kind: str, token: str) -> Value | None:
    """The value of a token, or None if the parameter does not take it."""
    if parameter.kind == _COLUMN:
        return token[1:-1].replace("``", "`") if kind == "quoted" else token if kind == "word" else None
    if parameter.kind == _FLAG:
        return {"true": True, "false": False}.get(token.lower())
    if kind != "number":
        return None
    if parameter.kind == _WHOLE:
        return int(token) if token.lstrip("+-").isdecimal() else None
    return float(token)
