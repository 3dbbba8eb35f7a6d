"""WordPiece, the tokenizer of BERT, without the library ``tokenizers``.

It reads ``tokenizer.json`` and returns the ids that the library returns. The pieces of frequent words are cached.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from mem0_core._system.text_caches import text_cache
from mem0_core.errors import ConfigError
from mem0_core.providers._model_folder import MAX_CHARS_PER_TOKEN, read_json

_CACHED_WORDS = 20_000
_ASCII_PARTS = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_ASCII_CONTROLS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CJK_RANGES = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)


class _Vocabulary(Protocol):
    def get(self, piece: str, /) -> int | None: ...


class WordPiece:
    """The tokenizer of an uncased BERT. Safe to share between threads.

    Args:
        vocabulary: the id of each piece; pieces within a word begin with ``##``.
        special: the ids of the tokens that a text may contain literally, such as ``[SEP]``.
        max_tokens: maximum number of ids, including the first and the last one.
        max_word_chars: a longer word is unknown.
    """

    def __init__(
        self, vocabulary: _Vocabulary, special: Mapping[str, int], *, max_tokens: int, max_word_chars: int = 100
    ) -> None:
        self._vocabulary = vocabulary
        self._special = special
        self._max_pieces = max_tokens - 2
        self._max_word_chars = max_word_chars
        self._first, self._last, self._unknown = (_require(vocabulary, token) for token in ("[CLS]", "[SEP]", "[UNK]"))
        longest_first = sorted(special, key=len, reverse=True)
        self._split_special = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if special else None
        self._cut_cached = text_cache(_CACHED_WORDS)(self._cut)

    @classmethod
    def read(cls, file: Path, max_tokens: int) -> Self | None:
        """Read a ``tokenizer.json``; return None if it describes another tokenizer.

        Raises:
            ConfigError: the file is unreadable.
        """
        content, vocabulary = _read_compact(file) or (read_json(file), None)
        try:
            if not _is_uncased_bert(content):
                return None
            model = content["model"]
            special = {token["content"]: int(token["id"]) for token in content["added_tokens"]}
            return cls(
                model["vocab"] if vocabulary is None else vocabulary,
                special,
                max_tokens=max_tokens,
                max_word_chars=int(model["max_input_chars_per_word"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"{file} cannot be read: {error!r}") from error

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, between those of ``[CLS]`` and ``[SEP]``."""
        ids = [self._first]
        room = self._max_pieces
        for pieces in self._iterate_pieces(text):
            ids += pieces[:room]
            room -= len(pieces)
            if room <= 0:
                break
        ids.append(self._last)
        return ids

    def cut(self, text: str, limit: int, *, tail: bool = False) -> list[int]:
        """Return the first `limit` ids of a text, or the last ones, without markers."""
        if not text:
            return []
        chars = limit * MAX_CHARS_PER_TOKEN
        ids = self.encode(text[-chars:] if tail else text[:chars])[1:-1]
        ids = [one for one in ids if one not in (self._first, self._last)]
        return ids[-limit:] if tail else ids[:limit]

    def _iterate_pieces(self, text: str) -> Iterator[tuple[int, ...]]:
        parts = [text] if self._split_special is None or "[" not in text else self._split_special.split(text)
        for part in parts:
            if part in self._special:
                yield (self._special[part],)
            else:
                yield from map(self._cut_cached, split_words(part))

    def _cut(self, word: str) -> tuple[int, ...]:
        """Cut a word into its longest known pieces, from the left."""
        if len(word) > self._max_word_chars:
            return (self._unknown,)
        pieces: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                found = self._vocabulary.get(prefix + word[start:end])
                if found is not None:
                    break
            else:
                return (self._unknown,)
            pieces.append(found)
            start, prefix = end, "##"
        return tuple(pieces)


def _require(vocabulary: _Vocabulary, piece: str) -> int:
    found = vocabulary.get(piece)
    if found is None:
        raise KeyError(piece)
    return found


class CompactVocabulary:
    """Ids of pieces, searched in the text of a JSON object; after some searches, the object is parsed.

    To parse the 30,522 pieces of BERT takes as long as to embed two short texts.

    Args:
        entries: the entries of the object without white space, each after a comma.
    """

    def __init__(self, entries: bytes) -> None:
        self._entries = entries
        self._searches_left = _SEARCHES_BEFORE_PARSING
        self._parsed: dict[str, int] | None = None

    def get(self, piece: str, /) -> int | None:
        if self._parsed is not None:
            return self._parsed.get(piece)
        if not self._searches_left:
            self._parsed = json.loads(b"{%b}" % self._entries[1:])
            return self._parsed.get(piece)
        self._searches_left = max(0, self._searches_left - 1)
        key = b",%b:" % json.dumps(piece, ensure_ascii=False).encode("utf-8", "surrogatepass")
        at = self._entries.find(key)
        return None if at < 0 else int(self._entries[at + len(key) :].split(b",", 1)[0])


_SEARCHES_BEFORE_PARSING = 60  # at 0.2 ms each; to parse takes 13 ms
_VOCABULARY_START = b',"vocab":{'
_OTHER_ESCAPE = re.compile(rb'\\[^"\\]')


def _read_compact(file: Path) -> tuple[dict[str, Any], CompactVocabulary] | None:
    """Return a ``tokenizer.json`` and its vocabulary, unparsed; None if it is written in another way."""
    try:
        text = file.read_bytes()
        start = text.index(_VOCABULARY_START) + len(_VOCABULARY_START)
        end = text.index(b"}", start)
        while not text[end - 1 : end].isdigit():  # a piece with a brace
            end = text.index(b"}", end + 1)
        entries = b"," + text[start:end]
        if b'": ' in entries or b', "' in entries or _OTHER_ESCAPE.search(entries):
            return None
        content = json.loads(text[:start] + text[end:])
        return (content, CompactVocabulary(entries)) if isinstance(content, dict) else None
    except (OSError, ValueError):
        return None


def _is_uncased_bert(content: Mapping[str, Any]) -> bool:
    """Return True if this module implements the tokenizer that `content` describes."""
    normalizer, model = content.get("normalizer") or {}, content.get("model") or {}
    template = (content.get("post_processor") or {}).get("single") or []
    kinds = [next(iter(part)) for part in template]
    plain = all(
        not (token.get("normalized") or token.get("lstrip") or token.get("rstrip") or token.get("single_word"))
        for token in content.get("added_tokens") or []
    )
    expected = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    }
    return (
        normalizer == expected
        and (content.get("pre_tokenizer") or {}) == {"type": "BertPreTokenizer"}
        and model.get("type") == "WordPiece"
        and model.get("unk_token") == "[UNK]"
        and model.get("continuing_subword_prefix") == "##"
        and kinds == ["SpecialToken", "Sequence", "SpecialToken"]
        and plain
    )


# --- normalization -----------------------------------------------------------------------------------------------


def split_words(text: str) -> list[str]:
    """Split a text into words in lower case, without accents, and single punctuation marks."""
    if text.isascii():
        if _ASCII_CONTROLS.search(text):
            text = _ASCII_CONTROLS.sub("", text)
        return _ASCII_PARTS.findall(text.lower())
    text = unicodedata.normalize("NFD", text.translate(_CLEAN)).translate(_STRIP_ACCENTS)
    # Character by character, as the library does: a sigma at the end of a word is like any other.
    return text.replace("\u03a3", "\u03c3").lower().translate(_SPLIT).split()


class _CharacterTable(dict[int, str | None]):
    """A table for `str.translate` that computes each character when it is first needed."""

    def __init__(self, translate: Callable[[str], str | None]) -> None:
        self._translate = translate

    def __missing__(self, code: int) -> str | None:
        result = self[code] = self._translate(chr(code))
        return result


def _clean(character: str) -> str | None:
    """Remove control characters, replace white space by spaces, and separate Chinese characters."""
    if character in "\t\n\r":
        return " "
    if character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return None
    if any(first <= ord(character) <= last for first, last in _CJK_RANGES):
        return f" {character} "
    return " " if character.isspace() else character


def _strip_accent(character: str) -> str | None:
    return None if unicodedata.category(character) == "Mn" else character


def _separate_punctuation(character: str) -> str:
    is_ascii_mark = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    if is_ascii_mark or unicodedata.category(character).startswith("P"):
        return f" {character} "
    return character


_CLEAN = _CharacterTable(_clean)
_STRIP_ACCENTS = _CharacterTable(_strip_accent)
_SPLIT = _CharacterTable(_separate_punctuation)
