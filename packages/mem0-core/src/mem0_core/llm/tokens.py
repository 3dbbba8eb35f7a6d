"""How many tokens a text takes: by the model's own vocabulary where it lies on this machine, else estimated.

The estimate is for vocabularies nobody knows, so it is rather too high: for English, code, and text of most languages
it is above what GPT-4, GPT-4o, Claude 2, Llama 3, Mistral, Qwen and DeepSeek count (docs/how-to/conversations.md).
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

if TYPE_CHECKING:
    from tiktoken import Encoding

__all__ = ["estimate_tokens", "make_token_counter"]

# --- estimated ---------------------------------------------------------------------------------------------------

_RUN = re.compile(r"[A-Za-z0-9]+")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SIGN = re.compile(r"[!-/:-@\[-`{-~]")
_BLANK = re.compile(r"[^\S ]| {2,16}| (?=[0-9])")  # a single space belongs to the word after it, if that is one
_BEFORE_DIGIT = re.compile(r" [0-9]")
_FOREIGN = re.compile(r"[^\x00-\x7f]")

# Of ASCII, what `str.translate` deletes: that is how single letters are counted fastest.
_BUT_SIGNS = {code: None for code in range(128) if not _SIGN.match(chr(code))}
_BUT_BREAKS = {code: None for code in range(128) if chr(code) == " " or not _BLANK.match(chr(code))}

# In hundredths of a token, so that sums are exact.
_TOKEN = 100
_COMMON_PART = 4  # letters; so long a word is mostly one token
_PER_LETTER = 50  # of what a word has above that, and of one in capitals
_PER_NOISE, _MAX_WORD_LETTERS = 85, 20  # a letter among digits, or of what is too long for a word: keys, hashes
_PER_SIGN = 80

_SCRIPTS: tuple[tuple[int, int], ...] = (
    (0x0000, 120),  # Latin letters with marks, and what stands among them
    (0x0250, 200),
    (0x0370, 130),  # Greek
    (0x0400, 105),  # Cyrillic: a token to a letter where it was learnt from English
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
"""What a letter takes of the script that begins there, by the worst of the vocabularies, or what its bytes are."""
_BEGINS = [first for first, _ in _SCRIPTS]


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes; rather too many."""
    total = sum(map(_estimate_run, _RUN.findall(text)))
    if text.isascii():
        total += _PER_SIGN * len(text.translate(_BUT_SIGNS)) + _TOKEN * _ascii_blanks(text)
    else:
        total += _PER_SIGN * len(_SIGN.findall(text)) + _TOKEN * len(_BLANK.findall(text))
        total += sum(map(_estimate_letter, _FOREIGN.findall(text)))
    return -(-total // _TOKEN)


def _ascii_blanks(text: str) -> int:
    """What `_BLANK` finds, in a quarter of the time."""
    if "  " in text:
        return len(_BLANK.findall(text))
    return len(text.translate(_BUT_BREAKS)) + len(_BEFORE_DIGIT.findall(text))


@lru_cache(maxsize=65_536)  # the words of one language come up again and again
def _estimate_run(run: str) -> int:
    """Of letters and digits in a row; some vocabularies take each digit by itself."""
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


# --- counted -----------------------------------------------------------------------------------------------------

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
"""How each splits a text into words, and the SHA-256 of its vocabulary."""
_ENCODING_ALIASES = {"o200k_harmony": "o200k_base"}  # but for special tokens, which no memory is made of
_SOURCE = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


def make_token_counter(model: str) -> Callable[[str], int]:
    """What counts the tokens of a text for an OpenAI model.

    tiktoken downloads a vocabulary when it first uses it. So it is not asked for one: if it is installed, and has the
    model's vocabulary in its cache (``$TIKTOKEN_CACHE_DIR``, ``$DATA_GYM_CACHE_DIR``, or a folder of temporary files),
    that file is read. Otherwise, and for models that it does not know, the tokens are estimated.
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
    """The file in which tiktoken would keep the vocabulary."""
    chosen = (os.environ[key] for key in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR") if key in os.environ)
    folder = next(chosen, os.path.join(tempfile.gettempdir(), "data-gym-cache"))
    if not folder or name not in _ENCODINGS:
        return None
    key = hashlib.sha1(_SOURCE.format(name).encode(), usedforsecurity=False).hexdigest()
    path = Path(folder, key)
    return path if path.is_file() else None


@lru_cache(maxsize=4)  # reading one takes a third of a second
def _encoding(name: str, path: Path) -> Encoding | None:
    """The encoding with the vocabulary in a file, if it is the right one."""
    from tiktoken import Encoding

    pattern, sha256 = _ENCODINGS[name]
    try:
        content = path.read_bytes()
    except OSError:
        return None  # somebody else's, or gone meanwhile
    if hashlib.sha256(content).hexdigest() != sha256:
        return None
    pairs = (line.split() for line in content.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    return Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
