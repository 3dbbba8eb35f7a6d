"""Install the built wheels with pip in clean environments, and run the quickstart and README's first example in each.

    python tools/check_release.py dist

The wheels come from the given folder, everything else from the configured package index. A Python that is not on this
machine is skipped with the reason. Exit code 1 if a step fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MINORS = (11, 12, 13, 14)
REQUIREMENTS = ("mem0-core", "mem0-langchain")
REQUIREMENTS_ONCE = ("memory-conformance", "mem0-llamaindex")  # with the first Python only: the last is large
OFFLINE = ROOT / "tests" / "docs" / "offline"  # its sitecustomize.py refuses connections to other machines
TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
MAX_BASE_MB = 175
"""Half of what the first version of the base install took."""


def main() -> int:
    """Check the wheels with every Python that is here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="folder of the wheels")
    parser.add_argument("--only", nargs="*", type=int, default=MINORS, metavar="MINOR", help="minor versions of Python")
    options = parser.parse_args()
    failed: list[str] = []
    requirements: tuple[str, ...] = REQUIREMENTS + REQUIREMENTS_ONCE
    for minor in options.only:
        python = find_python(minor)
        if python is None:
            print(f"== Python 3.{minor}: skipped, no interpreter on this machine", flush=True)
            continue
        print(f"== Python 3.{minor}: {python}", flush=True)
        try:
            check_python(python, options.dist.resolve(), requirements)
            requirements = REQUIREMENTS
        except (subprocess.CalledProcessError, CheckError) as error:
            print(f"FAILED {error}\n{getattr(error, 'stderr', None) or ''}", flush=True)
            failed.append(f"3.{minor}")
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


class CheckError(Exception):
    """A step ran and gave another result than expected."""


def find_python(minor: int) -> Path | None:
    """Find an interpreter on the path or among those of pyenv; one that does not start is passed over."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    names = (f"python3.{minor}", f"python{minor}", "python3", "python")
    candidates = [Path(found) for name in names if (found := shutil.which(name))]
    candidates += sorted(root.glob(f"versions/3.{minor}.*/bin/python"))
    code = "import sys; sys.exit(sys.version_info[:2] != (3, int(sys.argv[1])))"
    for candidate in candidates:
        if subprocess.run([candidate, "-c", code, str(minor)], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def check_python(python: Path, dist: Path, requirements: tuple[str, ...]) -> None:
    """Install package after package into one new environment, and run the examples after the first."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        subprocess.run([python, "-m", "venv", f"{folder}/venv"], check=True)
        installed = Path(folder) / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        for requirement in requirements:
            install(installed, requirement, dist)
            if requirement == "mem0-core":
                run_examples(installed, home)
        module_names = ", ".join(name.replace("-", "_") for name in requirements)
        run([installed, "-c", f"import {module_names}"], home)


def install(python: Path, requirement: str, dist: Path) -> None:
    """Install by pip's own command, and check the environment."""
    with report(f"pip install {requirement}") as add:
        run([python, "-m", "pip", "install", "--quiet", "--find-links", str(dist), requirement])
        size = measure_megabytes(python)
        add(f"{size:.0f} MB installed")
    with report("pip check"):
        run([python, "-m", "pip", "check"])
    if requirement == "mem0-core" and size > MAX_BASE_MB:
        raise CheckError(f"the base install takes {size:.0f} MB, more than {MAX_BASE_MB}")


def run_examples(python: Path, home: Path) -> None:
    """Run README's first example and the quickstart, without network."""
    example, expected = read_first_example()
    with report("first example of the README"):
        if (printed := run([python, "-c", example], home)) != expected:
            raise CheckError(f"README's first example printed\n{printed}instead of\n{expected}")
    with report("quickstart"):
        run([python, str(ROOT / "examples" / "quickstart.py")], home)
    with report("mem0-core --version"):
        run([python, "-m", "mem0_core.cli", "--version"], home)


def read_first_example() -> tuple[str, str]:
    """Return the first Python block of the README, and the text block that follows it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)
    if match is None:
        raise CheckError("README.md has no Python block followed by its output")
    return match[1], match[2]


def measure_megabytes(python: Path) -> float:
    """Return the size of the environment's packages, without those that every new environment has."""
    code = "import sysconfig; print(sysconfig.get_path('platlib'))"
    folder = Path(run([python, "-c", code]).strip())
    files = [file for file in folder.rglob("*") if file.is_file()]
    tools = tuple(f"{name}{end}" for name in TOOLS for end in ("", "-"))
    ours = [file for file in files if not is_tool(file.relative_to(folder).parts[0], tools)]
    return sum(file.stat().st_size for file in ours) / 1e6


def is_tool(name: str, tools: tuple[str, ...]) -> bool:
    """Return True for a file or folder of a tool, by its name or the name of its metadata."""
    return name in tools or name.startswith(tuple(tool for tool in tools if tool.endswith("-")))


def run(command: list[str | Path], home: Path | None = None) -> str:
    """Run a command; with `home`, offline and with that empty home folder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "MEM0_", "XDG_"))}
    if home is not None:
        env |= {"PYTHONPATH": str(OFFLINE), "HOME": str(home), "USERPROFILE": str(home), "LOCALAPPDATA": str(home)}
    command = [*command]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=home, encoding="utf-8")
    return done.stdout


@contextmanager
def report(step: str) -> Iterator[Callable[[str], None]]:
    """Print the seconds of a step, and a remark that the step adds."""
    started = time.perf_counter()
    remarks: list[str] = []
    yield remarks.append
    print(f"   {time.perf_counter() - started:6.1f} s  {', '.join([step, *remarks])}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
