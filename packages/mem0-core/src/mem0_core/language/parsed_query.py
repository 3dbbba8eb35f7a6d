"""Query of a search or a traversal, parsed once where a call enters and passed on from there."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cached_property

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.domain.records import Entity, is_valid_text
from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import QueryError
from mem0_core.language import rule_extractor as rules
from mem0_core.language.messages import mentions_speaker
from mem0_core.language.question import Question, compile_question, reaches_back
from mem0_core.language.temporal import TimeSpan, is_about_time, parse_time_spans
from mem0_core.language.terms import extract_terms, fold_names, is_stop_word, split_words

_MAX_QUERY_CHARS = 4_000  # characters that are searched for terms, names and times
_MAX_TERMS = 64
_NO_STATE = re.compile(r"\b(?:ever|should|you think|how many)\b", re.IGNORECASE)  # of a whole life, advice, a sum


@dataclass(frozen=True)
class ParsedQuery:
    """Text of a query, with everything that can be read from it without a model or a store.

    Each part is parsed on first use and then kept, so a search by vectors alone pays for none of them.

    Attributes:
        text: the query as given.
        reference: the day from which relative times count ("yesterday").
    """

    text: str
    reference: date

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Distinct search terms, in the order of the text."""
        return tuple(dict.fromkeys(extract_terms(self._head)))[:_MAX_TERMS]

    @cached_property
    def content_words(self) -> tuple[str, ...]:
        """Distinct words that are no stop words, unstemmed."""
        return tuple(word for word in dict.fromkeys(split_words(self._head)) if not is_stop_word(word))[:_MAX_TERMS]

    @cached_property
    def entities(self) -> tuple[Entity, ...]:
        """Entities that the query names, quoted ones first."""
        return rules.entities(self.text)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Distinct names in the query, folded as the names of memories are."""
        return fold_names(self.entities if self._head == self.text else rules.entities(self._head))

    @cached_property
    def time_spans(self) -> tuple[TimeSpan, ...]:
        """Spans of days that the query names."""
        return parse_time_spans(self._head, self.reference)

    @cached_property
    def is_about_time(self) -> bool:
        """True if the query names a time or asks for one."""
        return is_about_time(self.text, self.time_spans)

    @cached_property
    def mentions_speaker(self) -> bool:
        """True if "I", "me" or "my" occur in the query."""
        return mentions_speaker(self.text)

    @cached_property
    def question(self) -> Question:
        """The path through the graph that the query asks for, and the kind of answer that it wants."""
        return compile_question(self.text, spans=lambda: self.time_spans, entities=lambda: self.entities)

    @cached_property
    def asks_of_now(self) -> bool:
        """True if the query asks for one thing that holds now."""
        question = self.question
        is_one = not (question.is_list or question.asks_assistant or question.asks in ("when", "count"))
        if question.tense != "now" or not is_one or reaches_back(question):
            return False
        if question.path or _NO_STATE.search(self.text) is not None:
            return bool(question.path)
        from mem0_core.language.utterances import is_question  # compiles long patterns

        return is_question(self.text)

    def with_text(self, text: str) -> ParsedQuery:
        """Return the query with another text; itself if the text is the same."""
        return self if text == self.text else replace(self, text=text)

    @property
    def _head(self) -> str:
        return self.text[:_MAX_QUERY_CHARS]


def parse_query(text: str, *, name: str = "query", reference: date | None = None) -> ParsedQuery:
    """Check a query and make it ready for parsing.

    Args:
        name: argument of the public method that it is.
        reference: the day from which relative times count; today in UTC by default.

    Raises:
        QueryError: `text` is no string, is empty or blank, or is not valid Unicode.
    """
    given: object = text
    if not isinstance(given, str):
        is_list = isinstance(given, (list, tuple))
        step = "search for each text by itself" if is_list else f"pass, for example, {name}='Where do I live?'"
        raise QueryError(f"{name} must be one text, not {describe_value(given)}; {step}", query=given)
    if not text.strip():
        raise QueryError(
            f"{name} is an empty text, {text!r}; pass a text, or list all memories with get_all", query=text
        )
    if not is_valid_text(text):
        raise QueryError(f"{name} is not valid Unicode: it holds a lone surrogate", query=text)
    day = reference or datetime.now(UTC).date()
    return _keep_parsed(text, day) if len(text) <= _MAX_QUERY_CHARS else ParsedQuery(text, day)


@text_cache(256)
def _keep_parsed(text: str, reference: date) -> ParsedQuery:
    """Return one object for equal queries: a turn of an agent often asks the same in several ways."""
    return ParsedQuery(text, reference)
