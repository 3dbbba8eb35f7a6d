"""Errors of the command itself, and the exit code of every error."""

from __future__ import annotations

from mem0_core.errors import InputError, Mem0Error, NotFoundError, ScopeError

__all__ = [
    "EXIT_FAILED",
    "EXIT_INTERRUPTED",
    "EXIT_NOT_FOUND",
    "EXIT_UNHEALTHY",
    "EXIT_USAGE",
    "NothingToDrawError",
    "UsageError",
    "exit_code_of",
]

EXIT_FAILED, EXIT_USAGE, EXIT_UNHEALTHY, EXIT_NOT_FOUND, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


class UsageError(InputError):
    """The arguments of a command do not fit together, or do not name one thing."""


class NothingToDrawError(InputError):
    """A scope has no relations."""


def exit_code_of(error: Mem0Error) -> int:
    """Return the exit code of a command that ended with this error."""
    if isinstance(error, NotFoundError | NothingToDrawError):
        return EXIT_NOT_FOUND
    return EXIT_USAGE if isinstance(error, UsageError | ScopeError) else EXIT_FAILED
