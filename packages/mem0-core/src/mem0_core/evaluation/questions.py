"""Questions about transcripts, with the messages that answer them; read from a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mem0_core.domain.suggestions import suggest
from mem0_core.errors import InputError
from mem0_core.evaluation.transcripts import Transcript
from mem0_core.language.terms import split_words

STATED, CHANGED, NEVER_SAID, GIVEN = "stated", "changed", "never said", "given"
_KEYS = ("question", "answer", "evidence", "stale", "user", "kind", "answerable")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one transcript.

    Attributes:
        transcript: name of the transcript.
        kind: `STATED`, `CHANGED`, `NEVER_SAID`, or a name of the file's own.
        gold: ids of the messages that answer it.
        stale: ids of messages with an answer that is no longer true.
        answer: the expected answer, if known.
        answerable: False if the transcript has no answer.
    """

    text: str
    transcript: str
    kind: str = GIVEN
    gold: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    answer: str | None = None
    answerable: bool = True

    @property
    def key(self) -> str:
        """Return the identity of the question in results."""
        return f"{self.transcript}: {self.text}"


def sample_questions(questions: Sequence[Question], count: int) -> tuple[Question, ...]:
    """Return at most `count` questions, drawn by `digest_key`, in their order."""
    drawn = sorted(range(len(questions)), key=lambda place: digest_key(questions[place].key))[:count]
    return tuple(questions[place] for place in sorted(drawn))


def digest_key(key: str) -> bytes:
    """Return a digest by which items are drawn: the same ones at each call, and whatever their order."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def read_questions(path: Path, transcripts: Sequence[Transcript]) -> tuple[Question, ...]:
    """Read a JSON list, or JSON Lines, of objects with the keys of docs/how-to/evaluate.md.

    Raises:
        InputError: the file has another form, or an entry names a user or message that the transcripts do not have.
    """
    questions = tuple(
        _build_question(entry, f"{path}: question {number}", transcripts)
        for number, entry in enumerate(_read_entries(path), 1)
    )
    if not questions:
        raise InputError(f"{path} contains no questions; each is an object with the key 'question'")
    return questions


def _read_entries(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}; pass a JSON file of questions") from error
    try:
        document = json.loads(text)
    except ValueError:
        return [_parse_row(row, number, path) for number, row in enumerate(text.split("\n"), 1) if row.strip()]
    if isinstance(document, Mapping) and isinstance(document.get("questions"), list):
        document = document["questions"]
    return document if isinstance(document, list) else [document]


def _parse_row(row: str, number: int, path: Path) -> Any:
    try:
        return json.loads(row)
    except ValueError as error:
        raise InputError(f"{path}: line {number} is not valid JSON: {error}") from error


def _build_question(entry: Any, location: str, transcripts: Sequence[Transcript]) -> Question:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("question"), str) or not entry["question"].strip():
        raise InputError(f"{location} is not an object with the text 'question'")
    for key in entry:
        if key not in _KEYS:
            raise InputError(f"{location} has the unknown key {key!r}{suggest(str(key), _KEYS)}")
    transcript = _choose_transcript(entry.get("user"), location, transcripts)
    answer = entry.get("answer")
    answerable = entry.get("answerable", not ("answer" in entry and answer is None and not entry.get("evidence")))
    if not isinstance(answerable, bool):
        raise InputError(f"{location}: 'answerable' must be true or false, not {answerable!r}")
    gold = _resolve_lines(entry.get("evidence"), "evidence", location, transcript)
    if not gold and answerable and answer is not None:
        gold = find_lines(str(answer), transcript)
    stale = _resolve_lines(entry.get("stale"), "stale", location, transcript)
    return Question(
        entry["question"].strip(),
        transcript.name,
        str(entry.get("kind") or (GIVEN if answerable else NEVER_SAID)),
        gold if answerable else (),
        tuple(one for one in stale if one not in gold),
        None if answer is None else str(answer),
        answerable,
    )


def _choose_transcript(user: object, location: str, transcripts: Sequence[Transcript]) -> Transcript:
    by_name = {transcript.name: transcript for transcript in transcripts}
    if user is None and len(transcripts) == 1:
        return transcripts[0]
    if not isinstance(user, str) or user not in by_name:
        hint = suggest(str(user), by_name, label="users")
        raise InputError(f"{location} has the user {user!r}{hint}; name one of them as 'user'")
    return by_name[user]


def _resolve_lines(given: object, key: str, location: str, transcript: Transcript) -> tuple[str, ...]:
    """Return the ids of the messages that a list names, each by its id or by words in it."""
    known = {line.id for line in transcript.lines}
    lines: dict[str, None] = {}
    for one in [] if given is None else given if isinstance(given, list) else [given]:
        named = (str(one),) if str(one) in known else find_lines(str(one), transcript)
        if not named:
            raise InputError(
                f"{location}: {key} {str(one)!r} is neither the id nor a part of a message of {transcript.name!r};"
                " give the id of a message, or words that it contains"
            )
        lines.update(dict.fromkeys(named))
    return tuple(lines)


def find_lines(text: str, transcript: Transcript) -> tuple[str, ...]:
    """Return the ids of the messages that contain the words of `text`, in their order, up to case and punctuation."""
    wanted = f" {' '.join(split_words(text))} "
    if not wanted.strip():
        return ()
    return tuple(line.id for line in transcript.lines if wanted in f" {' '.join(split_words(line.text))} ")
