"""What the README and the guides show is what happens, and what they name is there."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from skewless.core.errors import SkewlessError
from skewless.job import read

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*GUIDES, ROOT / "CHANGELOG.md"]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@each_page
def test_every_example_runs(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, page.name, "exec"), {})


def test_the_readmes_example_prints_what_it_says() -> None:
    readme = (ROOT / "README.md").read_text()
    code, printed = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", readme, re.DOTALL).groups()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue() == printed


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
        found = page.parent / target if target else page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made of their words."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [*GUIDES, *sorted((ROOT / "docs" / "results").glob("*.md"))], ids=lambda page: page.stem
)
def test_every_file_and_command_that_is_named_is_there(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"`((?:src|tests|docs|examples|benchmarks|experiments)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)(?:`| +#)", text, re.MULTILINE)) <= targets


def test_the_job_is_read_and_its_errors_are_those_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "job.md").read_text()
    (job,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    file = Path("job.toml")
    file.write_text(job)
    assert read(file).key.split == "auto"
    wrong = [
        ('"page"]', '"pgae"]'),
        ('split = "auto"', 'split = "daltno"'),
        ('slide = "10 seconds"', 'slide = "2 minutes"'),
        ('n = "count"', 'n = "cuont"'),
        ('checkpoint = "checkpoint/"\n', ""),
    ]
    said = []
    for right, mistake in wrong:
        file.write_text(job.replace(right, mistake))
        with pytest.raises(SkewlessError) as refused:
            read(file)
        said.append(f"skewless: {refused.value}")
    assert said == re.findall(r"^skewless: job\.toml:.*$", page, re.MULTILINE)
