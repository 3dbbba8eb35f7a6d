"""Errors of the command itself, and the exit code of every error."""

from __future__ import annotations

import re

from mem0_core.errors import InputError, Mem0Error, NotFoundError, ScopeError

EXIT_FAILED, EXIT_USAGE, EXIT_UNHEALTHY, EXIT_NOT_FOUND, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


class UsageError(InputError):
    """The arguments of a command do not fit together, or do not name one thing."""


class NothingToDrawError(InputError):
    """A scope has no relations."""


def describe_in_terms_of_command(error: Mem0Error) -> str:
    """Return the message of an error with the names that a command line has for arguments and methods."""
    text = _BOTH_FORMS.sub(r"pass \1", str(error)).replace("with get_all", "with `mem0-core list`")
    for name, option in _OPTIONS.items():
        text = re.sub(rf"^{name}\b", option, text)
        text = re.sub(rf"\b{name}=(?=\S)", f"{option} ", text)
    return _LISTING.sub(r"`mem0-core \1 --user NAME` lists them", text).replace("`mem0-core get_all", "`mem0-core list")


_OPTIONS = {
    "timestamp": "--at",
    "messages": "text",
    "user_id": "--user",
    "agent_id": "--agent",
    "run_id": "--run",
    "reason": "--reason",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in ("as_of", "depth", "limit", "max_tokens", "min_trust", "timeout")
    },
}
"""Option of each argument that a command line gives."""

_BOTH_FORMS = re.compile(r"pass \w+=\w* \((--[\w-]+)\)")
"""An advice that names the argument of the method and the option of the command."""

_LISTING = re.compile(r"(get_all|merges|pending) lists the \w+ of a user with their ids")


def exit_code_of(error: Mem0Error) -> int:
    """Return the exit code of a command that ended with this error."""
    if isinstance(error, NotFoundError | NothingToDrawError):
        return EXIT_NOT_FOUND
    return EXIT_USAGE if isinstance(error, UsageError | ScopeError) else EXIT_FAILED
