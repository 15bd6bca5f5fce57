"""Lets mkdocs build a site from pages whose links are written for the forge.

On the forge a link leads to any file of the repository. The site has the pages under `docs/`, and CHANGELOG.md and
CONTRIBUTING.md; links to all other files lead to the repository.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
ADDED = {ROOT / name: DOCS / name.lower() for name in ("CHANGELOG.md", "CONTRIBUTING.md")}
"""Pages of the site that are kept elsewhere, and where they would be if they were under `docs/`."""

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
_LOADED = re.compile(
    r"<(?:script|img|iframe|link\s[^>]*rel=\"?stylesheet\"?)[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>"
)


def for_the_site(markdown: str, source: Path, repository: str) -> str:
    """A page with links that work on the site.

    Parameters
    ----------
    markdown
        The text of the page.
    source
        The file that the text is from.
    repository
        The address of the repository's files, such as https://github.com/skewless/skewless.
    """
    parts = _FENCE.split(markdown)
    # Text and fences take turns. A fence of `python spark` is for the tests; the site knows `python`.
    parts[1::2] = [re.sub(r"^```python spark$", "```python", fence, flags=re.MULTILINE) for fence in parts[1::2]]
    parts[0::2] = [_LINK.sub(lambda link: _turned(link, source, repository), text) for text in parts[0::2]]
    return "".join(parts)


def _turned(link: re.Match[str], source: Path, repository: str) -> str:
    target = Path(os.path.normpath(source.parent / link["target"]))
    anchor = link["anchor"] or ""
    page = ADDED.get(target, target)
    if page.is_relative_to(DOCS):
        return f"]({os.path.relpath(page, ADDED.get(source, source).parent)}{anchor})"
    if not target.is_relative_to(ROOT) or not target.exists():
        return link[0]  # mkdocs says that it leads nowhere
    kind = "tree" if target.is_dir() else "blob"
    return f"]({repository}/{kind}/main/{target.relative_to(ROOT)}{anchor})"


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not under `docs/`."""
    from mkdocs.structure.files import File  # here, as the links are tested without mkdocs

    for source, page in ADDED.items():
        files.append(File.generated(config, page.name, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn the links of a page."""
    return for_the_site(markdown, Path(page.file.abs_src_path), config.extra["repository"])


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that would load something from another host."""
    loaded = _LOADED.search(output)
    if loaded:
        raise SystemExit(f"{page.file.src_uri} loads from another host: {loaded[0]}")
    return output
