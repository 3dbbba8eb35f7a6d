"""Check that every dependency has a wheel for each platform and Python that the packages support.

    python tools/check_wheels.py dist
    python tools/check_wheels.py dist --package "mem0-core[faiss,onnx]" --python 3.14 --platform "Windows x86-64"

uv resolves the packages of the given folder, each extra apart, against the configured index for other platforms than
this one: with their markers, and with wheels only. Nothing is installed. Exit code 1 if a wheel is missing that
`KNOWN_GAPS` does not name.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux arm64": "aarch64-manylinux_2_28",
    "macOS arm64": "aarch64-apple-darwin",
    "macOS x86-64": "x86_64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
}
"""The names that uv gives to platforms."""

MACOS_VERSION = "14.0"

KNOWN_GAPS: dict[tuple[str, str, str], str] = {
    ("mem0-core[gguf]", "*", "*"): "llama-cpp-python is published as source",
    ("mem0-core[ladybug]", "macOS arm64", "*"): "ladybug has no wheel for macOS 14",
    ("mem0-core[ladybug]", "macOS x86-64", "*"): "ladybug has no wheel for macOS 14",
    ("mem0-core[onnx]", "macOS x86-64", "3.14"): "onnxruntime has no wheel for Python 3.14 on Intel Macs",
    ("mem0-core[openvino]", "Linux arm64", "*"): "openvino-genai has no wheel for Linux arm64",
    ("mem0-core[openvino]", "macOS x86-64", "*"): "openvino-genai has no wheel for Intel Macs",
    ("mem0-core[sentence-transformers]", "macOS x86-64", "3.13"): "torch has no wheel for Python 3.13 on Intel Macs",
    ("mem0-core[sentence-transformers]", "macOS x86-64", "3.14"): "torch has no wheel for Python 3.14 on Intel Macs",
    ("mem0-core[transformers]", "macOS x86-64", "*"): "torch has no recent wheel for Intel Macs",
}
"""Reasons by package, platform and Python, with ``*`` for all of them. CONTRIBUTING.md lists them."""


class Target(NamedTuple):
    """A package to resolve for a platform and a version of Python."""

    package: str
    platform: str
    python: str


class Outcome(NamedTuple):
    """The number of packages that were found, or the reason why there are not all."""

    target: Target
    found: int
    problem: str

    @property
    def gap(self) -> str | None:
        """Return the reason of a known gap, None for an unknown one."""
        package, platform, python = self.target
        for key in ((package, platform, python), (package, platform, "*"), (package, "*", "*")):
            if key in KNOWN_GAPS:
                return KNOWN_GAPS[key]
        return None


def main() -> int:
    """Check all combinations, and print one line for each package and platform."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="folder of our wheels")
    parser.add_argument("--package", action="append", help="default: every package, and each of its extras")
    parser.add_argument("--python", action="append", choices=PYTHONS, help="default: all")
    parser.add_argument("--platform", action="append", choices=PLATFORMS, help="default: all")
    options = parser.parse_args()
    dist = options.dist.resolve()
    targets = [
        Target(package, platform, python)
        for package in options.package or list_packages(dist)
        for platform in options.platform or PLATFORMS
        for python in options.python or PYTHONS
    ]
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(2) as pool:
        for outcome in pool.map(lambda target: resolve(target, dist), targets):
            state = "ok" if not outcome.problem else "known gap" if outcome.gap is not None else "MISSING"
            counts[state] += 1
            package, platform, python = outcome.target
            told = f"{outcome.found} packages" if state == "ok" else outcome.gap or outcome.problem
            print(f"{package:34} {platform:15} {python:5} {state}: {told}", flush=True)
    print(f"{len(targets)} combinations: {', '.join(f'{count} {state}' for state, count in sorted(counts.items()))}")
    return 1 if counts["MISSING"] else 0


def list_packages(dist: Path) -> list[str]:
    """Return the packages of a folder of wheels, alone and with each of their extras."""
    found: list[str] = []
    for file in sorted(dist.glob("mem*_*.whl")):
        with zipfile.ZipFile(file) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = Parser().parsestr(wheel.read(name).decode())
        found.append(metadata["Name"])
        found += [f"{metadata['Name']}[{extra}]" for extra in metadata.get_all("Provides-Extra") or ()]
    return found


def resolve(target: Target, dist: Path) -> Outcome:
    """Let uv choose a wheel for each dependency; return their number, or the reason why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.in")
        requirements.write_text(f"{target.package}\n", encoding="utf-8")
        command = ["uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-config"]
        command += ["--only-binary", ":all:", "--find-links", str(dist), "--python-version", target.python]
        command += ["--python-platform", PLATFORMS[target.platform], str(requirements)]
        environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": MACOS_VERSION}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        return Outcome(target, 0, re.sub(r"\s+", " ", done.stderr).strip()[:400])
    return Outcome(target, len(done.stdout.split("\n")) - 1, "")


if __name__ == "__main__":
    sys.exit(main())
