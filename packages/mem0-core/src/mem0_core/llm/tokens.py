"""Count the tokens of a text: by the model's own vocabulary if it is on this machine, otherwise by an estimate.

The estimate serves unknown vocabularies and is rather high: for English, code, and text of most languages it exceeds
the counts of GPT-4, GPT-4o, Claude 2, Llama 3, Mistral, Qwen and DeepSeek.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tempfile
from bisect import bisect
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mem0_core._system.text_caches import text_cache

if TYPE_CHECKING:
    from tiktoken import Encoding

# --- estimate ----------------------------------------------------------------------------------------------------

_RUN = re.compile(r"[A-Za-z0-9]+")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SIGN = re.compile(r"[!-/:-@\[-`{-~]")
_BLANK = re.compile(r"[^\S ]| {2,16}| (?=[0-9])")  # a single space is part of a following word
_BEFORE_DIGIT = re.compile(r" [0-9]")
_FOREIGN = re.compile(r"[^\x00-\x7f]")

# ASCII characters for `str.translate` to delete: the fastest way to count single characters.
_BUT_SIGNS = {code: None for code in range(128) if not _SIGN.match(chr(code))}
_BUT_BREAKS = {code: None for code in range(128) if chr(code) == " " or not _BLANK.match(chr(code))}

# In hundredths of a token, so that sums are exact.
_TOKEN = 100
_COMMON_PART = 4  # letters; words up to that length are mostly one token
_PER_LETTER = 50  # each further letter, and each letter of a word in capitals
_PER_NOISE, _MAX_WORD_LETTERS = 85, 20  # a letter among digits or in an overlong run: keys, hashes
_PER_SIGN = 80

_SCRIPTS: tuple[tuple[int, int], ...] = (
    (0x0000, 120),  # Latin letters with marks, and signs among them
    (0x0250, 200),
    (0x0370, 130),  # Greek
    (0x0400, 105),  # Cyrillic: one token per letter in English vocabularies
    (0x0460, 200),  # its rare letters, Armenian
    (0x0590, 120),  # Hebrew, Arabic
    (0x0780, 200),
    (0x0900, 130),  # Devanagari
    (0x0980, 300),  # other scripts of India and its neighbours, Thai, Georgian, Ethiopic, Khmer, ...
    (0x1E00, 120),  # Latin for Vietnamese
    (0x1F00, 300),
    (0x2000, 140),  # dashes and quotation marks
    (0x2070, 300),
    (0x3000, 120),  # kana
    (0x3100, 300),
    (0x4E00, 130),  # Han
    (0xA000, 300),
    (0xAC00, 140),  # Hangul
    (0xD7B0, 300),
    (0xFF00, 140),  # full-width forms
    (0xFFF0, 300),
    (0x10000, 400),  # emoji
)
"""First code point of a script -> cost of a letter, by the worst of the vocabularies or by its bytes."""
_BEGINS = [first for first, _ in _SCRIPTS]


def estimate_tokens(text: str) -> int:
    """Return an estimate of the number of tokens of a text; rather too high."""
    total = sum(map(_estimate_run, _RUN.findall(text)))
    if text.isascii():
        total += _PER_SIGN * len(text.translate(_BUT_SIGNS)) + _TOKEN * _ascii_blanks(text)
    else:
        total += _PER_SIGN * len(_SIGN.findall(text)) + _TOKEN * len(_BLANK.findall(text))
        total += sum(map(_estimate_letter, _FOREIGN.findall(text)))
    return -(-total // _TOKEN)


def _ascii_blanks(text: str) -> int:
    """Return the number of matches of `_BLANK`, in a quarter of the time."""
    if "  " in text:
        return len(_BLANK.findall(text))
    return len(text.translate(_BUT_BREAKS)) + len(_BEFORE_DIGIT.findall(text))


@text_cache(65_536)  # the words of a language recur
def _estimate_run(run: str) -> int:
    """Estimate a run of letters and digits; some vocabularies take each digit separately."""
    digits = sum(map(str.isdigit, run))
    letters = len(run) - digits
    if (digits and letters) or letters >= _MAX_WORD_LETTERS:
        return _TOKEN * digits + _PER_NOISE * letters
    return _TOKEN * digits + sum(map(_estimate_part, _PART.findall(run)))


def _estimate_part(part: str) -> int:
    if part.isupper():
        return max(_TOKEN, _PER_LETTER * len(part))
    return _TOKEN + _PER_LETTER * max(0, len(part) - _COMMON_PART)


@lru_cache(maxsize=8_192)
def _estimate_letter(letter: str) -> int:
    return _SCRIPTS[bisect(_BEGINS, ord(letter)) - 1][1]


# --- count -------------------------------------------------------------------------------------------------------

_GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
_GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_ENCODINGS = {
    "cl100k_base": (_GPT4, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
    "o200k_base": (_GPT4O, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
}
"""Pattern that splits a text into words, and SHA-256 of the vocabulary."""
_ENCODING_ALIASES = {"o200k_harmony": "o200k_base"}  # they differ only in special tokens, which memories do not contain
_SOURCE = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


def make_token_counter(model: str) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text for an OpenAI model.

    tiktoken downloads a vocabulary on first use, so it is never asked for one. If tiktoken is installed and its cache
    (``$TIKTOKEN_CACHE_DIR``, ``$DATA_GYM_CACHE_DIR``, or a folder of temporary files) has the model's vocabulary, that
    file is read. Otherwise, and for unknown models, the tokens are estimated.
    """
    encoding = _encoding_of(model.removeprefix("openai/"))  # as OpenRouter has it
    if encoding is None:
        return estimate_tokens
    return lambda text: len(encoding.encode_ordinary(text))


def _encoding_of(model: str) -> Encoding | None:
    try:
        from tiktoken import encoding_name_for_model
    except ImportError:
        return None
    try:
        name = encoding_name_for_model(model)
    except KeyError:
        return None
    name = _ENCODING_ALIASES.get(name, name)
    path = _find_cached_vocabulary(name)
    return None if path is None else _encoding(name, path)


def _find_cached_vocabulary(name: str) -> Path | None:
    """Return the file in which tiktoken would cache the vocabulary, if it exists."""
    chosen = (os.environ[key] for key in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR") if key in os.environ)
    folder = next(chosen, os.path.join(tempfile.gettempdir(), "data-gym-cache"))
    if not folder or name not in _ENCODINGS:
        return None
    key = hashlib.sha1(_SOURCE.format(name).encode(), usedforsecurity=False).hexdigest()
    path = Path(folder, key)
    return path if path.is_file() else None


@lru_cache(maxsize=4)  # reading one takes a third of a second
def _encoding(name: str, path: Path) -> Encoding | None:
    """Return the encoding with the vocabulary in a file, or None if the file is not the right one."""
    from tiktoken import Encoding

    pattern, sha256 = _ENCODINGS[name]
    try:
        content = path.read_bytes()
    except OSError:
        return None  # not readable, or removed since
    if hashlib.sha256(content).hexdigest() != sha256:
        return None
    pairs = (line.split() for line in content.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    return Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
