"""Statements of everyday English: the subject, its relation family, the value, and whether it begins or ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from mem0_core.domain.records import DateRange
from mem0_core.language import statements
from mem0_core.language.families import family_of_label
from mem0_core.language.statements import SPEAKER, pack_statements, read_statements, unpack_statements
from memory_conformance.stories import load_people

SAID_ON = date(2024, 6, 5)
LABELS = Path(__file__).parents[2] / "data" / "rules_en.jsonl"
Key = tuple[str, str, str]


def read(text: str) -> list[str]:
    """Return the certain statements of a text: effect, subject, family, value."""
    return [
        " ".join(part for part in (each.effect, each.subject or "I", each.family, each.value) if part)
        for each in read_statements(text, said_on=SAID_ON)
        if each.is_certain
    ]


STATED = {
    "I rent a two-bed flat above a launderette in Splott.": ["holds I lives_in Splott"],
    "I work for a firm by the name of Arup.": ["holds I works_at Arup"],
    "Dear Assistant, my boss is Ann.": ["holds I boss Ann"],
    "dear all, i moved to Oslo": ["begins I lives_in Oslo"],
    "Querida Ana, vivo en Madrid.": ["holds I lives_in Madrid"],
    "My GP started me on Ozempic.": ["begins I takes Ozempic"],
    "They put me on lisinopril.": ["begins I takes lisinopril"],
    "Karl lives in Bern, wife Ewa, two cars": ["holds Karl lives_in Bern"],
    "My brother Max, wife Ana, moved to Rome.": ["holds I brother Max", "begins Max lives_in Rome"],
    "Neighbors: Lee, wife Kim, son Joe": ["holds I neighbor Lee"],
    "Married, wife Ewa.": ["holds I married_to Ewa"],
    "Boss is Ingrid Solberg.": ["holds I boss Ingrid Solberg"],
    "Team lead at Galp is Petra, formerly at Nokia.": ["holds I boss Petra"],
    "Manager is called Denise.": ["holds I boss Denise"],
    "Wife Anna is a vet.": ["holds I married_to Anna", "holds Anna works_as vet"],
    "Son Leo started school at St Paul's.": ["holds I son Leo", "holds Leo studies_at St Paul's"],
    "Uncle Bob lives in Rome.": ["holds I uncle Bob", "holds Bob lives_in Rome"],
    "Is now a team leader at Aldi.": ["begins I works_as team leader", "begins I works_at Aldi"],
    "Started an apprenticeship at Hull Trains.": ["begins I works_at Hull Trains"],
    "Quit the cello and plays guitar now.": ["ends I plays cello", "begins I plays guitar"],
    "Zosia quit tennis and plays golf.": ["ends Zosia plays tennis", "holds Zosia plays golf"],
    "I live with my friend Petra in Ulm.": ["holds I friend Petra", "holds I lives_with Petra", "holds I lives_in Ulm"],
    "wife Ewa, kids Leo 4 and Ana 7": ["holds I married_to Ewa", "holds I child Leo", "holds I child Ana"],
    "Husband: Karl, plays the tuba.": ["holds I married_to Karl"],
    "(Wife = Liisa, for the record)": ["holds I married_to Liisa"],
    "Daughter update: Aino (16) chose a school in Oulu": ["holds I daughter Aino"],
    "our oldest that's Travis he's over in San Antonio": ["holds I child Travis"],
    "my sister that's Danish": [],
    "Kids Menu is out.": [],
    "Partner Portal.": [],
    "I leave the office at noon.": [],
    "Owner of the view.": [],
    "Into a sibling first": [],
    "does not run": [],
    "my mum is a nurse and dads a postman": ["holds my mum works_as nurse", "holds my dad works_as postman"],
    "dating a guy from work, his names Sol": ["holds I partner Sol"],
    "my dads car broke": [],
    "took the plunge and adopted a greyhound, Nora": ["begins I has_pet Nora"],
    "My old boss Greg is now at Pfizer.": ["ends I boss Greg", "holds Greg works_at Pfizer"],
    "my daughters Ella and June both go to Fairfield High": [
        "holds I daughter Ella",
        "holds I daughter June",
        "holds Ella studies_at Fairfield High",
        "holds June studies_at Fairfield High",
    ],
    "we live with Ann and work in Rome": ["holds I lives_with Ann"],
    "I live with my cat and his dog in Rome.": ["holds I lives_in Rome"],
    "got promoted! senior analyst now": ["begins I works_as senior analyst"],
    "I left Acme.": ["ends I works_at Acme"],
    "We left Rome at 6.": [],
    "I left Amazon a bad review.": [],
    "Dan left me a note.": [],
    "Dan left me.": ["ends I partner Dan", "ends I engaged_to Dan", "ends I married_to Dan"],
    "Luis proposed a new plan.": [],
    "I have an iPhone question.": [],
    "still in London tomorrow": [],
    "shes my sister btw. works at zara": ["holds my sister works_at zara"],
    "lives in Gdansk, my cousin Ola": ["holds I cousin Ola", "holds Ola lives_in Gdansk"],
    "He works nights at the hospital, my dad I mean": ["holds my dad works_at hospital"],
    "comes from Nokia originally, our new CTO": [],
    "Chloe is a vet. Lives in Hove.": ["holds Chloe works_as vet", "holds Chloe lives_in Hove"],
    "nephew Kofi works at Galp": ["holds I nephew Kofi", "holds Kofi works_at Galp"],
    "the wife works at the hospital": ["holds my wife works_at hospital"],
    "Remember Pete? He's a vicar now.": ["begins Pete works_as vicar"],
    "on sertraline since february": ["begins I takes sertraline"],
    "type 1 diabetic since I was 9": ["begins I has_condition type 1 diabetic"],
    "still in Bari": ["holds I lives_in Bari"],
    "no longer vegan": ["ends I diet vegan"],
    "self employed electrician, 20 years": ["holds I works_as self employed electrician"],
    "wrong driver ;)": [],
    "Dairy-free is a must": [],
    "I run.": ["holds I hobby running"],
    "I run into problems.": [],
    "I'm running.": [],
    "once I get a laptop": [],
    "I've ordered chicken.": [],
    "I drive a taxi.": ["holds I works_as taxi driver"],
    "I teach yoga.": ["holds I works_as yoga teacher", "holds I teaches yoga"],
    "was a teacher for 35 years": ["past I works_as teacher"],
    "finally ditched the iPhone for a Fairphone": ["begins I owns Fairphone", "ends I owns iPhone"],
    "we left London for the countryside": ["ends I lives_in London"],
    "sing in a choir, St Cuthbert's": ["holds I member_of St Cuthbert's"],
    "write a short bio: I am Maria, a pilot from Rio": [],
    "I lived in Hanoi for years; now it's Da Nang.": ["past I lives_in Hanoi", "begins I lives_in Da Nang"],
    "My wife Yuki misses Sapporo, where she was born.": ["holds I married_to Yuki", "holds Yuki is_from Sapporo"],
    "The company I work for, Initech, is based in Oslo.": ["holds I works_at Initech"],
    "Edit: I live in Bari.": ["holds I lives_in Bari"],
    "I'm married to a Frenchman, Luc.": ["holds I married_to Luc"],
    "I work remotely for a Danish company called Trifork.": ["holds I works_at Trifork"],
    "Jenny from HR is dating Marcus.": ["holds Jenny partner Marcus"],
    "Gina lives in Houston. She has her own consultancy.": [
        "holds Gina lives_in Houston",
        "holds Gina owns consultancy",
    ],
    "Me and my girlfriend Tess live in Utrecht.": [
        "holds I partner Tess",
        "holds I lives_in Utrecht",
        "holds Tess lives_in Utrecht",
    ],
    "I have to take insulin four times a day.": ["holds I takes insulin"],
    "The kids are with their dad Sean on weekends.": [],
    "Ravi is my business partner.": [],
    "My wife is Slovenian.": [],
    "I can't do fish tonight.": [],
    "I don't eat pork for religious reasons.": ["holds I avoids pork"],
    "I no longer drink coffee.": ["begins I avoids coffee"],
    "I'm not into musicals.": ["holds I dislikes musicals", "ends I likes musicals"],
    "Mr Bauer is no longer with Allianz.": ["ends Mr Bauer works_at Allianz"],
    "She moved. My stepdad Phil moved in 2019 to Graz.": ["holds I step_relative Phil", "begins Phil lives_in Graz"],
    "Dan works at Lloyds, Max at Lidl and Isaac at Barclays.": [
        "holds Dan works_at Lloyds",
        "holds Max works_at Lidl",
        "holds Isaac works_at Barclays",
    ],
    "The guy I'm dating, Mateo, lives in Vigo.": ["holds I partner Mateo", "holds Mateo lives_in Vigo"],
    "Raj is a friend of mine who works at the BBC.": ["holds I friend Raj", "holds Raj works_at BBC"],
    "my mother in law Gudrun lives in Graz": ["holds I in_law Gudrun", "holds Gudrun lives_in Graz"],
    "She was promoted. Ana was promoted from analyst to director.": [
        "begins Ana works_as director",
        "ends Ana works_as analyst",
    ],
    "my bf jake works at trader joes": ["holds I partner jake", "holds jake works_at trader joes"],
    "i live in berlin": ["holds I lives_in berlin"],
    "I moved from Rome to Milan.": ["begins I lives_in Milan", "ends I lives_in Rome"],
    "We're in an apartment in Superior now": ["begins I lives_in Superior"],
    "found a flat in York. its only one bed but its mine": ["begins I lives_in York"],
    "from Monday I'm at Banco Atlas, in the payroll team": ["begins I works_at Banco Atlas"],
    "first day at Boston Children's!!": ["begins I works_at Boston Children's"],
    "Works as a bookkeeper at the hotel Casa Blu.": ["holds I works_as bookkeeper", "holds I works_at Casa Blu"],
    "Jim is the CEO of Zeta.": ["holds Jim works_as CEO", "holds Jim works_at Zeta"],
    "Karen is my boss.": ["holds I boss Karen"],
    "My sister lives in Oslo.": ["holds my sister lives_in Oslo"],
    "Anna, who works at Galp, lives in Porto.": ["holds Anna works_at Galp", "holds Anna lives_in Porto"],
    "Anna and Bob live in Oslo.": ["holds Anna lives_in Oslo", "holds Bob lives_in Oslo"],
    "Her sister Ingrid lives in Malmö.": ["holds I sister Ingrid", "holds Ingrid lives_in Malmö"],
    "Marco is my cousin. He works for Fiat.": ["holds I cousin Marco", "holds Marco works_at Fiat"],
    "sold the Corsa, got an electric Zoe": [
        "ends I drives Corsa",
        "ends I owns Corsa",
        "begins I drives electric Zoe",
    ],
    "Adopted a kitten!! Her name's Miso.": ["begins I has_pet Miso"],
    "Had Rex put down on Monday.": ["ends I has_pet Rex"],
    "We got a toy poodle called Bella.": ["begins I has_pet Bella"],
    "seeing someone new, his name is Duarte": ["holds I partner Duarte"],
    "The doctor swapped the ramipril for candesartan.": [
        "begins I takes candesartan",
        "ends I takes ramipril",
    ],
    "I speak French, German and a bit of Italian.": [
        "holds I speaks French",
        "holds I speaks German",
        "holds I speaks Italian",
    ],
    "I love hiking and playing the guitar.": ["holds I likes hiking", "holds I likes playing the guitar"],
    "My favourite food is lasagna.": ["holds I favorite lasagna"],
    "Takes 50 mg of losartan instead of lisinopril.": ["holds I takes losartan", "ends I takes lisinopril"],
    "gave up surfing, the water is freezing": ["ends I hobby surfing"],
    "I used to live in Prague.": ["past I lives_in Prague"],
    "divorce came through today": ["ends I married_to"],
    "I'll be a senior data analyst at Farol Health.": [
        "begins I works_as senior data analyst",
        "begins I works_at Farol Health",
    ],
    "Leila called. She's a children's nurse.": ["holds Leila works_as children's nurse"],
    "It's my birthday on 19 May.": ["holds I birthday 19 May"],
    "They hired me as a welder at Nordvik.": ["begins I works_as welder", "begins I works_at Nordvik"],
    "My dog isn't called Rex. His name is Max.": ["ends I has_pet Rex", "holds I has_pet Max"],
    "Leila called. This week she moved to Lyon.": ["begins Leila lives_in Lyon"],
    "We're back from Copenhagen.": ["past I visited Copenhagen"],
    "We ended up moving to Munich.": ["begins I lives_in Munich"],
    "Doctor says I'm lactose intolerant.": ["holds I allergic_to lactose"],
    "Elif works for a law firm in Ankara called Yilmaz.": ["holds Elif works_at Yilmaz"],
    "I moved to Nice.": ["begins I lives_in Nice"],
    "Noor works at Great Ormond Street.": ["holds Noor works_at Great Ormond Street"],
    "I'm head of logistics now.": ["begins I works_as head of logistics"],
    "I was born on 3 April 1985 in Split.": ["holds I birthday 3 April 1985", "holds I is_from Split"],
    "We share a flat in Cardiff with Megan.": ["holds I lives_in Cardiff", "holds I lives_with Megan"],
    "We rent a two-bed above a launderette in Splott.": ["holds I lives_in Splott"],
    "Correction: I live in Leeds, not Leicester.": ["holds I lives_in Leeds", "ends I lives_in Leicester"],
}


@pytest.mark.parametrize("text", STATED)
def test_everyday_sentences_are_read(text: str) -> None:
    assert read(text) == STATED[text]


SILENT = [
    "At work a patient gave me a ceramic cat.",
    "got a cat tattoo",
    "I bought a dog bed",
    "We have a toy dog.",
    "I was going to move to Oslo in May.",
    "We were planning to move to Oslo.",
    "Does Anna live in Paris?",
    "I wish I lived in Rome.",
    "Noor and I are getting married in September.",
    "I'm thinking of a party at Coral Bay Hotel.",
    "I want to live in Oslo one day.",
    "I live above a shop that opened in London.",
    "I have a flat above a pub called Swan.",
    "I live in a house beside a man called Bob.",
    "I have a room over a garage owned by Bob.",
    "I'm thinking of renting a flat in Leith.",
    "We hope to move to Oslo.",
    "I want to quit my job at Acme.",
    "We are looking to buy a house in Barry.",
    "I rented a car, and met a man in Rome.",
    "My friend says he works at NASA.",
    "I'm in Paris for work this week.",
    "I'm over the moon about it!",
    "Losing a job is hard.",
    "I take the bus.",
    "Met Tom, wife Ewa, and daughter Ida.",
    "Character sheet: Arthur, wife Guinevere",
    "Wife update: Paris flight booked",
    "Husband = Netflix account",
    "Partner: Accenture, budget 20k",
    "Kids: Disney+ is 9 euros",
    "I work on cars for Tom.",
    "Boss is a big word.",
    "Keeper Yennen says that it rains.",
    "Boss Shen just got a new batch in.",
    "Boss is Hugo Boss's brand.",
    "Neighbour is Canadian.",
    "Dear Assistant, my neighbour is very kind.",
    "They put me on the night shift.",
    "She put us on the guest list.",
    "They took me off the case.",
    "I'm 5 minutes late.",
    "I've been my own boss.",
    "She works at Audi.",
    "I live for weekends.",
    "I left my keys at home.",
    "Please translate: my sister lives in Rome",
    "Could you please proofread this text for me: I was born in Oslo. I work at Acme.",
    "Fix the grammar in this email:\nHi Tom, I live in Berlin now.",
]


@pytest.mark.parametrize("text", SILENT)
def test_other_sentences_state_nothing(text: str) -> None:
    assert read(text) == []


def test_a_plan_touches_its_slot_without_certainty() -> None:
    (said,) = read_statements("I'm moving to Rome.", said_on=SAID_ON)
    assert (said.subject, said.family, said.value, said.is_certain) == (SPEAKER, "lives_in", "Rome", False)


@pytest.mark.parametrize(
    ("text", "subject", "employer"),
    [
        ("Gareth maintains the presses at the Royal Mint.", "Gareth", "Royal Mint"),
        ("Gareth fits heat pumps for a firm called Gwres.", "Gareth", "Gwres"),
        ("I design bridges for a firm called Arup.", SPEAKER, "Arup"),
        ("My sister edits books at Penguin.", "my sister", "Penguin"),
    ],
)
def test_a_trade_at_an_organization_touches_its_slot(text: str, subject: str, employer: str) -> None:
    (said,) = read_statements(text, said_on=SAID_ON)
    assert (said.subject, said.family, said.value, said.is_certain) == (subject, "works_at", employer, False)


@pytest.mark.parametrize("text", ["I painted the fence at Anna's.", "He bakes bread for Anna.", "I fit in at school."])
def test_a_thing_done_once_or_for_a_person_is_no_employment(text: str) -> None:
    assert [one.family for one in read_statements(text, said_on=SAID_ON)] == []


def test_quitting_leaves_the_occupation_open() -> None:
    said = read_statements("I quit my job at Tesco.", said_on=SAID_ON)
    assert [(each.family, each.effect, each.is_certain) for each in said] == [
        ("works_at", "ends", True),
        ("works_as", "ends", False),
    ]


def test_the_days_of_a_clause_are_read() -> None:
    (said,) = read_statements("I moved to Oslo in May 2023.", said_on=SAID_ON)
    assert said.days == DateRange("2023-05-01", "2023-05-31")


def test_a_relation_keeps_the_word_that_says_more_than_its_family() -> None:
    (said,) = read_statements("My girlfriend is Ines.", said_on=SAID_ON)
    assert (said.family, said.relation, said.value) == ("partner", "girlfriend", "Ines")


def labeled(split: str) -> Iterator[tuple[str, set[Key], set[Key]]]:
    for line in LABELS.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["split"] == split:
            yield case["text"], {key(*each) for each in case["begins"]}, {key(*each) for each in case["ends"]}


def key(subject: str, relation: str, value: str) -> Key:
    family = family_of_label(relation)
    folded = value.casefold().removeprefix("a ").removeprefix("an ").removeprefix("the ")
    return subject.casefold() or "user", family.name if family else relation, folded


@pytest.mark.parametrize("text", ["I won't quit, even when it's hard.", "Don't give up, buddy!"])
def test_an_ending_without_an_object_states_nothing(text: str) -> None:
    assert read_statements(text, said_on=SAID_ON) == ()


def score(split: str) -> tuple[float, float]:
    """Return precision and recall of beginnings and endings; an ending of another family of the value is no error."""
    right = stated = wanted = 0
    for text, begins, ends in labeled(split):
        begun, ended = set[Key](), set[Key]()
        for each in read_statements(text, said_on=SAID_ON):
            found = key(each.subject, each.family, each.value)
            if each.is_certain and (each.effect in ("holds", "begins") or each.relation == "studied_at"):
                begun |= {found} if each.value else set()
            elif each.is_certain:
                ended.add(found)
                begun.discard(found)
        known = {(subject, value) for subject, _, value in ends} | {(subject, "") for subject, _, _ in ends}
        right += len(begun & begins) + len(ended & ends)
        stated += len(begun) + len(ended & ends) + sum((one[0], one[2]) not in known for one in ended)
        wanted += len(begins) + len(ends)
    return right / stated, right / wanted


@pytest.mark.parametrize(("split", "precision", "recall"), [("dev", 0.97, 0.95), ("held", 0.92, 0.76)])
def test_labeled_sentences_are_read_with_precision_and_recall(split: str, precision: float, recall: float) -> None:
    measured = score(split)
    assert measured >= (precision, 0)
    assert measured[1] >= recall


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I can't eat oysters.", "oysters"),
        ("Cannot digest poutine.", "poutine"),
        ("Refuses to eat tapioca.", "tapioca"),
        ("I won't touch rhubarb", "rhubarb"),
    ],
)
def test_what_a_person_cannot_eat_is_avoided(text: str, value: str) -> None:
    assert [(one.family, one.value) for one in read_statements(text, said_on=date(2024, 1, 1))] == [("avoids", value)]


def test_packed_statements_are_those_that_reading_the_text_again_gives() -> None:
    for message in (message for person in load_people()[:6] for message in person["messages"]):
        text, said_on = message["text"], date.fromisoformat(message["time"][:10])
        packed = pack_statements(text)
        assert "\n" not in packed
        assert unpack_statements(packed, text) is not None
        assert read_statements(text, said_on=said_on, packed=packed) == read_statements(text, said_on=said_on)


def test_packed_statements_of_another_text_or_of_other_rules_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, said = pack_statements("I live in Oslo."), read_statements("I live in Rome.", said_on=SAID_ON)
    assert read_statements("I live in Rome.", said_on=SAID_ON, packed=packed) == said
    monkeypatch.setattr(statements, "_digest_rules", lambda: "other rules")
    assert unpack_statements(packed, "I live in Oslo.") is None
