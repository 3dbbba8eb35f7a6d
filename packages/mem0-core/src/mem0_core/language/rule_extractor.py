"""Rule-based extraction of entities and relations: a table of English phrases, with high precision and short reach.

A phrase counts only if its subject (I, we, a capitalized name) is directly before it, begins its clause and agrees with
the verb, and if its object is a name or a few plain words. Questions, wishes, suppositions, commands and quotations are
ignored, and so are subjects such as "she" or "my sister": the rules miss much, so that little is wrong.
Every token is visited a bounded number of times, so the time taken is linear in the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from mem0_core.domain.records import Entity, Triplet

__all__ = ["EndedRelation", "RuleExtraction", "entities", "extract_by_rules"]


@dataclass(frozen=True, slots=True)
class EndedRelation:
    """A relation that no longer holds; a `destination` of None means any but those that the same text states."""

    source: str
    relationship: str
    destination: str | None


@dataclass(frozen=True, slots=True)
class RuleExtraction:
    """Statements of a text.

    Attributes:
        entities: named entities, and both ends of `relations`.
        ended: relations that the text says are over.
    """

    entities: tuple[Entity, ...] = ()
    relations: tuple[Triplet, ...] = ()
    ended: tuple[EndedRelation, ...] = ()


# Forms of the verb (`be`: after a form of to be; `event`: as it is) with the words that follow | relation, kind of
# object (`name`, `names`: capitalised; `thing`, `things`: some words; `job`; `games`; `none`), its type, effect (`new`
# ends what was before, `end` only ends, `one` ends it where it is said to be so now; a relation: ends that one).
_PHRASES = """
base: live in; s: lives in; ing: living in; done: lived in | lives_in name place one
event: moved to, moved back to, moved here to, relocated to | lives_in name place new
event: moved from, moved here from, moved away from, moved out of | lives_in name place end
be: from, originally from; base: come from; s: comes from | is_from name place -
event: was born in | born_in name place -
base: work at, work for; s: works at, works for; ing: working at; done: worked at | works_at thing organization one
event: started working at, got a job at, got a new job at | works_at thing organization new
event: quit my job at, left my job at, lost my job at, was fired from, got fired from | works_at thing organization end
event: left | works_at name organization end
event: quit my job, left my job, lost my job | works_at none - end
base: work as; s: works as; ing: working as; done: worked as | works_as thing - one
be: a, an | works_as job - one
base: study at; s: studies at; ing: studying at | studies_at name organization one
event: studied at, graduated from | studied_at name organization -
base: like, love, enjoy; s: likes, loves, enjoys; ing: liking; be: a fan of, a big fan of | likes things - dislikes
base: hate, dislike; s: hates, dislikes; ing: hating; event: can't stand, cannot stand | dislikes things - likes
base: prefer; s: prefers | prefers things - -
be: allergic to | allergic_to things - -
be: married to; event: married, got married to | married_to name person -
base: speak; s: speaks | speaks names language -
base: play; s: plays; ing: playing | plays games - -
base: own; s: owns | owns thing - -
"""
_LISTS = """
pets: dog cat puppy kitten rabbit hamster parrot horse turtle
kin: sister brother mother mom mum father dad wife husband son daughter cousin aunt uncle niece nephew grandmother boss
 grandma grandfather grandpa partner girlfriend boyfriend fiancé fiancée friend roommate colleague neighbor coworker
jobs: accountant actor actress architect artist author baker barista carpenter chef coach consultant dancer dentist
 designer developer doctor driver editor electrician engineer farmer filmmaker firefighter lawyer journalist librarian
 mechanic musician nurse painter photographer pilot plumber poet programmer researcher scientist singer teacher writer
games: piano guitar violin cello drums flute clarinet tennis soccer football basketball volleyball hockey golf chess
peoples: american british english french german italian spanish irish chinese indian jewish catholic muslim christian
adjectives: older younger elder eldest youngest oldest little big best good close dear twin new
articles: a an the some another
roles: am=be is=be are=be be=be been=be 's=be have=have has=have do=do does=do no=not not=not never=not to=
 used=used quit=stop stopped=stop now=now longer= really= also= still= just=partly always=partly actually= currently=
leads: and but so because plus also well yes yeah yep oh hi hey actually honestly today recently currently now
unreal: if unless wish maybe perhaps imagine suppose pretend whether would could might should hope hoping probably
 dream dreamed almost nearly says said told who which
asks: how what where when why who can could do does did would will is are
joins: , and or &
goes_on: but because so since anymore any either now yet
breaks: when while as which who where for with by after before if although though at in on from during until than then
 over more every each last next today yesterday tomorrow lately recently too again ago most especially just very to like
 about this these well even without nowadays
vague: it that them they you he she we i me him us his her my our your their its everything anything something nothing
 everyone someone one ones way idea fact lot lots bit kind sort part not being all having getting be same other things
 thing stuff such here there living time moment myself both a an variety what how why
stop: the or some another was were had of nope ok okay hello thanks thank congrats congratulations sorry please great
 let nice good wow cool awesome amazing sure nobody people many haha lol omg glad look see check keep bye once finally
 monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
 october november december sometimes tell aww ca wo which any if
connectors: of the de del der van von da di du la le el &
"""
_WORDS = {name: frozenset(words.split()) for name, words in re.findall(r"^(\w+): (.*(?:\n .*)*)", _LISTS, re.MULTILINE)}
_JOINS, _GOES_ON, _BREAKS = _WORDS["joins"], _WORDS["goes_on"], _WORDS["breaks"] | _WORDS["goes_on"]
_FIRST_PERSON = {"i": "", "we": "", "i'm": "be", "we're": "be", "i've": "have", "we've": "have"}
# Role of a word between subject and verb; and form of the verb -> the auxiliaries that it agrees with.
_ROLES = {word: role for word, _, role in (pair.partition("=") for pair in _WORDS["roles"])}
_ROLES |= {f"{word}n't": f"{role} not" for word, role in _ROLES.items() if role in {"be", "have", "do"}}
_AGREES = {"base": ",do,used", "base of a name": "do,used", "s": "", "done": "have", "event": ",have"}
_AGREES |= {"ing": "be,have be,stop,have stop", "be": "be,have be,used be"}
_STOP = _BREAKS.union(_ROLES, _FIRST_PERSON, *(_WORDS[name] for name in ("stop", "vague", "unreal", "leads", "asks")))
_RELATIVES = {word + end: (word, "person") for word in _WORDS["kin"] for end in ("", "s")} | {"name": ("name", "")}
_RELATIVES |= {word + end: ("has_pet", "animal") for word in _WORDS["pets"] for end in ("", "s")}
_NAMING_PHRASE = re.compile(r"(?:(?:'s name is|(?:is|are) (?:called|named)|called|named|is|are)\b(?!'))?")
_WORD, _PART = re.compile(r"\w|'s"), re.compile(r"\w|'s|[,&]")
_TOKEN = re.compile(
    r"(?:[A-Z]\.){2,}|(?:[MD]rs?|[MS]t|[A-HJ-Z])\.(?= ?\w)|['’]s\b|\w+(?:(?!['’]s\b)['’&+/-]\w+|\.[a-z]\w*)*[+#]*|\n|\S"
)
_NAMING = re.compile(r"[^\x00-\x40\x5b-\x7f]|\"")  # a capital, a quotation mark, any other alphabet
_TITLE = re.compile(r"[\"“«]((?!I\b)\w[^\s\"“”«»]{0,30}(?: (?!I\b)[^\s\"“”«»]{1,30}){0,5}(?<![.,?]))[\"”»]")
_HEADS: dict[str, list[tuple[list[str], str, list[str]]]] = {}
"""First word -> the phrases that it can begin, longest first: their words, the form of the verb, what it says."""
for _forms, _about in (line.split("|") for line in _PHRASES.strip().splitlines()):
    for _form, _phrases in (part.split(":") for part in _forms.split(";")):
        for _words in map(str.split, _phrases.split(",")):
            _HEADS.setdefault(_words[0], []).append((_words, _form.strip(), _about.split()))
            _HEADS[_words[0]].sort(key=lambda head: -len(head[0]))


def entities(text: str) -> tuple[Entity, ...]:
    """Return the entities that a text names: quoted, then capitalized spans.

    A span that only opens a sentence counts if the text states a relation of it.
    """
    if not _NAMING.search(text):
        return ()
    return tuple(_TextReader(text, "").names().values())


def extract_by_rules(text: str, *, speaker: str) -> RuleExtraction:
    """Return the entities of a text and its plain statements; `speaker` is the name for I, me and my."""
    reader = _TextReader(text, speaker.strip())
    reader.read()
    found, said = reader.names(), [each for of_one in reader.said.values() for each in of_one.values()]
    relations = tuple(each for each in said if isinstance(each, Triplet))
    for key, name in [(name.casefold(), name) for each in relations for name in (each.source, each.destination)]:
        found[key] = Entity(found.get(key, Entity(name)).name, reader.types.get(key, ""))
    return RuleExtraction(
        tuple(found.values()), relations, tuple(each for each in said if isinstance(each, EndedRelation))
    )


class _TextReader:
    """One pass over the tokens of a text. Quotations are blank in `lowered`: the "I" in them may be another person."""

    def __init__(self, text: str, speaker: str) -> None:
        text = re.sub(r"[\0\ud800-\udfff]", " ", text)
        self.speaker, self.types = speaker, {speaker.casefold(): "person"}
        self.said: dict[tuple[str, str], dict[str, Triplet | EndedRelation]] = {}  # the last word on each relation
        self.quoted = {title.casefold(): Entity(title) for title in _TITLE.findall(text)}
        self.words: list[str] = _TOKEN.findall(_TITLE.sub(' "" ', text))
        self.lowered = [word.lower().replace("’", "'") for word in self.words]
        self.starts, quoted = [0], False
        for index, word in enumerate(self.words):
            if word in ".!?…\n。！？":
                self.starts.append(index + 1)
            if word in '"“”«»\n':  # a quotation that nothing closes lasts to the end of its line
                quoted = not quoted if word == '"' else word in "“«"
            elif quoted:
                self.lowered[index] = ""
        self._has_read = False
        self._subjects: set[str] = set()

    def read(self) -> None:
        """Read every sentence, once."""
        if not self._has_read:
            self._has_read = True
            for start, after in pairwise([*self.starts, len(self.words) + 1]):
                self._sentence(start, after - 1)
            self._subjects = {source for source, _ in self.said}

    def _is_name(self, index: int) -> bool:
        word = self.words[index]
        return word[0].isupper() and len(word) <= 40 and re.split("n?['’]", word.lower())[0] not in _STOP

    def _name_end(self, index: int, end: int) -> int:
        """Return the end of the name that begins at `index` (``University of Oxford``); `index` if none begins."""
        stop = after = index
        while after < min(end, index + 6) and self._is_name(after):
            stop = after = after + 1
            while after < min(end, stop + 2) and self.lowered[after] in _WORDS["connectors"]:
                after += 1
        return stop

    def _name_at(self, last: int, start: int) -> tuple[int, str]:
        """Return the start of the name that ends at `last`, and the name."""
        limit = max(start, last - 3)
        first = next((at for at in range(last, limit, -1) if not self._is_name(at - 1)), limit)
        return first, " ".join(self.words[first : last + 1])

    def names(self) -> dict[str, Entity]:
        """Folded name -> entity, quoted ones first."""
        starts, index, end = set(self.starts), 0, len(self.words)
        while index < end:
            stop = self._name_end(index, end) if self.words[index][0].isupper() else index
            if stop > index:
                name = " ".join(self.words[index:stop])
                is_lone = index in starts and stop == index + 1 and end > 2 and self.lowered[stop : stop + 1] != ["'s"]
                if not is_lone or self._is_subject(name.casefold()):
                    self.quoted.setdefault(name.casefold(), Entity(name))
            index = max(stop, index + 1)
        return self.quoted

    def _is_subject(self, folded: str) -> bool:
        """Return True if the text states a relation of a name."""
        self.read()
        return folded in self._subjects

    def _sentence(self, start: int, end: int) -> None:
        """Read the statements of a sentence; of a question, only the part before its ", how ..."."""
        if self.words[end : end + 1] == ["?"]:
            asks = (
                at for at in range(start, end - 1) if self.lowered[at] == "," and self.lowered[at + 1] in _WORDS["asks"]
            )
            end = next(asks, start)
        last = ""
        for index in range(start, end):
            low = self.lowered[index]
            if low in _WORDS["unreal"]:
                return
            if low in _RELATIVES:
                self._relative(index, start, end)
            for words, form, (relation, kind, type_, effect) in _HEADS.get(low, ()):
                if self.lowered[index : index + len(words)] == words:
                    name, over, new = self._subject(index, start, form, last)
                    change = "end" if over else {"one": "new" if new else "-"}.get(effect, effect)
                    for found in self._objects(index + len(words), end, kind, over) if name else []:
                        self._record(name, relation, found, type_, change)
                        last = last if over else name
                    break

    def _subject(self, verb: int, start: int, form: str, last: str = "") -> tuple[str, bool, bool]:
        """Return the subject of the verb (empty if there is no plain one), and if the relation is over, or new.

        Args:
            last: subject of the phrase before, for "and" and "but".
        """
        at = verb - 1
        while at >= max(start, verb - 7) and self.lowered[at] in _ROLES:
            at -= 1
        first, low, name = at, self.lowered[at] if at >= start else "", self.speaker
        roles = [_FIRST_PERSON.get(low, ""), *(_ROLES[word] for word in self.lowered[at + 1 : verb])]
        if low in {"and", "but"}:
            first, name = start, last
        elif low and self._is_name(at):
            first, name = self._name_at(at, start)
        elif low not in _FIRST_PERSON:
            return "", False, False
        said = " ".join(roles).split()
        before = self.lowered[first - 1] if first > start else ","
        begins = before in _WORDS["leads"] or before in _RELATIVES or not (_WORD.match(before) or before in ':"“”«(')
        over = not {"not", "used", "stop"}.isdisjoint(said)
        helpers = " ".join(role for role in said if role not in {"not", "now", "partly"})
        agrees = helpers in _AGREES["base of a name" if form == "base" and name != self.speaker else form].split(",")
        fits = begins and agrees and not (over and (form == "event" or "partly" in said))
        return name if fits else "", over, "now" in said or before == "now"

    def _record(self, source: str, relation: str, found: str, type_: str, effect: str = "-") -> None:
        one, key = (source.casefold(), relation), found.casefold()
        if one[0] == key:
            return
        if effect == "new":
            self.said[one] = {"": EndedRelation(source, relation, None)}
        elif effect not in {"-", "end"}:
            self._record(source, effect, found, "-", "end")
        ended = EndedRelation(source, relation, found or None)
        self.said.setdefault(one, {})[key] = ended if effect == "end" else Triplet(source, relation, found)
        self.types[key] = type_.strip("-") or self.types.get(key, "")

    def _relative(self, index: int, start: int, end: int) -> None:
        """``my sister Anna``, ``Bob's sister is Anna``, ``my dog's name is Rex``, ``I have a dog named Rex``."""
        (relation, type_), owner = _RELATIVES[self.lowered[index]], index - 1
        while owner > start and self.lowered[owner] in _WORDS["adjectives"]:
            owner -= 1
        low, source = self.lowered[owner] if owner >= start else "", ""
        named = _NAMING_PHRASE.findall(" ".join(self.lowered[index + 1 : index + 4]))[0].split()
        states, given = named[-1:] in (["is"], ["are"]), named in (["named"], ["called"])
        if low in {"my", "our"}:
            source = self.speaker
        elif low == "'s" and owner > start and self._is_name(owner - 1):
            source = self._name_at(owner - 1, start)[1]
        elif given and low in _WORDS["articles"] and self.lowered[owner - 1] in {"have", "has", "got"}:
            source = self._subject(owner - 1, start, "event")[0]
        for found in self._objects(index + 1 + len(named), end, "names", states) if source else []:
            if found.casefold() not in _WORDS["peoples"] and (states or relation != "name"):
                self._record(source, relation, found, type_)

    def _objects(self, at: int, end: int, kind: str, strict: bool) -> list[str]:
        """Return the object at `at`, or the items of ``A, B and C``; if `strict`, only if no other word limits it."""
        items: list[str] = []
        first = stop = at
        while stop < min(end, at + 20) and self.lowered[stop] not in _BREAKS and _PART.match(self.lowered[stop]):
            stop += 1
        for index in range(at, stop + 1):
            if index == stop or self.lowered[index] in _JOINS:
                item = self._item(first, index, kind, strict or bool(items))
                if not item and (index > first or not items):
                    items = items if "," in self.lowered[first - 2 : first] else items[:1]  # "tea, Bob and I left"
                    break
                items, first = [*items, item] if item else items, index + 1
        after = self.lowered[stop] if stop < len(self.lowered) else ""
        is_doing = kind == "things" and re.fullmatch(r"[a-z-]+ing", " ".join(items[-1:]))
        if (strict or is_doing) and _WORD.match(after) and after not in _GOES_ON:
            return []
        if not kind.endswith("s"):
            return items[:1] or [""] * (kind == "none")
        if len(items) > 1 and " " in items[-1] and kind == "things":  # "action and horror films" says nothing of action
            items = [item for item in items if " " in item or item.endswith(("s", "ing"))]
        return items if len(items) < 2 or not {"and", "or", "&"}.isdisjoint(self.lowered[at:first]) else []

    def _item(self, at: int, end: int, kind: str, strict: bool) -> str:
        """Return the object between two positions; empty if it is none, or needs its context."""
        first = at + (at < end and self.lowered[at] in _WORDS["articles"])
        stop, said = self._name_end(first, end), self.lowered[first:end]
        fits = 0 < len(said) < (4 if strict else 5) and _WORDS["vague"].isdisjoint(said)
        if kind in {"name", "names"}:
            owns = kind == "name" and self.lowered[stop : stop + 1] == ["'s"]
            fits, end = stop + owns == end or not (strict or owns), stop + owns
        elif kind == "thing":
            fits &= stop > first or first > at
        elif kind == "things":
            fits &= stop > first or self.lowered[at : at + 1] != ["the"]
            fits &= not strict or _HEADS.keys().isdisjoint(said)
        else:
            fits &= not _WORDS["jobs" if kind == "job" else "games"].isdisjoint(said[-1:])
        return " ".join(self.words[first:end]).replace(" '", "'").replace(" ’", "’") if fits else ""
