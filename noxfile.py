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
KIT = "memory-conformance"  # it depends on none of the others, and on nothing else
WEIGHTS = "packages/mem0-models"  # data only, so it is never installed editable
EXTRAS = (
    "encryption",
    "faiss",
    "onnx",
    "openai",
    "postgres",
    "yaml",
    "neo4j",
    "ladybug",
    "viz",
    "cli",
    "gguf",
    "mcp",
    "server",
    "otel",
)
EXTRAS_OF_ADAPTERS = ("langgraph", "classic")
BASE = ("mem0-core",)
SUITE_FLOORS = ("langgraph-checkpoint-sqlite>=3.0",)
ADAPTERS = ("mem0-langchain[langgraph,classic]", "mem0-llamaindex")
EVERYTHING = (
    "mem0-core[encryption,faiss,onnx,openai,postgres,yaml,neo4j,ladybug,viz,cli,mcp,server,otel]",
    *ADAPTERS,
    KIT,
)
SOURCES = [f"packages/{name}/src" for name in (*PACKAGES, KIT)]
TYPED = [*SOURCES, "tests", "benchmarks", "examples", "tools", "training", "noxfile.py"]
MIN_COVERAGE = 93  # percent of lines and branches, a point below what the plain tests reach
CHECK_COVERAGE = ("--cov", "--cov-report=term:skip-covered", f"--cov-fail-under={MIN_COVERAGE}", "--durations=25")
# Files run in order, and a process that has finished takes half of the rest of another.
PARALLEL = ("-n", "auto", "--dist", "worksteal")
# Waiting threads of numerical libraries make a busy machine many times slower; the tests' models are tiny.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
# Its sitecustomize.py removes API keys from the environment and refuses connections to other machines.
OFFLINE = {"PYTHONPATH": str(ROOT / "tests/docs/offline")}


def install(session: nox.Session, packages: tuple[str, ...], *groups: str, pins: tuple[str, ...] = ()) -> None:
    """Install our packages, editable, with the model weights and the named dependency groups."""
    constraints = [part for file in ("constraints.txt", *pins) for part in ("-c", file)]
    editable = [part for package in packages for part in ("-e", f"packages/{package}")]
    extras = [requirement for group in groups for requirement in GROUPS[group]]
    session.install(*constraints, WEIGHTS, *editable, *extras)


def find_floors(requirements: list[str]) -> list[str]:
    """Return pins of the lowest versions that the requirements allow."""
    lowest = (re.match(r"([\w-]+)>=([\d.]+)", line) for line in requirements)
    return sorted({f"{match[1]}=={match[2]}" for match in lowest if match})


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
    extras = dict(project.get("optional-dependencies", {}))
    extras.pop("deepagents", None)  # it needs a newer LangChain, and has a session of its own
    wanted = [*project["dependencies"], *(requirement for extra in extras.values() for requirement in extra)]
    floors = find_floors(wanted)
    packages = [
        WEIGHTS,
        "-e",
        "packages/mem0-core[faiss,onnx]",
        "-e",
        f"{folder}[{','.join(extras)}]" if extras else folder,
    ]
    session.install(*packages, *floors, *GROUPS["tests"], "openai")
    session.run("pytest", *PARALLEL, f"tests/frameworks/{adapter}", "-m", "not slow and not docs", *session.posargs)


@nox.session
@nox.parametrize("versions", ["newest", "lowest"])
def suites(session: nox.Session, versions: str) -> None:
    """Run the frameworks' own tests with our classes in the place of theirs; arguments name suites."""
    groups = ("tests", "suites")
    if versions == "newest":
        install(session, ("mem0-core", *ADAPTERS), *groups)
    else:
        project = nox.project.load_toml(ROOT / "packages/mem0-langchain/pyproject.toml")["project"]
        extras = [part for name in ("langgraph", "classic") for part in project["optional-dependencies"][name]]
        floors = find_floors([*project["dependencies"], *extras, *SUITE_FLOORS])
        needed = [requirement for group in groups for requirement in GROUPS[group]]
        session.install(WEIGHTS, "-e", "packages/mem0-core", "-e", f"packages/{ADAPTERS[0]}", *floors, *needed)
    session.run("python", "tests/suites/run.py", *session.posargs, env=ONE_THREAD)


@nox.session(venv_backend="virtualenv")  # uv ignores pip's configuration, which may name a CPU-only torch
def tests_torch(session: nox.Session) -> None:
    """Run the tests that need torch: minutes to install, gigabytes if pip finds only the CUDA build."""
    pins = "constraints-torch.txt"
    session.install("-c", pins, "torch")  # first, so that our packages cannot pull in another build
    extras = "faiss,onnx,openai,yaml,sentence-transformers,transformers,openvino"
    install(session, (f"mem0-core[{extras}]", *ADAPTERS), "tests", pins=(pins,))
    session.run("pytest", "-m", "torch", *session.posargs, env=ONE_THREAD)


@nox.session(venv_backend="virtualenv")
def train(session: nox.Session) -> None:
    """Train the models of training/; arguments are those of `python -m training`, see training/README.md."""
    pins = "constraints-torch.txt"
    session.install("-c", pins, "torch")
    install(session, ("mem0-core[onnx]",), "tests", pins=(pins,))
    session.install("-c", pins, "-c", "constraints.txt", "safetensors")
    session.run("python", "-m", "training", *session.posargs)


@nox.session
def gguf(session: nox.Session) -> None:
    """Run the tests that need llama-cpp-python, which is compiled first: five minutes or more on two processors."""
    # Without image support, which we do not use, and hardly optimized: the tests' models are tiny.
    options = "-DLLAVA_BUILD=OFF -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_CXX_FLAGS_RELEASE=-O1"
    session.env.update(CMAKE_ARGS=options, CMAKE_BUILD_PARALLEL_LEVEL="2")
    install(session, ("mem0-core[faiss,onnx,openai,yaml,gguf]",), "gguf")
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
    install(session, ("mem0-core", *ADAPTERS, KIT), "lint")
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
    session.run("pytest", *PARALLEL, "tests/docs", *session.posargs, env=ONE_THREAD)


@nox.session
def site(session: nox.Session) -> None:
    """Build the documentation site into build/site; `nox -s site -- serve` shows it while you write."""
    session.install("-c", "constraints.txt", *GROUPS["site"])
    session.env["NO_MKDOCS_2_WARNING"] = "1"
    session.run("mkdocs", *(session.posargs or ("build", "--strict", "--site-dir", "build/site")))


@nox.session
def deepagents(session: nox.Session) -> None:
    """Run the tests, the guide and the example of deepagents, the dependencies of which need pins of their own."""
    pins = ("-c", "constraints-deepagents.txt")
    packages = [
        part for name in ("mem0-core[faiss,onnx]", "mem0-langchain[deepagents]") for part in ("-e", f"packages/{name}")
    ]
    session.install(*pins, WEIGHTS, *packages, "-e", "packages/memory-conformance", *GROUPS["tests"])
    session.run("pytest", "tests/frameworks/langchain/test_deepagents.py", *session.posargs, env=ONE_THREAD)
    session.run("pytest", "tests/conformance/test_known_systems.py", "-k", "deepagents", env=ONE_THREAD)
    session.run("pytest", "tests/docs/test_documentation.py", "-k", "deepagents", *session.posargs)
    with tempfile.TemporaryDirectory() as home:
        session.run("python", "examples/deep_agent.py", env={**OFFLINE, "HOME": home, "USERPROFILE": home})


@nox.session
def mcp(session: nox.Session) -> None:
    """Run the tests of the servers with the clients of LangChain, LlamaIndex and mem0, on version 1 of MCP's SDK."""
    pins = ("-c", "constraints-mcp.txt")
    session.install(*pins, WEIGHTS, "-e", "packages/mem0-core[mcp,server]", *GROUPS["mcp"])
    files = [f"tests/unit/server/test_{name}.py" for name in ("mcp_clients", "mem0_client", "openapi")]
    session.run("pytest", *files, *session.posargs, env=ONE_THREAD)


@nox.session
def vector_stores(session: nox.Session) -> None:
    """Test mem0's vector stores by their keys with LangChain's classes, which need pins of their own."""
    packages = [part for name in ("mem0-core[faiss]", "mem0-langchain") for part in ("-e", f"packages/{name}")]
    session.install("-c", "constraints-vector-stores.txt", WEIGHTS, *packages, *GROUPS["vector-stores"])
    tests = ("tests/frameworks/langchain/test_vector_providers.py", *session.posargs)
    session.run("pytest", *tests, env=ONE_THREAD)


@nox.session
def platform(session: nox.Session) -> None:
    """Test LangGraph's development server, prebuilt agents and langmem's tools with our store and middleware."""
    packages = [part for name in ("mem0-core[faiss,onnx]", ADAPTERS[0]) for part in ("-e", f"packages/{name}")]
    session.install("-c", "constraints-platform.txt", WEIGHTS, *packages, *GROUPS["platform"])
    folder = "tests/frameworks/langchain"
    session.run("pytest", f"{folder}/test_server.py", f"{folder}/test_prebuilt.py", *session.posargs, env=ONE_THREAD)


@nox.session
def examples(session: nox.Session) -> None:
    """Run every example in an empty home folder, without keys and without network."""
    install(session, EVERYTHING, "examples")
    for example in sorted({*ROOT.glob("examples/[!_]*.py")} - {ROOT / "examples/deep_agent.py"}):
        with tempfile.TemporaryDirectory() as home:
            session.run("python", str(example), env={**OFFLINE, "HOME": home, "USERPROFILE": home})


@nox.session
def release(session: nox.Session) -> None:
    """Build all distributions in dist/, check them, and install the wheels with every Python that is here."""
    session.install("-c", "constraints.txt", *GROUPS["release"])
    dist = ROOT / "dist"
    for old in dist.glob("mem*_*"):
        old.unlink()
    for name in ("mem0-models", *PACKAGES, KIT):
        session.run("python", "-m", "build", "--no-isolation", "--outdir", str(dist), f"packages/{name}", silent=True)
    built = sorted(dist.glob("mem*_*"))
    versions = {file.name.split("-")[1].removesuffix(".tar.gz") for file in built}
    if len(versions) != 1 or len(built) != 2 * (len(PACKAGES) + 2):
        session.error(f"expected a wheel and a source distribution of one version, found {[f.name for f in built]}")
    for file in built:
        session.log(f"{file.stat().st_size / 1e6:6.1f} MB  {file.name}")
    session.run("twine", "check", "--strict", *map(str, built))
    session.run("python", "tools/check_release.py", str(dist), *session.posargs)


@nox.session
def notebook(session: nox.Session) -> None:
    """Execute the example notebook in a Jupyter kernel."""
    install(session, BASE, "tests")
    session.install("-c", "constraints.txt", "nbclient", "ipykernel")
    session.run("pytest", "tests/docs/test_notebook.py", *session.posargs, env=ONE_THREAD)


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
    compile_ += ["--no-emit-package", "mem0-models"]
    packages = [f"packages/{name}/pyproject.toml" for name in PACKAGES]
    extras = [part for extra in (*EXTRAS, *EXTRAS_OF_ADAPTERS) for part in ("--extra", extra)]
    apart = ("mcp", "platform", "torch", "vector-stores")  # they have pins of their own
    groups = [part for group in GROUPS for part in ("--group", group) if group not in apart]
    session.run(*compile_, *packages, *extras, *groups, "-o", "constraints.txt", *session.posargs)

    deep = [*packages[:2], "--extra", "faiss", "--extra", "onnx", "--extra", "deepagents", "--group", "tests"]
    session.run(*compile_, *deep, "-o", "constraints-deepagents.txt", *session.posargs)

    clients = [packages[0], "--extra", "mcp", "--extra", "server", "--group", "mcp"]
    session.run(*compile_, *clients, "-o", "constraints-mcp.txt", *session.posargs)

    stores = [*packages[:2], "--extra", "faiss", "--group", "vector-stores"]
    session.run(*compile_, *stores, "-o", "constraints-vector-stores.txt", *session.posargs)

    server = [
        *packages[:2],
        *(part for extra in ("faiss", "onnx", "langgraph", "classic") for part in ("--extra", extra)),
    ]
    session.run(*compile_, *server, "--group", "platform", "-o", "constraints-platform.txt", *session.posargs)

    wanted = [part for extra in ("sentence-transformers", "transformers", "openvino") for part in ("--extra", extra)]
    torch = [packages[0], *wanted, "--group", "torch", "-c", "constraints.txt"]
    session.run(*compile_, *torch, "-o", "constraints-torch.txt", *session.posargs)
    # The installed build of torch determines the CUDA libraries, so those are not pinned.
    pins = (ROOT / "constraints-torch.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [pin for pin in pins if not re.match(r"nvidia-|cuda-|triton==", pin)]
    (ROOT / "constraints-torch.txt").write_text("".join(kept), encoding="utf-8")
