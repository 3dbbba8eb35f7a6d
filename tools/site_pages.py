"""Hooks of MkDocs: add the pages of the repository's root to the site, and point links at what the site holds.

Links in the sources are those that work on a code host. On the site, a link to a page becomes a link within the site,
and a link to any other file becomes one to the repository. MkDocs is installed for the site alone, so its types are
not used here.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files at the root of the repository, and their places on the site."""

_LINK = re.compile(r"(\]\()(?!\w+:|#|/)([^)#\s]+)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the repository's root."""
    from mkdocs.structure.files import File  # type: ignore[import-not-found]

    for source, place in ROOT_PAGES.items():
        content = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page."""
    place = page.file.src_uri
    source = next((name for name, at in ROOT_PAGES.items() if at == place), f"docs/{place}")
    return rewrite_links(markdown, source, place, config.repo_url or "")


def rewrite_links(markdown: str, source: str, place: str, repository: str) -> str:
    """Return a text in which links are relative to the site.

    Args:
        source: path of the file in the repository.
        place: path of the page on the site.
        repository: address of the repository, for files that the site does not hold.
    """

    def rewrite(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        on_site = ROOT_PAGES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else "")
        if on_site:
            return match[1] + posixpath.relpath(on_site, posixpath.dirname(place) or ".")
        return f"{match[1]}{repository}/blob/main/{target}"

    return _LINK.sub(rewrite, markdown)
