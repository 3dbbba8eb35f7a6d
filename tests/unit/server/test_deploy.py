"""The container files, which no check here builds: their syntax, and that what they name exists and fits together."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mem0_core.cli._arguments import build_parser

ROOT = Path(__file__).parents[3]
INSTRUCTIONS = {"CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN", "STOPSIGNAL", "USER"} | {
    "VOLUME",
    "WORKDIR",
}
SERVICE_KEYS = {"build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image", "ports"} | {
    *("read_only", "restart", "security_opt", "stop_grace_period", "tmpfs", "volumes"),
}


def read_instructions() -> list[tuple[str, str]]:
    """Return the instructions of the container file with their arguments; continued lines are joined."""
    text = (ROOT / "deploy/Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined)]


@pytest.fixture
def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text(encoding="utf-8"))
    return found


def test_the_container_file_copies_what_exists_and_installs_extras_that_exist() -> None:
    instructions = read_instructions()
    assert {name for name, _ in instructions} <= INSTRUCTIONS
    stages = [rest.partition(" AS ")[2] for name, rest in instructions if name == "FROM"]
    sent = set((ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines())
    for rest in (rest for name, rest in instructions if name == "COPY"):
        words = shlex.split(rest)
        if words[0].startswith("--from="):
            assert words[0].removeprefix("--from=") in stages
        else:
            sources = [word.removeprefix("./") for word in words[:-1]]
            assert all((ROOT / source).exists() for source in sources)
            assert {f"!{source}" for source in sources} <= sent, "the context of a build has what is copied"
    (extras,) = re.findall(r"packages/mem0-core\[([\w,-]+)\]", " ".join(rest for _, rest in instructions))
    project = tomllib.loads((ROOT / "packages/mem0-core/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()
    assert extras in (ROOT / "docs/how-to/containers.md").read_text(encoding="utf-8")


def test_the_container_starts_a_command_that_exists_and_asks_for_its_health() -> None:
    given = dict(read_instructions())
    entry, command = json.loads(given["ENTRYPOINT"]), json.loads(given["CMD"])
    options = build_parser().parse_args(command)
    assert (entry, options.host, options.port) == (["mem0-core"], "0.0.0.0", int(given["EXPOSE"]))
    python, _, program = json.loads(given["HEALTHCHECK"].partition("CMD ")[2])
    ast.parse(program)
    assert (python, f"localhost:{given['EXPOSE']}/readyz" in program) == ("python", True)
    assert given["USER"] == "mem0", "the last user of the image is not root"
    assert given["VOLUME"] in given["ENV"]


def test_the_services_fit_together(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert all(service.keys() <= SERVICE_KEYS for service in services.values())
    server, database = services["server"], services["database"]
    assert (ROOT / "deploy" / server["build"]["context"] / server["build"]["dockerfile"]).is_file()
    options = build_parser().parse_args(server["command"])
    user, name = database["environment"]["POSTGRES_USER"], database["environment"]["POSTGRES_DB"]
    assert options.store_url == f"postgresql://{user}@database/{name}"
    assert server["environment"]["PGPASSWORD"] == database["environment"]["POSTGRES_PASSWORD"]
    assert server["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert f"--username {user} --dbname {name}" in database["healthcheck"]["test"][1]
    named = {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]}
    assert named == compose["volumes"].keys()
    given = dict(read_instructions())
    assert server["volumes"] == [f"keys:{given['VOLUME']}"]
    assert server["ports"] == [f"127.0.0.1:{given['EXPOSE']}:{given['EXPOSE']}"], "reached from this machine only"
    assert server["read_only"]
    assert server["cap_drop"] == ["ALL"]
