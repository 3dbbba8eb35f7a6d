"""Measure how much disk space an installation takes, with its dependencies, beside another library's.

    python tools/measure_install.py dist
    python tools/measure_install.py dist --package mem0-langchain --package "mem0ai==2.2.1" --package faiss-cpu

Each package is installed with uv into an empty folder, from the wheels in the given folder and the configured index,
for this Python and platform. Sizes are those of the files, without bytecode. Packages that are joined by ``+`` are
installed together.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("mem0-core", "mem0-langchain", "mem0-llamaindex", "mem0ai==2.2.1+faiss-cpu")
MEGABYTE = 1_000_000
SHOWN_PARTS = 6


class Weight(NamedTuple):
    """Bytes of an installation, and of its largest parts by name."""

    total: int
    distributions: int
    parts: list[tuple[str, int]]


def main() -> int:
    """Measure every package, and print one row of a Markdown table for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path, help="folder of our wheels")
    parser.add_argument("--package", action="append", help=f"default: {', '.join(PACKAGES)}")
    options = parser.parse_args()
    print("| installed | MB | distributions | largest parts in MB |\n|---|---|---|---|")
    for package in options.package or PACKAGES:
        weight = measure(package.split("+"), options.dist.resolve())
        parts = ", ".join(f"{name} {size / MEGABYTE:.0f}" for name, size in weight.parts)
        print(f"| {package} | {weight.total / MEGABYTE:.0f} | {weight.distributions} | {parts} |", flush=True)
    return 0


def measure(packages: Sequence[str], dist: Path) -> Weight:
    """Install packages into an empty folder, and add up the sizes of its files."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["uv", "pip", "install", "--quiet", "--no-config", "--link-mode", "copy", "--find-links", str(dist)]
        subprocess.run([*command, "--python", sys.executable, "--target", folder, *packages], check=True)
        root = Path(folder)
        sizes = {entry.name: _count_bytes(entry) for entry in root.iterdir()}
        distributions = len(list(root.glob("*.dist-info")))
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:SHOWN_PARTS]
    return Weight(sum(sizes.values()), distributions, largest)


def _count_bytes(entry: Path) -> int:
    files = entry.rglob("*") if entry.is_dir() else [entry]
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")


if __name__ == "__main__":
    sys.exit(main())
