"""The documentation site: every public name has an entry, every page is in the navigation, links lead somewhere."""

from __future__ import annotations

import importlib.util
import inspect
import os
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "skewless"
REPOSITORY = "https://github.com/skewless/skewless"
CONFIG = (ROOT / "mkdocs.yml").read_text()
RETURNED = {
    "skewless.api.keyed.KeyedStream",
    "skewless.api.ordered.Ordered",
    "skewless.api.watch.Watch",
    "skewless.api.windowed.KeyedWindows",
    "skewless.api.windowed.WindowedStream",
}
"""What the calls return: nobody makes one, and everybody has one."""
PUBLIC = {
    "skewless",
    "skewless.aggregate",
    "skewless.chop",
    "skewless.elastic",
    "skewless.job",
    "skewless.metrics",
    "skewless.operators.process",
    "skewless.place",
    "skewless.simulate",
    "skewless.simulate.dataflow",
    "skewless.sketch",
    "skewless.split",
    "skewless.workload",
}
"""The modules that say what of them is public."""


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LINKS = load("docs_links")
PAGES = {path: path for path in sorted(DOCS.rglob("*.md"))} | LINKS.ADDED
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def public_names() -> list[str]:
    """Every name that a module says is public."""
    modules = [import_module(name) for name in PUBLIC]
    names = {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    return sorted(names | RETURNED)


def entries() -> list[str]:
    """Everything that the pages of the reference have an entry for."""
    pages = sorted((DOCS / "reference").glob("*.md"))
    return [entry for page in pages for entry in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)]


def named(path: str) -> object:
    """What a path leads to; a function may have the name of its module."""
    module, _, name = path.rpartition(".")
    try:
        return pkgutil.resolve_name(f"{module}:{name}")
    except AttributeError:
        return import_module(path)


def shown() -> dict[str, object]:
    """What each entry is of, where it can be had."""
    learn = "SKEWLESS_LEARN" in os.environ
    return {entry: named(entry) for entry in entries() if learn or not entry.startswith("skewless.learn")}


def test_every_module_that_names_what_is_public_is_known_here() -> None:
    files = [path for path in SOURCE.rglob("*.py") if re.search("^__all__ = ", path.read_text(), re.MULTILINE)]
    names = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in files}
    assert {name.removesuffix(".__init__") for name in names} == PUBLIC


def test_every_public_name_has_its_entry_in_the_reference() -> None:
    there, found = set(entries()), {id(found) for found in shown().values()}
    names = public_names()
    assert len(names) > 200
    missing = [name for name in names if name not in there and id(named(name)) not in found]
    assert missing == [], "add '::: ' and the name to a page in docs/reference"


def test_every_member_of_a_public_class_is_on_a_page() -> None:
    """A page shows what a class defines itself: what it has from another class is shown where that has its entry."""
    found = list(shown().values())
    there = {id(each) for each in found}
    homes: dict[type, set[str]] = {}
    for each in found:
        for name in dir(each) if inspect.isclass(each) else ():
            home = next((base for base in each.__mro__ if name in vars(base)), None)
            if home is not None and home.__module__.startswith("skewless.") and not name.startswith("_"):
                homes.setdefault(home, set()).add(name)
    missing = {
        f"{home.__module__}.{home.__qualname__}": names for home, names in homes.items() if id(home) not in there
    }
    assert len(homes) > 100
    assert missing == {}, "add an entry for each of these classes"


def test_every_parameter_that_is_described_is_one() -> None:
    """Of another one `make docs` warns, and fails."""
    classes = [found for found in shown().values() if inspect.isclass(found)]
    members = [member for found in classes for _name, member in inspect.getmembers(found, inspect.isfunction)]
    wrong = {}
    for each in {*classes, *members, *(found for found in shown().values() if inspect.isfunction(found))}:
        section = re.search(
            r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n-{3,}|\Z)", inspect.cleandoc(each.__doc__ or ""), re.S | re.M
        )
        lines = re.findall(r"^(\S.*?)(?: : .*)?$", section[1], re.MULTILINE) if section else []
        described = {name.strip(" *") for line in lines for name in line.split(",")}
        made = each.__init__ if inspect.isclass(each) and inspect.isfunction(each.__init__) else each
        if described and described - inspect.signature(made).parameters.keys():
            wrong[each] = described
    assert wrong == {}


def test_every_entry_is_there_once() -> None:
    assert len(entries()) == len(set(entries()))


def test_every_entry_leads_somewhere() -> None:
    assert [entry for entry, found in shown().items() if not found.__doc__] == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = CONFIG[CONFIG.index("\nnav:") : CONFIG.index("\nhooks:")]
    listed = re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in PAGES.values())


@each_page
def test_every_link_leads_to_a_page_or_to_a_file_of_the_repository(page: Path) -> None:
    text = LINKS.for_the_site(page.read_text(), page, REPOSITORY)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
        if target.startswith(REPOSITORY):
            kind, branch, path = target.removeprefix(f"{REPOSITORY}/").split("/", 2)
            assert (kind, branch) == ("tree" if (ROOT / path).is_dir() else "blob", "main")
            assert (ROOT / path).exists(), target
        elif not target.startswith("https://"):
            found = (PAGES[page].parent / target).resolve()
            # The site has pictures and data as they are.
            assert found in PAGES.values() or (found.suffix in (".svg", ".json") and found.is_file()), target


def test_links_are_turned_outside_of_code_only() -> None:
    def turned(text: str, page: Path = DOCS / "results" / "split.md") -> str:
        return str(LINKS.for_the_site(text, page, "https://forge"))

    assert turned("[a](../../src/skewless/api/keyed.py)") == "[a](https://forge/blob/main/src/skewless/api/keyed.py)"
    assert turned("[a](../../src/skewless/api)") == "[a](https://forge/tree/main/src/skewless/api)"
    assert turned("[a](../../README.md#measured)") == "[a](https://forge/blob/main/README.md#measured)"
    assert turned("[a](../../CHANGELOG.md#050)") == "[a](../changelog.md#050)"
    assert turned("[a](../docs/windows.md)", ROOT / "examples" / "README.md") == "[a](../docs/windows.md)"
    assert turned("[a](docs/windows.md#late-rows)", ROOT / "CONTRIBUTING.md") == "[a](windows.md#late-rows)"
    for text in ("[a](../windows.md)", "[a](#here)", "[a](https://example.org/x)", "[a](../nowhere.py)"):
        assert turned(text) == text
    code = "```\n[a](../../src/skewless/cli.py)\n```"
    assert turned(code) == code
    assert turned("```python spark\nx\n```\n") == "```python\nx\n```\n"


@pytest.mark.parametrize(
    "loading",
    [
        '<script src="https://cdn.example/x.js">',
        "<link rel=stylesheet href=//fonts.example/x>",
        '<img src="http://x/y">',
    ],
)
def test_a_page_that_loads_from_another_host_is_refused(loading: str) -> None:
    assert LINKS._LOADED.search(f"<head>{loading}</head>")
    assert not LINKS._LOADED.search('<script src="assets/x.js"></script><a href="https://example.org">')


def test_what_contributing_names_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path in re.findall(r"`((?:src|tests|docs|examples|benchmarks|tools)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE))
    assert {"test", "fast", "lint", "docs"} <= commands <= targets


def test_addresses_agree() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert f'Homepage = "{REPOSITORY}"' in project
    assert f"repository: {REPOSITORY}\n" in CONFIG
    (site,) = re.findall(r"^site_url: (.*)$", CONFIG, re.MULTILINE)
    assert f'Documentation = "{site}"' in project


def test_checks_before_a_commit_fetch_nothing() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert set(re.findall(r"repo: (.*)", hooks)) == {"local"}
    entries = re.findall(r"entry: (.*)", hooks)
    assert entries == [f".venv/bin/{tool}" for tool in ("ruff check", "ruff format --check", "mypy", "lint-imports")]
