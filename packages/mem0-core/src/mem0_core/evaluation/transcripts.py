"""Transcripts: the messages of one person, as `mem0-core import` reads them, each with an id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mem0_core.interchange import ImportedMessage, read_chats
from mem0_core.language.messages import SPEAKER_ROLES, parse_message

DEFAULT_USER = "user"
"""Owner of the messages of a file that names none."""
_ID_KEYS = ("dia_id", "message_id", "id")  # metadata by which files of questions name a message


@dataclass(frozen=True, slots=True)
class Line:
    """A message that can become a memory.

    Attributes:
        id: unique in its transcript: the id in its metadata, else its number.
        text: the text that `Memory.add` stores.
        run: conversation that it belongs to, if the file has several.
        message: the argument of `Memory.add`.
    """

    id: str
    text: str
    role: str = "user"
    speaker: str | None = None
    said_at: str | None = None
    run: str | None = None
    message: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def transcript_line(self) -> str:
        """Return the message as a line of a transcript."""
        return f"{self.speaker or self.role}: {self.text}"


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything that one user and the assistant, or two speakers, said; in order."""

    name: str
    lines: tuple[Line, ...]

    @property
    def end(self) -> str | None:
        """Return the time of the last dated message."""
        return max((line.said_at for line in self.lines if line.said_at), default=None)


def read_transcripts(
    paths: Sequence[Path], *, format: str | None = None, user_id: str | None = None
) -> tuple[Transcript, ...]:
    """Read files of chats in the forms of `mem0-core import`; one transcript for each user in them.

    Args:
        format: name of the format; by default it is detected.
        user_id: owner of all messages, in place of the users that the files name.

    Raises:
        InputError: a file cannot be read; names the file, the location and the reason.
    """
    messages = [(str(path), one) for path in paths for one in read_chats(path, format)[1]]
    return build_transcripts(messages, user_id)


def build_transcripts(
    messages: Iterable[tuple[str, ImportedMessage]], user_id: str | None = None
) -> tuple[Transcript, ...]:
    """Group messages by their user, and give each an id; messages that no memory would keep are left out.

    Args:
        messages: the name of a file and a message of it, in order.
    """
    lines: dict[str, dict[str, Line]] = {}
    for file, one in messages:
        user = user_id or one.ids.get("user_id") or DEFAULT_USER
        of_user = lines.setdefault(user, {})
        for parsed in parse_message(one.message, f"{file}: {one.location}").messages:
            if parsed.role not in SPEAKER_ROLES or not parsed.content.strip():
                continue
            number = len(of_user) + 1
            named = next((str(parsed.metadata[key]) for key in _ID_KEYS if parsed.metadata.get(key)), str(number))
            run = one.ids.get("run_id") or one.conversation
            key = named if named not in of_user else f"{named}#{number}"
            line = Line(key, parsed.content, parsed.role, parsed.name, parsed.timestamp, run, one.message)
            of_user[key] = line
    return tuple(Transcript(user, tuple(of_user.values())) for user, of_user in lines.items() if of_user)
