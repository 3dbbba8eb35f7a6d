"""Questions made from transcripts without a model.

The rule reader of the library finds the statements of each message. A stated value gives a cloze: the sentence with
"what" in its place. A slot (a subject and a relation family) whose value changed gives a question with a stale answer;
a family of which nothing was said gives a question that the transcript does not answer. Sentences that the reader does
not understand give a cloze of their rarest noun.

Stated values are no questions in the words of their family: the reader that made the relations of a memory would answer
its own questions, and recipes that rank by relations would seem better than they are on the questions of people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from mem0_core.evaluation.questions import CHANGED, NEVER_SAID, STATED, Question, sample_questions
from mem0_core.evaluation.transcripts import Line, Transcript
from mem0_core.language.families import Family, load_families
from mem0_core.language.question import compile_question
from mem0_core.language.statements import SPEAKER, Statement, read_all_statements
from mem0_core.language.terms import extract_terms, is_stop_word, split_words

_MAX_CLOZES = 60  # of one transcript
_MAX_LINE_CHARS = 2_000  # of a message that is read
_UNANSWERABLE_SHARE = 0.25
_MIN_CONTENT_WORDS = 2  # around the gap: fewer words describe nothing
_WINDOW_WORDS = 5  # on each side of the gap
_MIN_GAP_CHARS = 4
_WH_WORDS = {"place": "Where", "person": "Who"}
_ASKED_BY_VERB = frozenset({"place", "thing", "activity"})
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_DETERMINERS = frozenset(
    {"a", "an", "the", "my", "our", "his", "her", "their", "some", "to", "at", "in", "for", "with", "of", "from", "on"}
)
_OTHERS = frozenset({"you", "your", "you're", "you'll", "you've", "yours", "let's"})
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_FIRST_PERSON = {
    "i": "{name}",
    "i'm": "{name} is",
    "i've": "{name} has",
    "i'll": "{name} will",
    "my": "{name}'s",
    "we": "{name}",
    "our": "{name}'s",
}
"""Words of a speaker for himself, and those by which others say them."""


_Fact = tuple[tuple[str, ...], tuple[str, ...]]
"""Words of a value, and ids of the lines that state it."""


@dataclass(slots=True)
class _Slot:
    """The statements of a slot, in order: ids of lines with the value that each gives."""

    possessive: str
    family: Family
    values: list[tuple[str, str]] = field(default_factory=list)
    is_over: bool = False


def make_questions(transcripts: Sequence[Transcript]) -> tuple[Question, ...]:
    """Return questions about each transcript: stated, changed and never said; the same ones at each call."""
    questions: list[Question] = []
    for transcript in transcripts:
        slots = _read_slots(transcript)
        changed = [one for slot in slots.values() if (one := _ask_changed(slot, transcript)) is not None]
        known = {line for one in changed for line in (*one.gold, *one.stale)}
        clozes = _make_clozes(transcript, _stated_values(slots.values()), known)
        wanted = max(2, round(_UNANSWERABLE_SHARE * (len(changed) + len(clozes))))
        questions += [*changed, *clozes, *sample_questions(list(_ask_unsaid(transcript, slots)), wanted)]
    unique = {question.key: question for question in questions}
    return tuple(unique.values())


# --- slots -------------------------------------------------------------------------------------------------------


def _read_slots(transcript: Transcript) -> dict[tuple[str, str], _Slot]:
    """Return the slots that the messages make certain statements about, by the owner and the family."""
    slots: dict[tuple[str, str], _Slot] = {}
    for line in _own_lines(transcript):
        for said in read_all_statements(line.text[:_MAX_LINE_CHARS]):
            owner = _possessive(said.subject, line.speaker)
            slot = slots.setdefault((owner.casefold(), said.family), _Slot(owner, load_families()[said.family]))
            _record(slot, said, line.id)
    return slots


def _own_lines(transcript: Transcript) -> Iterator[Line]:
    """Yield the messages of people: those of the user, and of every speaker with a name."""
    return (line for line in transcript.lines if line.role == "user" or line.speaker)


def _record(slot: _Slot, said: Statement, line: str) -> None:
    if said.effect in ("ends", "past"):
        slot.values = [(at, value) for at, value in slot.values if said.value and value != said.value.casefold()]
        slot.is_over = not slot.values
    elif said.value and said.is_certain:
        slot.values.append((line, said.value.casefold()))
        slot.is_over = False


def _possessive(subject: str, speaker: str | None) -> str:
    """Return the words before a noun that name its owner: "my", "Anna's", "Anna's sister's"."""
    if subject == SPEAKER:
        return f"{speaker}'s" if speaker else "my"
    if subject.startswith("my ") and speaker:
        return f"{speaker}'s {subject.removeprefix('my ')}'s"
    return f"{subject}'s"


def _ask_changed(slot: _Slot, transcript: Transcript) -> Question | None:
    """Return the question for the value of a slot; None if it did not change, or there is no way to ask for it."""
    text = _phrase(slot.possessive, slot.family) if slot.family.is_single else None
    if text is None or not slot.values or slot.is_over:
        return None
    last = slot.values[-1][1]
    gold = tuple(dict.fromkeys(line for line, value in slot.values if value == last))
    stale = tuple(dict.fromkeys(line for line, value in slot.values if value != last and line not in gold))
    return Question(text, transcript.name, CHANGED, gold, stale, last) if stale else None


def _stated_values(slots: Iterable[_Slot]) -> dict[str, list[_Fact]]:
    """Return for lines the values that they state, each with all lines that state the same."""
    facts: dict[str, list[_Fact]] = {}
    for slot in slots:
        for line, value in slot.values:
            lines = tuple(dict.fromkeys(other for other, same in slot.values if same == value))
            facts.setdefault(line, []).append((tuple(_WORD.findall(value)), lines))
    return facts


def _phrase(possessive: str, family: Family) -> str | None:
    """Return the question for a slot, in words that the library's own reader of questions recognizes."""
    template = _template_of(family.name)
    if template is None:
        return None
    owner = "I" if possessive == "my" else possessive.removesuffix("'s")
    return template.format(possessive=possessive, owner=owner, do="do" if owner == "I" else "does")


@lru_cache(maxsize=256)
def _template_of(name: str) -> str | None:
    family = load_families()[name]
    wh_word = _WH_WORDS.get(family.answer, "What")
    by_noun = [f"{'Who' if wh_word == 'Who' else 'What'} is {{possessive}} {noun}?" for noun in family.nouns]
    by_verb = [f"{wh_word} {{do}} {{owner}} {verb}?" for verb in family.verbs if not verb.startswith("be ")]
    for template in [*by_verb, *by_noun] if family.answer in _ASKED_BY_VERB else [*by_noun, *by_verb]:
        spoken = template.replace("_", " ").replace("-", " ")
        path = compile_question(spoken.format(possessive="my", owner="I", do="do")).path
        if path and name in path[-1]:
            return spoken
    return None


def _ask_unsaid(transcript: Transcript, slots: Mapping[tuple[str, str], _Slot]) -> Iterator[Question]:
    """Yield questions about families of which neither a statement nor any word occurs in the transcript."""
    spoken = {word for line in transcript.lines for word in extract_terms(line.text)}
    owners = dict.fromkeys(f"{line.speaker}'s" if line.speaker else "my" for line in _own_lines(transcript))
    for family in load_families().values():
        if not spoken.isdisjoint(_words_of(family)):
            continue
        for owner in owners:
            text = _phrase(owner, family)
            if text is not None and (owner.casefold(), family.name) not in slots:
                yield Question(text, transcript.name, NEVER_SAID, answerable=False)


def _words_of(family: Family) -> set[str]:
    """Return the terms that speak of a family."""
    phrases = [*family.nouns, *family.verbs, *family.labels]
    return {term for phrase in phrases for term in extract_terms(phrase.replace("_", " ").replace("-", " "))}


# --- clozes ------------------------------------------------------------------------------------------------------


def _make_clozes(transcript: Transcript, facts: Mapping[str, Sequence[_Fact]], known: set[str]) -> list[Question]:
    """Return the clozes of stated values, and of some other messages that no question asks for."""
    lines = list(_own_lines(transcript))
    counts = Counter(word for line in lines for word in set(split_words(line.text)))
    left = [line for line in lines if line.id not in known]
    stated = [
        one
        for line in left
        for fact in facts.get(line.id, ())
        if (one := _make_value_cloze(line, transcript, fact)) is not None
    ]
    asked = {line for one in stated for line in one.gold}
    others = [
        one for line in left if line.id not in asked and (one := _make_cloze(line, transcript, counts)) is not None
    ]
    return [*sample_questions(stated, _MAX_CLOZES), *sample_questions(others, _MAX_CLOZES)]


def _make_value_cloze(line: Line, transcript: Transcript, fact: _Fact) -> Question | None:
    """Return the cloze of a sentence without the value that it states; None if no sentence has the words of one."""
    value, lines = fact
    if not value:
        return None
    for words in _own_sentences(line):
        folded = [word.casefold() for word in words]
        for start in range(1, len(words) - len(value) + 1):
            if tuple(folded[start : start + len(value)]) == value:
                before = words[max(0, start - _WINDOW_WORDS) : start]
                around = [*before, "what", *words[start + len(value) :][:_WINDOW_WORDS]]
                text = " ".join(_third_person(around, line.speaker))
                return Question(f"{text}?", transcript.name, STATED, lines, (), " ".join(value))
    return None


def _make_cloze(line: Line, transcript: Transcript, counts: Mapping[str, int]) -> Question | None:
    """Return the cloze of the sentence with the rarest word; None if no sentence says something of the speaker."""
    best: tuple[int, int, str, str] | None = None
    for words in _own_sentences(line):
        for place in _gaps(words):
            around = [*words[max(0, place - _WINDOW_WORDS) : place], "what", *words[place + 1 :][:_WINDOW_WORDS]]
            if sum(not _is_plain(one) for one in around) < _MIN_CONTENT_WORDS:
                continue
            count = counts.get(words[place].casefold(), 1)
            text = " ".join(_third_person(around, line.speaker))
            candidate = (count, -len(words[place]), words[place], text)
            best = candidate if best is None else min(best, candidate)
    if best is None:
        return None
    return Question(f"{best[3]}?", transcript.name, STATED, (line.id,), (), best[2])


def _own_sentences(line: Line) -> Iterator[list[str]]:
    """Yield the words of the sentences in which a speaker says something about himself, and nothing to the listener."""
    for sentence in _SENTENCE.findall(_FENCE.sub(" ", line.text[:_MAX_LINE_CHARS])):
        words = _WORD.findall(sentence)
        folded = {word.casefold().replace("\u2019", "'") for word in words}
        if not sentence.rstrip().endswith("?") and folded & _FIRST_PERSON.keys() and not folded & _OTHERS:
            yield words


def _gaps(words: Sequence[str]) -> Iterator[int]:
    """Yield the places of words with content that follow a determiner or preposition: mostly nouns."""
    for place in range(1, len(words)):
        word = words[place]
        is_led = not _DETERMINERS.isdisjoint(one.casefold() for one in words[max(0, place - 2) : place])
        if is_led and len(word) >= _MIN_GAP_CHARS and not _is_plain(word) and "'" not in word:
            yield place


def _is_plain(word: str) -> bool:
    folded = word.casefold()
    return is_stop_word(folded) or folded.partition("'")[0] in _FIRST_PERSON or folded == "what"


def _third_person(words: Sequence[str], speaker: str | None) -> list[str]:
    """Return the words with the speaker's name in place of the first person, or after them."""
    if speaker is None:
        return list(words)
    words_of_others = [
        _FIRST_PERSON.get(word.casefold().replace("’", "'"), word).format(name=speaker) for word in words
    ]
    return words_of_others if words_of_others != list(words) else [speaker, "said", *words_of_others]
