"""Rules of the whole workspace: imports have no side effects, and no file names a development machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("mem0_core", "mem0_langchain", "mem0_llamaindex")
HEAVY = {
    *("faiss", "onnx", "onnxruntime", "sentence_transformers", "tokenizers", "torch", "transformers"),
    *("huggingface_hub", "httpx", "neo4j", "openai", "requests"),
    *("langchain", "langchain_core", "langgraph", "llama_index"),
}

WATCHED_IMPORT = """
import importlib, json, sys, threading

ACTS = {
    *("socket.connect", "socket.bind", "socket.getaddrinfo", "os.mkdir", "subprocess.Popen"),
    *("_thread.start_new_thread", "_thread.start_joinable_thread"),
}
touched = []

def watch(event, args):
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if writes or event in ACTS:
        touched.append(f"{event} {args!r}")

sys.addaudithook(watch)
importlib.import_module(sys.argv[1])
watching, touched = touched, []
print(json.dumps({"touched": watching, "threads": threading.active_count(), "modules": sorted(sys.modules)}))
"""


def import_watched(package: str, home: Path) -> dict[str, Any]:
    result = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED_IMPORT, package],
        env=os.environ | {"HOME": str(home), "USERPROFILE": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


@pytest.mark.parametrize("package", PACKAGES)
def test_import_has_no_side_effects(package: str, tmp_path: Path) -> None:
    seen = import_watched(package, tmp_path)
    if package != "mem0_core":  # urllib3, a dependency of the frameworks, binds a socket once to detect IPv6
        seen["touched"] = [act for act in seen["touched"] if not act.startswith("socket.bind")]
    assert seen["touched"] == []
    assert seen["threads"] == 1
    assert list(tmp_path.iterdir()) == []


def test_core_imports_no_heavy_library(tmp_path: Path) -> None:
    modules = import_watched("mem0_core", tmp_path)["modules"]
    assert HEAVY & set(modules) == set()


def test_a_default_memory_writes_only_its_own_files_to_the_home_folder(tmp_path: Path) -> None:
    """Onnxruntime 1.29 and later writes a device id and sends telemetry unless disabled before its import."""
    quiet = ("CI", "ORT_DISABLE_TELEMETRY")  # these disable the telemetry too
    hidden = (*quiet, "XDG_CACHE_HOME", "XDG_DATA_HOME", "MEM0_CORE_HOME")
    theirs = tmp_path / ".mem0" / "history.db"  # the store of mem0
    theirs.parent.mkdir()
    theirs.write_bytes(b"of mem0")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    script = """if True:
        from mem0_core import Memory
        with Memory() as memory:
            memory.add("I live in Lisbon.", user_id="ana")
            assert memory.search("Where does she live?", user_id="ana")["results"]
    """
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=env | home, check=True)
    data = (".local/share", "Library/Application Support", "AppData/Local")
    ours = (*(tmp_path / folder / "mem0-core" for folder in data), tmp_path / ".cache" / "mem0-core")
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file for file in files if not any(file.is_relative_to(folder) for folder in ours)] == [theirs]
    assert theirs.read_bytes() == b"of mem0"
    assert any((folder / "memory.db").is_file() for folder in ours)


def test_no_file_names_a_registry_host_or_a_development_machine() -> None:
    # The brackets keep the pattern from finding itself.
    pattern = (
        r"//[a-z0-9.-]*(p[y]pi|pythonh[o]sted|npm[j]s|mav[e]n|deb[i]an)[a-z0-9.-]*(/|\"|$)"
        r"|(^|[^a-z0-9.])/(w[o]rk|[o]pt/(wheels|py)|r[o]ot)/"
    )
    git = ["git", "grep", "--untracked", "-nIE", pattern, "--", ".", ":!*.svg"]
    try:
        found = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not here")
    if found.returncode not in (0, 1):  # 1: no line found
        pytest.skip(f"not a checkout: {found.stderr.strip()}")
    assert found.stdout == ""


@pytest.mark.parametrize(("ci", "status"), [("true", pytest.ExitCode.TESTS_FAILED), ("", pytest.ExitCode.OK)])
def test_a_missing_server_fails_the_run_only_in_ci(ci: str, status: int, tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers = needs_server\npythonpath = {ROOT}")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.needs_server\n"
        "def test_served(): pytest.skip('no server at port 5432')\n"
        "def test_other(): pytest.skip('not on this system')\n"
    )
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "test_it.py"]
    result = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"CI": ci}, capture_output=True, text=True, check=False
    )
    assert result.returncode == status, result.stdout
    assert "no server at port 5432" in result.stdout


def test_the_top_of_the_core_and_each_folder_of_stores_hold_few_modules() -> None:
    core = ROOT / "packages/mem0-core/src/mem0_core"
    assert len([path for path in core.glob("*.py") if path.name != "__init__.py"]) <= 6
    folders = [core / "stores", *(path for path in (core / "stores").rglob("*") if path.is_dir())]
    crowded = {
        str(folder.relative_to(core)): count for folder in folders if (count := len(list(folder.glob("*.py")))) > 12
    }
    assert crowded == {}
