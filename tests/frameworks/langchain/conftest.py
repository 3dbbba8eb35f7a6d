from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mem0_core import Memory
from tests.support import open_memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory without a model: what is said is kept as it was said."""
    with open_memory(tmp_path) as opened:
        yield opened
