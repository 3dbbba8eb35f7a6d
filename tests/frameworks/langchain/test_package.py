"""What `import mem0_langchain` offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mem0_langchain


def test_every_public_name_is_there() -> None:
    for name in mem0_langchain.__all__:
        assert getattr(mem0_langchain, name).__name__ == name
        assert name in dir(mem0_langchain)
    with pytest.raises(AttributeError, match="no attribute 'Mem0'"):
        mem0_langchain.Mem0  # noqa: B018


def test_a_retriever_needs_nothing_of_the_agents() -> None:
    code = "import sys; from mem0_langchain import Mem0Retriever; sys.exit('langchain.agents' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
