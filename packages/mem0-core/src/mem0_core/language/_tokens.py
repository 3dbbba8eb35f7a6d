"""Words of a text in two forms, as written and as they are compared, with its sentences, quotations and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mem0_core._system.text_caches import text_cache
from mem0_core.domain.records import Entity
from mem0_core.language._grammar import Grammar, load_grammar

MAX_NAME_WORDS = 6
_MAX_NAME_CHARS = 40
_MAX_CACHED_CHARS = 4_000
_MAX_SALUTATION = 6  # tokens
_TOKEN = re.compile(
    r"(?:[A-Z]\.){2,}|(?:[MD]rs?|[MS]t|[A-HJ-Z])\.(?= ?\w)|['’]s\b|\w+(?:(?!['’]s\b)['’&+/-]\w+|\.[a-z]\w*)*[+#]*|\n|\S"
)
_TITLE = re.compile(r"[\"“«]((?!I\b)\w[^\s\"“”«»]{0,30}(?: (?!I\b)[^\s\"“”«»]{1,30}){0,5}(?<![.,?]))[\"”»]")
_UNREADABLE = re.compile(r"[\0\ud800-\udfff]")
_CONTRACTION_END = re.compile("n?['’]")
_MONTH_NAMES = frozenset({"april", "may", "june", "august"})
_BEFORE_NAMES = frozenset({"and", "&", "n", "called", "named"})
_SENTENCE_ENDS = frozenset(".!?…\n。！？")


class TokenizedText:
    """Tokens of a text.

    Attributes:
        words: as written, with slips and contractions written out ("im" is "i", "am").
        lows: in lower case; empty for words of a quotation, which another person may have said.
        starts: indexes of the first tokens of the sentences.
        titles: folded name -> entity, for short quotations.
        is_casual: True for a text in lower case, in which names may be in lower case too.
    """

    def __init__(self, text: str, grammar: Grammar) -> None:
        text = _UNREADABLE.sub(" ", text)
        if grammar.slurred_ends.search(text) is not None:
            text = grammar.slurred.sub(r"\1's", text)
        text = text.replace(" w/ ", " with ")
        self._grammar = grammar
        self.titles = {title.casefold(): Entity(title) for title in _TITLE.findall(text)}
        self.words: list[str] = []
        self.lows: list[str] = []
        self.starts = [0]
        self._is_name: list[bool] = []
        self.is_casual = any(map(str.isalpha, text)) and text == text.lower()
        tokens = _TOKEN.findall(_TITLE.sub(' "" ', text) if self.titles else text)
        has_apostrophe = "'" in text or "’" in text
        self._add_tokens(tokens[_salutation_end(tokens, grammar) :], has_apostrophe=has_apostrophe)
        self._find_adjectives_in_names()

    def _find_adjectives_in_names(self) -> None:
        """Take capitalized adjectives after a preposition as names: "in Nice", "at Great Ormond Street"."""
        names = self._grammar.words.get("name_adjectives", frozenset())
        for index in range(1, len(self.words)):
            if self.lows[index] in names and self.lows[index - 1] in self._grammar.words["name_leads"]:
                self._is_name[index] |= self.words[index][0].isupper()

        for index in range(1, len(self.words) - 1):
            is_month = self.lows[index] in _MONTH_NAMES and self.words[index][0].isupper()
            before = self.lows[index - 1]
            if is_month and (before in self._grammar.kin or before in _BEFORE_NAMES) and index > 1:
                is_list = before not in {"and", "&", "n"} or self._is_name[index - 2]
                self._is_name[index] |= is_list and not self.lows[index + 1].isdigit()

    def _add_tokens(self, tokens: Iterable[str], *, has_apostrophe: bool) -> None:
        words, lows, is_name = self.words, self.lows, self._is_name
        slips, casual = self._grammar.slips, self._grammar.casual
        is_quoted = False
        for word in tokens:
            if word in '"“”«»\n':  # a quotation that nothing closes lasts to the end of its line
                is_quoted = not is_quoted if word == '"' else word in "“«"
            low = word.lower()
            if has_apostrophe:
                low = low.replace("’", "'")
            self.is_casual |= word in casual
            parts = slips.get(low)
            if parts is None and has_apostrophe and low.endswith("n't") and len(low) > 3:
                parts = (low[:-3], "not")
            if parts is None:
                words.append(word)
                lows.append("" if is_quoted else low)
                is_name.append(word[0].isupper() and self._can_be_name(word))
            else:
                words += parts
                lows += [""] * len(parts) if is_quoted else parts
                is_name += [False] * len(parts)
            if word in _SENTENCE_ENDS:
                self.starts.append(len(words))

    def low(self, index: int) -> str:
        """Return the compared form of a token; empty outside the text."""
        return self.lows[index] if 0 <= index < len(self.lows) else ""

    def _can_be_name(self, word: str) -> bool:
        if len(word) > _MAX_NAME_CHARS:
            return False
        low = word.lower()
        stem = low if low.isalnum() else _CONTRACTION_END.split(low)[0]
        return stem not in self._grammar.no_names

    def is_name(self, index: int) -> bool:
        """Return True if a token is a capitalized word that can be part of a name."""
        return index < len(self._is_name) and self._is_name[index]

    def name_end(self, index: int, end: int) -> int:
        """Return the end of the name that begins at `index` (``University of Oxford``); `index` if none begins."""
        is_name = self._is_name
        if index >= len(is_name) or not is_name[index]:
            return index
        connectors = self._grammar.words["connectors"]
        stop = after = index
        last = min(end, index + MAX_NAME_WORDS, len(is_name))
        while after < last and is_name[after]:
            stop = after = after + 1
            while after < min(end, stop + 2) and self.lows[after] in connectors:
                after += 1
        return stop

    def name_spans(self) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each name."""
        stop = 0
        for start, is_name in enumerate(self._is_name):
            if is_name and start >= stop:
                stop = self.name_end(start, len(self.words))
                yield start, stop

    def join(self, start: int, end: int) -> str:
        """Return the words from `start` to `end` as written."""
        return " ".join(self.words[start:end]).replace(" '", "'").replace(" ’", "’").replace(" - ", "-")

    def sentences(self) -> list[tuple[int, int]]:
        """Return the start and end of each sentence, its final mark left out."""
        ends = [*(start - 1 for start in self.starts[1:]), len(self.words)]
        return list(zip(self.starts, ends, strict=True))


def tokenize(text: str, language: str) -> TokenizedText:
    """Return the tokens of a text, to read only: an add needs those of one text for names, statements and relations."""
    if len(text) > _MAX_CACHED_CHARS:
        return _tokenize_long(text, language)
    return _tokenize_short(text, language)


@text_cache(2)  # a long text may take megabytes
def _tokenize_long(text: str, language: str) -> TokenizedText:
    return TokenizedText(text, load_grammar(language))


@text_cache(64)
def _tokenize_short(text: str, language: str) -> TokenizedText:
    return TokenizedText(text, load_grammar(language))


def _salutation_end(tokens: Sequence[str], grammar: Grammar) -> int:
    """Return the index after ``Dear Ann,``, which names the reader of a letter; 0 without it."""
    if not tokens or tokens[0].lower() not in grammar.words["salutations"]:
        return 0
    return next((index + 1 for index, token in enumerate(tokens[:_MAX_SALUTATION]) if token in ",!:\n"), 0)
