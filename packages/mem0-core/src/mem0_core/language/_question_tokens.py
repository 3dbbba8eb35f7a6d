"""Tokens of a question, ready to compile: contractions written out, slips corrected, times and anchors taken off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from mem0_core._system.records import dataclass
from mem0_core.language._question_words import (
    BE,
    LISTS,
    Replacements,
    correct_word,
    expand,
    is_known,
    nearest_auxiliary,
    replacements,
    tails,
)
from mem0_core.language._word_forms import is_past_form

Tense = Literal["now", "past", "future", "any"]
Anchor = tuple[Literal["before", "after", "during"], str]

TOKEN = re.compile(
    r"(?P<word>\w+(?:['’.&+-](?!s\b)\w+)*)"
    r"|(?P<quoted>\"[^\"\n]{1,80}\"|“[^”\n]{1,80}”|«[^»\n]{1,80}»|(?<!\w)'[\w-][^'\n]{0,40}'(?!\w))"
    r"|(?P<owns>(?<=[\w\"”»'])['’]s\b|(?<=s)['’](?=\s))|(?P<stop>\S)"
)
_MAX_TOKENS = 60  # of the sentence that is compiled
_MIN_FREE_TOKENS = 2
_SENTENCE_ENDS = frozenset("?!.;\n")
_NO_NAMES = frozenset[str]().union(
    *(LISTS[name] for name in ("no_names", "wh", "aux", "self", "owners", "openers", "articles"))
)


class Token(NamedTuple):
    """A word or sign of a question: its kind (quoted, owns, word, stop), text, lowercase form and offset."""

    kind: str
    text: str
    low: str
    at: int


@dataclass(slots=True)
class PreparedText:
    """A question without the words that say when.

    Attributes:
        has_time: True if it names a time.
        anchor: the event to which its time is relative.
        is_asked: True if it ends in a question mark.
        is_complete: True if every value is wanted, as in "list every home".
    """

    tokens: list[Token]
    tense: Tense = "any"
    has_time: bool = False
    anchor: Anchor | None = None
    is_asked: bool = False
    is_complete: bool = False


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of the question in a text: its last sentence with a question mark, else its last one."""
    return _expand(_choose_sentence(text))


def prepare(tokens: Sequence[Token], text: str) -> PreparedText:
    """Take off the words of a question that say when, or only open it."""
    prepared = PreparedText(_take_tail(list(tokens)), is_asked=bool(tokens) and tokens[-1].text == "?")
    prepared.tokens = _take_lead(_replace_phrases(prepared.tokens, replacements("anchors")))
    prepared.tense = _read_tense(prepared.tokens)
    for pattern in (_SAID, _NOW_PHRASES):
        prepared.tokens = _remove(prepared.tokens, pattern)
    _take_anchor(prepared, text)
    prepared.tokens = _unfold_having(_replace_phrases(prepared.tokens, replacements()))
    _take_times(prepared)
    while prepared.tokens and prepared.tokens[-1].kind == "stop":
        prepared.tokens.pop()
    return prepared


def is_name(token: Token, *, opens: bool = False) -> bool:
    """Return True for a capitalized word that can be a name; `opens` is True for the first word of a sentence."""
    if token.kind != "word" or not token.text[0].isupper():
        return False
    return token.low not in _NO_NAMES and not (opens and is_known(token.low))


def _choose_sentence(text: str) -> list[Token]:
    sentences: list[list[Token]] = [[]]
    asked: list[Token] | None = None
    last_end, has_lines = 0, "\n" in text
    for match in TOKEN.finditer(text):
        kind, word = match.lastgroup or "", match.group()
        if has_lines and "\n" in text[last_end : match.start()] and sentences[-1]:
            sentences.append([])
        last_end = match.end()
        sentence = sentences[-1]
        sentence.append(Token(kind, word, word.lower().replace("’", "'"), match.start()))
        if kind == "stop" and word in _SENTENCE_ENDS and not _is_abbreviation(sentence, text):
            if word == "?":
                asked = sentence
            sentences.append([])
    if asked is None:
        asked = next((sentence for sentence in reversed(sentences) if sentence), [])
    return asked if len(asked) <= _MAX_TOKENS else []


def _is_abbreviation(sentence: Sequence[Token], text: str) -> bool:
    """Return True if a sentence ends in the dot of a title or an initial, as in "Dr. Okafor"."""
    if sentence[-1].text != "." or len(sentence) < 2:
        return False
    before = sentence[-2].low
    has_more = bool(text[sentence[-1].at + 1 : sentence[-1].at + 3].strip())
    return has_more and (before in LISTS["titles"] or (len(before) == 1 and before != "i"))


def _expand(tokens: Sequence[Token]) -> list[Token]:
    found: list[Token] = []
    for index, token in enumerate(tokens):
        full = expand(token.low) if token.kind == "word" else None
        if full is not None:
            found += [Token("word", word, word, token.at) for word in full]
        elif token.kind == "owns" and index and tokens[index - 1].low in LISTS["wh"] | {"it", "that", "there", "let"}:
            found.append(Token("word", "is", "is", token.at))
        elif token.text == "." and index < len(tokens) - 1 and found:
            found[-1] = found[-1]._replace(text=f"{found[-1].text}.")
        else:
            found.append(token)
    return found


def correct_slips(tokens: Sequence[Token]) -> list[Token]:
    """Replace unknown words by words of the vocabulary that are spelled nearly so, but never a name."""
    tokens = list(tokens)
    if tokens and tokens[0].low in ("were", "wer") and len(tokens) > 2 and nearest_auxiliary(tokens[1].low):
        tokens[0] = Token("word", "where", "where", tokens[0].at)
    found: list[Token] = []
    for index, token in enumerate(tokens):
        before = found[-1] if found else None
        if token.kind == "word" and token.low.isalpha():
            word = _correct_in_place(token.low, before)
            if word != token.low and not _may_be_name(tokens, index, before):
                token = Token("word", word, word, token.at)
        found.append(token)
    return found


def _correct_in_place(low: str, before: Token | None) -> str:
    after_wh = nearest_auxiliary(low) if before is not None and before.low in LISTS["wh"] else ""
    return after_wh or correct_word(low)


def _may_be_name(tokens: Sequence[Token], index: int, before: Token | None) -> bool:
    """Return True for a word in the place of a name: capitalized, after an auxiliary, or owner of something."""
    token = tokens[index]
    if before is None:
        follows = tokens[1:2]
        return bool(follows) and follows[0].kind == "owns"
    if token.text[0].isupper():
        return True
    owns = tokens[index + 1 : index + 2]
    if owns and owns[0].kind == "owns" and before.low not in LISTS["owners"]:
        return True
    return before.low in LISTS["aux"] and len(tokens) > index + 1 and before.low not in {"to"}


# --- words that say when -------------------------------------------------------------------------------------------

_NOW = re.compile(r"\b(?:now|nowadays|currently|these days|at the moment|at present|right now|presently|today|still)\b")
_PAST = re.compile(r"\b(?:did|was|were|used to|use to|had|ex|former|formerly|previously|in the past|ago)\b|\bex-")
_FUTURE = re.compile(r"\b(?:will|going to|gonna|shall|next (?:week|month|year|summer|winter))\b")
_PRESENT = re.compile(r"\b(?:am|is|are|do|does|has|have)\b")


def _take_tail(tokens: list[Token]) -> list[Token]:
    """Return tokens without the signs at their end, and without a tag such as ", right"."""
    end = len(tokens)
    while end and tokens[end - 1].kind == "stop":
        end -= 1
    comma = next((index for index in range(end - 1, 0, -1) if tokens[index].text == ","), 0)
    added = tuple(token.low for token in tokens[comma + 1 : end])
    if comma > 1 and (added in tails() or added[:2] in _DESCRIPTIONS):
        end = comma
    last = tokens[end - 1] if end > 2 else None
    if last is not None and last.low in _ASKED_LAST and tokens[0].low not in LISTS["wh"]:
        return [last, *tokens[: end - 1]]  # "my sister lives where"
    return tokens[:end]


_DESCRIPTIONS = (("the", "one"), ("the", "ones"))  # "my best friend, the one I work with"
_ASKED_LAST = frozenset({"what", "where", "who", "whom", "when"})


def _read_tense(tokens: Sequence[Token]) -> Tense:
    said = " ".join(token.low for token in tokens)
    reported = _REPORTED.search(said)
    if reported is not None and _BACKSHIFT.search(said, reported.end()):  # "what did I say my job was"
        said = said[: reported.start()] + _BACKSHIFT.sub("is", said[reported.end() :])
    if _FUTURE.search(said) and " to " not in said.partition("going")[2][:4]:
        return "future"
    if _PAST.search(said) or (len(tokens) > 1 and tokens[0].low == "who" and is_past_form(tokens[1].low)):
        return "past"
    return "now" if _NOW.search(said) or _PRESENT.search(said) else "any"


_REPORTED = re.compile(r"\bdid i (?:ever )?(?:say|mention|tell you)\b")
_BACKSHIFT = re.compile(r"\b(?:was|were)\b")
_LEAD = re.compile(
    r"(?:(?:(?:can|could|would|will) you (?:please )?)?(?:kindly )?(?:tell|remind|show|give|list|name)(?: (?:me|us))?"
    r"(?: again| please)?(?: of| about)?"
    r"|(?:do |can |did )?you (?:happen to |surely |must )?(?:still )?(?:know|remember|recall)"
    r"|(?:can you |please )?help me (?:to )?(?:remember|recall)|(?:refresh|jog) my memory(?: on| about| of)?"
    r"|i (?:want|would like|had like|would love|had love|need|am trying|try|have) to (?:know|remember|recall)"
    r"|i (?:do|can|could) not (?:quite |really |for the life of me )?(?:know|remember|recall)"
    r"|i (?:wonder|forgot|forget|have forgotten|keep forgetting)"
    r"|(?:i am |i was )?(?:just )?(?:wondering|curious|not sure|unsure)(?: about)?|let me know"
    r"|please|pls|plz|so|hey|hi|hello|ok|okay|and|but|um|hmm|oh|yo|wait|sorry|right"
    r"|well|remember|(?:do you have |got )?(?:any|no) (?:idea|clue)|by the way|btw|quick question"
    r"|what can you tell me about|what do you know about|just|again"
    r"|(?:at|in|for|to|from|on|with|by)(?= (?:which|what|whom)\b))(?: ,)?(?: |$)"
)
_SAID = re.compile(
    r"\b(?:did i (?:ever )?(?:say|mention|tell you)(?: that)?|do you think|have i said|i said"
    r"|(?:is|was) it(?: that)?(?= (?:i|we|my|our)\b))(?: |$)"
)
_NOW_PHRASES = re.compile(
    r"\b(?:right now|nowadays|now|currently|these days|at the moment|at present|presently|today|still|again|anymore"
    r"|any more|by now|so far|ever|actually|exactly|really|usually|please|currently|recently|lately"
    r"|anywhere|somewhere|someplace|as of now|originally|back then|then"
    r"|at the time|once|previously|formerly|in the past|again)(?: |$)"
)


_HAVING = {"have": "do", "has": "does"}


def _replace_phrases(tokens: Sequence[Token], phrases: Replacements) -> list[Token]:
    """Replace phrases by the words that the grammar knows."""
    if phrases.keys().isdisjoint([token.low for token in tokens]):
        return list(tokens)
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        words: tuple[str, ...] = (token.low,)
        for phrase, meant in phrases.get(token.low, ()) if token.kind == "word" else ():
            if tuple(one.low for one in tokens[index : index + len(phrase)]) == phrase:
                words, index = meant, index + len(phrase) - 1
                break
        found += [token] if words == (token.low,) else [Token("word", word, word, token.at) for word in words]
        index += 1
    return found


def _unfold_having(found: list[Token]) -> list[Token]:
    """Replace "what have I got" by "what do I have"."""
    having = next((place for place, token in enumerate(found) if token.low in _HAVING), None)
    got = next((place for place, token in enumerate(found) if token.low == "got"), None)
    if having is not None and got is not None and having < got and _is_object(found[got + 1 : got + 2]):
        found[having] = _respell(found[having], _HAVING[found[having].low])
        found[got] = _respell(found[got], "have")
    return found


def _respell(token: Token, word: str) -> Token:
    return token if word == token.text else Token("word", word, word, token.at)


def _is_object(following: Sequence[Token]) -> bool:
    """Return True if what follows "got" shows that it means to own: nothing, or an object."""
    return all(token.kind == "stop" or token.low in LISTS["articles"] | {"any"} for token in following)


def _take_lead(tokens: list[Token]) -> list[Token]:
    """Return tokens without words that only open a question ("can you tell me")."""
    while match := _LEAD.match(" ".join(token.low for token in tokens[:12])):
        count = len(match.group().split())
        if count == 0 or count >= len(tokens):
            break
        tokens = tokens[count:]
    return tokens


def _remove(tokens: list[Token], pattern: re.Pattern[str]) -> list[Token]:
    """Return tokens without the phrases that a pattern finds, of which each ends in a space or the end."""
    said = " ".join("_" if token.kind == "quoted" else token.low for token in tokens)
    gone: set[int] = set()
    for match in pattern.finditer(said):
        first = said.count(" ", 0, match.start())
        gone.update(range(first, first + len(match.group().split())))
    if not gone or len(tokens) - len(gone) < _MIN_FREE_TOKENS:
        return tokens
    return [token for index, token in enumerate(tokens) if index not in gone]


_ANCHORS = {"before": "before", "until": "before", "till": "before", "after": "after", "since": "after"}
_ANCHORS |= {"during": "during", "while": "during", "when": "during"}
_BEING = re.compile(
    r"^(?:(?:i|we|he|she|they)\s+(?:was|were|am|are|still)?\s*(?:living|working|studying|lived|worked|studied)?\s*"
    r"(?:at|in|with|for|on)\s+)",
    re.I,
)


def _take_anchor(prepared: PreparedText, text: str) -> None:
    """Take off "before Oslo", at the end or in front of a comma; a time such as "before 2021" stays."""
    tokens = prepared.tokens
    for index, token in enumerate(tokens):
        kind = _ANCHORS.get(token.low) if token.kind == "word" else None
        if kind is None or (index == 0 and token.low == "when" and not _has_comma(tokens)):
            continue
        if index and (tokens[index - 1].low in LISTS["wh"] | BE | {"and"} or tokens[0].low == "since"):
            continue
        if index == 0:
            end = next((place for place, one in enumerate(tokens) if one.text == ","), 0)
            if not end:
                continue
        else:
            end = len(tokens)
            while end > index + 1 and tokens[end - 1].kind == "stop":
                end -= 1
        inside = tokens[index + 1 : end]
        if len(inside) == 1 and inside[0].low in LISTS["self"] | LISTS["no_names"]:
            continue
        if inside and all(
            _is_time(tokens, place) or one.low in LISTS["time_leads"] for place, one in _number_from(index, inside)
        ):
            continue
        said = text[inside[0].at : inside[-1].at + len(inside[-1].text)] if inside else ""
        if said.lower() in _THIS:
            said = ""
        if kind == "during":
            said = _BEING.sub("", said) or said
        prepared.anchor = (kind, said.strip())  # type: ignore[assignment]
        prepared.tokens = [*tokens[:index], *tokens[end:]] if index else tokens[end + 1 :]
        return


_THIS = frozenset({"this", "that", "it", "this one", "that one", "the current one", "the one i have now", "now"})


def _number_from(index: int, inside: Sequence[Token]) -> list[tuple[int, Token]]:
    return list(enumerate(inside, start=index + 1))


def _has_comma(tokens: Sequence[Token]) -> bool:
    return any(token.text == "," for token in tokens)


def _is_time(tokens: Sequence[Token], index: int) -> bool:
    """Return True for a word that names a time: a year, a month, "yesterday"."""
    token = tokens[index]
    if token.low.isdigit():
        return len(token.low) == 4 and token.low[:2] in ("19", "20")
    if token.low == "ago":
        return True
    if token.low not in LISTS["time_nouns"] or token.kind != "word":
        return False
    before = tokens[index - 1].low if index else ""
    follows = tokens[index + 1] if index + 1 < len(tokens) else None
    if follows is not None and follows.kind == "owns":
        return False
    if token.low in ("march", "may", "spring", "fall", "mar", "sun", "sat", "pandemic"):
        return before in LISTS["time_leads"]
    return before not in LISTS["wh"] and before not in LISTS["owners"]


_NUMBER = re.compile(r"\d{1,2}(?:st|nd|rd|th)?$|(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|few|couple)$")


def _take_times(prepared: PreparedText) -> None:
    """Take off the words that name a time, with the words that lead to them."""
    tokens = prepared.tokens
    gone: set[int] = set()
    for index in range(1, len(tokens)):
        if not _is_time(tokens, index):
            continue
        gone.add(index)
        place = index - 1
        while place >= 0 and (tokens[place].low in LISTS["time_leads"] or _NUMBER.match(tokens[place].low)):
            gone.add(place)
            place -= 1
        place = index + 1
        while place < len(tokens) and (_NUMBER.match(tokens[place].low) or tokens[place].text == ","):
            gone.add(place)
            place += 1
    prepared.has_time = bool(gone)
    if len(tokens) - len(gone) >= _MIN_FREE_TOKENS:
        prepared.tokens = [token for index, token in enumerate(tokens) if index not in gone]
