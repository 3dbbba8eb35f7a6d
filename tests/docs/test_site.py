"""The pages of the site: every page is in the navigation, and links lead to the site or to the repository."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_documentation import ROOT
from tools.site_pages import ROOT_PAGES, rewrite_links

REPOSITORY = "https://example.org/repo"


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert listed == pages | set(ROOT_PAGES.values())


@pytest.mark.parametrize(
    ("source", "place", "link", "expected"),
    [
        ("README.md", "index.md", "docs/how-to/graph.md#types", "how-to/graph.md#types"),
        ("README.md", "index.md", "CONTRIBUTING.md", "contributing.md"),
        ("docs/how-to/graph.md", "how-to/graph.md", "../../README.md#install", "../index.md#install"),
        ("docs/how-to/graph.md", "how-to/graph.md", "../reference/api.md", "../reference/api.md"),
        ("docs/how-to/graph.md", "how-to/graph.md", "offline.md", "offline.md"),
        ("docs/how-to/graph.md", "how-to/graph.md", "../../examples/a.py", f"{REPOSITORY}/blob/main/examples/a.py"),
        ("docs/how-to/graph.md", "how-to/graph.md", "#here", "#here"),
        ("docs/how-to/graph.md", "how-to/graph.md", "https://example.org/x.md", "https://example.org/x.md"),
    ],
)
def test_links_lead_to_the_site_or_to_the_repository(source: str, place: str, link: str, expected: str) -> None:
    assert rewrite_links(f"[a]({link})", source, place, REPOSITORY) == f"[a]({expected})"
