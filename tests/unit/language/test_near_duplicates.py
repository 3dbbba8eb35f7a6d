"""Near-duplicates: older memories that a newer one covers, on pairs labeled by hand.

A pair is (older, newer). Its label answers one question: does showing only the newer lose or change a statement of the
older?
"""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mem0_core.language.near_duplicates import MIN_DUPLICATE_COSINE, find_restatements, restates
from mem0_core.providers.onnx import OnnxEmbedder

SAME = [
    ("I love hiking in the mountains.", "I really love hiking in the mountains!"),
    ("User lives in Porto", "User currently lives in Porto"),
    ("Lives in Porto", "Lives in Porto, near the river"),
    ("Is allergic to peanuts", "Allergic to peanuts"),
    ("I'm a nurse at St. John's hospital", "I am a nurse at St John's hospital."),
    ("Works as a software engineer", "Works as a software engineer at Acme"),
    ("Prefers window seats", "Prefers window seats on long flights"),
    ("My favourite colour is blue.", "My favourite colour is still blue."),
    ("Name is John", "User's name is John"),
    ("I don't eat meat.", "I do not eat meat"),
    ("Plays the piano", "Plays the piano and the violin"),
    ("Maya's sister Anna is a doctor.", "Maya's sister, Anna, is a doctor in Lisbon."),
    ("Ich wohne in Berlin", "Ich wohne in Berlin, im dritten Stock."),
    ("我喜欢喝茶", "我喜欢喝茶。"),
    ("Likes jazz", "Also likes jazz"),
    ("Runs 5 km every morning", "Runs 5 km every morning before work"),
    ("Is learning Portuguese", "Is learning Portuguese for her new job"),
    ("Has an appointment with Dr. Lee on Friday", "Has an appointment with Dr. Lee on Friday at 10"),
    ("Uses Python and Rust at work", "Uses Python and Rust at work."),
    ("The user enjoys cooking Italian food", "The user enjoys cooking Italian food on weekends"),
    ("The deadline is March 15", "The deadline is March 15, 2025"),
    ("Has been vegetarian since 2019", "Has been a vegetarian since 2019"),
    ("I can't swim.", "I cannot swim."),
    ("We're getting married in June!", "We are getting married in June"),
    ("I am allergic to penicillin.", "I'm allergic to penicillin!"),
    ("The user prefers dark mode", "User prefers dark mode in all editors"),
    ("Works from home on Fridays", "Works from home on Fridays, unless there is a client meeting"),
    ("My daughter Lena is six years old.", "My daughter Lena is six years old and goes to school in Graz."),
    ("We have booked the cabin for August", "We have now booked the cabin for August."),
    ("Is training for a marathon", "Is training for a marathon in Valencia"),
    ("Her mother tongue is Catalan", "Her mother tongue is Catalan."),
    ("I take 20 mg of atorvastatin", "I take 20 mg of atorvastatin every evening"),
    ("Collects vinyl records", "Collects vinyl records, mostly jazz from the sixties"),
    ("Doesn't like crowded places", "Does not like crowded places"),
    ("He's moving to Oslo", "He's moving to Oslo in September with his partner"),
    ("Has a cat called Miso", "Has a cat called Miso who is afraid of thunder"),
    ("The server runs on Debian 12", "The server runs on Debian 12 (bookworm)"),
    ("I want to learn the cello", "Yes, I want to learn the cello."),
    ("Her budget for the trip is 1,500 euros", "Her budget for the trip is 1,500 euros."),
    ("Speaks Dutch and German", "Speaks Dutch and German; learns Polish"),
    ("Ich esse kein Fleisch", "Ich esse kein Fleisch."),
    ("Я работаю врачом", "Я работаю врачом, в детской больнице"),
    ("我住在上海", "我住在上海，靠近外滩"),
    ("Trabajo en un banco", "Trabajo en un banco."),
    ("I can't eat gluten", "I cannot eat gluten"),
    ("Nora manages the Berlin team", "Nora manages the Berlin team since March"),
    ("Ben's birthday is on 4 July", "Ben's birthday is on 4 July."),
    ("Drinks oat milk", "Drinks oat milk because of a lactose intolerance"),
    ("Rides a bike to work", "Also rides a bike to work"),
    ("Loves Ethiopian food", "Really loves Ethiopian food"),
    ("The password manager is Bitwarden", "The password manager is still Bitwarden"),
    ("She studies law in Leiden", "She studies law in Leiden and wants to become a judge"),
]
"""The newer says it all."""

GONE_ON = [
    ("Has 2 cats", "Has 2 cats and had 3 dogs as a child, but never liked them much"),
    ("Has been to Rome", "Has been to Rome and wants to go to Paris instead of Rome next time"),
    ("Booked a table for two", "Booked a table for two, then cancelled it"),
]
"""The newer says it all, and takes something back or turns to something else: it is the one to show."""

MISSED = [
    ("Has a dog", "Has a dog named Max"),
    ("Has a dog named Max", "Has a brown dog named Max"),
    ("I have two kids", "As I said, I have two kids."),
    ("Мне нравится чай", "Мне очень нравится чай"),
    ("Likes jazz", "Likes jazz a lot"),
    ("I moved to Berlin in May.", "I moved to Berlin in May 2023."),
    ("Drives a red car", "She drives a red car"),
    ("Wants to visit Japan", "Wants to visit Japan next spring with Tom"),
    ("I usually get up at six.", "I usually get up at six o'clock."),
    ("Her husband's name is Ben", "Her husband's name is Ben Carter"),
    ("Enjoys hiking in the mountains", "Likes to hike in the mountains"),
    ("I live in Porto", "My home is in Porto"),
    ("In May I moved to Ghent", "I moved to Ghent in May"),
    ("Is a vegetarian", "Does not eat meat"),
    ("Her favourite author is Le Guin", "Le Guin is her favourite author"),
    ("Has two brothers", "Has 2 brothers"),
]
"""The newer says it all, in other words, in another order, or with more in the middle: both are shown."""

OTHER = [
    ("Likes red wine", "Likes white wine"),
    ("Lives in Porto", "Lives in Lisbon"),
    ("Lives in Porto", "Does not live in Porto"),
    ("Lives in Porto", "No longer lives in Porto"),
    ("Lives in Porto", "Used to live in Porto"),
    ("Lives in Porto", "Lived in Porto until 2020"),
    ("Lives in York", "Lives in New York"),
    ("Has two kids", "Has three kids"),
    ("Drinks coffee", "Drinks decaf coffee"),
    ("I eat meat.", "I don't eat meat."),
    ("I like tea", "I like tea less than coffee"),
    ("Works at Google", "Works at a competitor of Google"),
    ("Loves hiking", "Hates hiking"),
    ("My brother lives with me", "My sister lives with me"),
    ("My mother likes tea", "Your mother likes tea"),
    ("Flew from Porto to Lisbon", "Flew from Lisbon to Porto"),
    ("Maya hired Anna", "Anna hired Maya"),
    ("Meeting is on Monday at 10", "Meeting is on Tuesday at 10"),
    ("Meeting is on Monday at 10", "Meeting is on Monday at 11"),
    ("Is pregnant", "Was pregnant"),
    ("Has a dog", "Had a dog"),
    ("Is a student", "Is no longer a student"),
    ("Wants to buy a house", "Bought a house"),
    ("Wants to learn Spanish", "Learned Spanish"),
    ("I owe Tom 50 dollars", "Tom owes me 50 dollars"),
    ("Uses C at work", "Uses C++ at work"),
    ("Temperature was -5 degrees", "Temperature was 5 degrees"),
    ("The budget is $500", "The budget is $5000"),
    ("The budget is $500", "The budget is €500"),
    ("Version 1.5 is installed", "Version 5.1 is installed"),
    ("Likes cats", "Likes cats more than dogs"),
    ("Is allergic to nuts", "Is allergic to shellfish"),
    ("Takes the medicine before meals", "Takes the medicine after meals"),
    ("Coffee with sugar", "Coffee without sugar"),
    ("Everyone at work likes Tom", "Nobody at work likes Tom"),
    ("All my friends are vegan", "Some of my friends are vegan"),
    ("I am going to quit my job", "I am not going to quit my job"),
    ("Married to Ben", "Divorced from Ben"),
    ("Bought a phone", "Bought a phone case"),
    ("Visited Georgia", "Visited Georgia Tech"),
    ("Я люблю чай", "Я не люблю чай"),
    ("我喜欢茶", "我不喜欢茶"),
    ("我喜欢茶", "他喜欢茶"),
    ("Ich mag Tee", "Ich mag Tee nicht"),
    ("Ich mag Tee", "Ich mag keinen Tee"),
    ("J'aime le thé", "Je n'aime pas le thé"),
    ("Me gusta el té", "No me gusta el té"),
    ("Has a car", "Has a car accident lawyer"),
    ("Is vegetarian", "Is vegetarian except on holidays"),
    ("Is vegetarian", "Was vegetarian for a while"),
    ("Works on Fridays", "Never works on Fridays"),
    ("Will move to Berlin", "Might move to Berlin"),
    ("Should take aspirin", "Should never take aspirin"),
    ("I live in Porto", "If I lived in Porto I would surf every day"),
    ("Tom is taller than Ben", "Ben is taller than Tom"),
    ("Her daughter plays tennis", "Her daughter's friend plays tennis"),
    ("Plays tennis", "Plays table tennis"),
    ("Likes chocolate", "Likes chocolate only with nuts"),
    ("Speaks French", "Speaks hardly any French"),
    ("The alarm is on", "The alarm is off"),
    ("Gets up at 6", "Gets up at 6:30"),
    ("Phone number is 555-1234", "Phone number is 555-1243"),
    ("Trusts her doctor", "Doesn't trust her doctor anymore"),
    ("I gave my mother my father's book", "I gave my father my mother's book"),
    ("Started a new job at Acme", "Lost the new job at Acme"),
    ("The project is delayed", "The project is on time"),
    ("Loves Tom", "Loves Tom's sister"),
    ("Is 30 years old", "Is 31 years old"),
    ("Sends the report to Ana every week", "Sends the report to Ana every month"),
    ("Her flight is at noon", "Her flight at noon was cancelled"),
    ("Owns a boat", "Owned a boat"),
    ("Is engaged to Ben", "Thought about getting engaged to Ben"),
    ("Parks in the garage", "Parks in front of the garage"),
    ("Prefers email", "Prefers email to phone calls"),
    ("Takes the train at 8:15", "Takes the train at 8:50"),
    ("Is allergic to cats", "Is not allergic to cats"),
    ("Nora manages the Berlin team", "Nora managed the Berlin team"),
    ("Prefers tea to coffee", "Prefers coffee to tea"),
    ("Sam lent Kim 200 euros", "Kim lent Sam 200 euros"),
    ("My left knee hurts", "My right knee hurts"),
    ("The dentist is on Tuesday", "The dentist is on Thursday"),
    ("Her son plays chess", "Her daughter plays chess"),
    ("Lives with her parents", "Lives without her parents"),
    ("I always lock the door", "I never lock the door"),
    ("Rents a flat in Graz", "Bought a flat in Graz"),
    ("Wants to adopt a dog", "Adopted a dog"),
    ("The lease ends in 2025", "The lease ends in 2026"),
    ("Weighs 72 kg", "Weighs 75 kg"),
    ("Uses vim", "Uses vim no longer"),
    ("I'm free on Monday", "I'm not free on Monday"),
    ("Can eat peanuts", "Cannot eat peanuts"),
    ("Her boss is Anna", "Her boss is Anne"),
    ("Eats fish", "Eats fish fingers"),
    ("Has a house in Lyon", "Had a house in Lyon"),
    ("Plans to retire at 60", "Plans to retire at 65"),
    ("Bought an electric car", "Bought an electric car charger"),
    ("Knows Paul", "Knows Paul's brother"),
    ("Studies in Cambridge", "Studies in Cambridge, Massachusetts?"),
    ("Likes Indian food", "Likes Indian cinema"),
    ("He plays bass", "He plays bass trombone"),
    ("The meeting was moved from 3 to 4", "The meeting was moved from 4 to 3"),
    ("Would like a window seat", "Would hate a window seat"),
    ("Takes insulin before breakfast", "Takes insulin before dinner"),
    ("The cat is indoors", "The cat is outdoors"),
    ("Gave up smoking", "Took up smoking"),
    ("Trusts Sam more than Kim", "Trusts Kim more than Sam"),
    ("Most of the team is remote", "None of the team is remote"),
    ("My wife is from Peru", "My ex-wife is from Peru"),
    ("Earns 4,000 a month", "Earns 40,000 a month"),
    ("Ich habe einen Hund", "Ich habe keinen Hund"),
    ("Ich trinke Kaffee", "Ich trinke keinen Kaffee"),
    ("Мой брат живёт в Москве", "Моя сестра живёт в Москве"),
    ("Я ем мясо", "Я больше не ем мясо"),
    ("我有两个孩子", "我有三个孩子"),
    ("我吃肉", "我不吃肉"),
    ("Trabajo en un banco", "Ya no trabajo en un banco"),
    ("J'habite à Lyon", "J'habitais à Lyon"),
    ("Is afraid of flying", "Was afraid of flying as a child"),
    ("The API key expires in May", "The API key expired in May"),
    ("Sends invoices weekly", "Sends invoices monthly"),
    ("Speaks Dutch", "Speaks Dutch badly"),
    ("Is single", "Is single-minded"),
    ("Lives in Paris", "Lives in Paris Hilton's old house"),
    ("Has a meeting with Ana", "Has a meeting without Ana"),
    ("I'd move to Rome", "I'd never move to Rome"),
    ("Her flight leaves from gate B12", "Her flight leaves from gate B21"),
    ("Is older than Tom", "Is younger than Tom"),
    ("Pays by card", "Pays by card only"),
    ("Paid the rent", "Paid the rent?"),
    ("Owns C4 shares", "Owns C# books"),
]
"""Two facts, or a contradiction: both must be shown."""


needs_weights = pytest.mark.skipif(
    importlib.util.find_spec("mem0_models") is None, reason="mem0-models is not installed"
)


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder()


def cosines(embedder: OnnxEmbedder, pairs: list[tuple[str, str]]) -> list[float]:
    older, newer = (embedder.embed(list(texts)) for texts in zip(*pairs, strict=True))
    found: list[float] = np.sum(older * newer, axis=1).tolist()
    return found


def find_covered(embedder: OnnxEmbedder, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs of which only the newer would be shown."""
    return [
        (older, newer)
        for (older, newer), cosine in zip(pairs, cosines(embedder, pairs), strict=True)
        if restates(newer, older) and cosine >= MIN_DUPLICATE_COSINE
    ]


@needs_weights
def test_nothing_is_left_out_that_only_sounds_alike(embedder: OnnxEmbedder) -> None:
    """Numbers, names, negations, times, subjects and objects: precision is 1 on these, and must not fall."""
    assert find_covered(embedder, OTHER) == []


@needs_weights
def test_what_a_newer_memory_says_whole_is_left_out(embedder: OnnxEmbedder) -> None:
    assert find_covered(embedder, SAME) == SAME
    assert find_covered(embedder, GONE_ON) == GONE_ON


@needs_weights
def test_what_is_said_in_other_words_is_shown_twice(embedder: OnnxEmbedder) -> None:
    """The price of precision: a threshold that found these would take different facts for one."""
    assert find_covered(embedder, MISSED) == []


@needs_weights
def test_no_cosine_tells_facts_apart(embedder: OnnxEmbedder) -> None:
    """Cosines cannot decide: at any threshold most results are wrong, or nearly none is found."""
    same, other = (np.array(cosines(embedder, pairs)) for pairs in (SAME + GONE_ON + MISSED, OTHER))
    for threshold in (0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98):
        right, wrong = int((same >= threshold).sum()), int((other >= threshold).sum())
        assert right / (right + wrong) < 0.6, f"at {threshold}: {right} right, {wrong} wrong"


@needs_weights
def test_the_same_opening_is_not_the_same_text(embedder: OnnxEmbedder) -> None:
    """Here the words agree, and the vectors do not."""
    pairs = [
        ("Thanks!", "Thanks! I have started the course that you told me about."),
        ("Yes.", "Yes. My flight is at 9."),
    ]
    assert find_covered(embedder, pairs) == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Porto, near the river.", "I live in Porto."),  # the newer says less
        ("Do I live in Porto", "Do I live in Porto?"),
        ("Is Tom a doctor?", "Is Tom a doctor?"),  # a question says nothing
        ("", ""),
        ("The", "The"),
        ("Likes tea", "Likes tea 👎"),
        ("Likes tea" + " very" * 600, "Likes tea" + " very" * 600),  # too long to be compared
    ],
)
def test_no_restatement(older: str, newer: str) -> None:
    assert not restates(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I’m a “night owl”.", 'I\'m a "night owl"'),
        ("Tom - my brother - is a cook", "Tom, my brother, is a cook"),
        ("LIVES IN PORTO", "lives in Porto"),
        ("Café Central", "Cafe\u0301 Central, in Vienna"),
        ("I won't, can't, don't, shouldn't", "I will not, cannot, do not, should not"),
    ],
)
def test_spelling_and_punctuation_make_no_difference(older: str, newer: str) -> None:
    assert restates(newer, older)


VOCABULARY = ["Tom", "Ana", "likes", "tea", "not", "in", "and", ",", ".", ";", "the", "5", "6:30", "$", "?", "茶", "я"]
spoken = st.lists(st.sampled_from(VOCABULARY), max_size=6)
sayings = spoken.map(" ".join)


@given(st.lists(sayings, max_size=8))
def test_many_are_compared_as_two_are(texts: list[str]) -> None:
    pairs = {
        (new, old) for old, new in itertools.combinations(range(len(texts)), 2) if restates(texts[new], texts[old])
    }
    found = find_restatements(texts)
    assert {(new, old) for new, old, _ in found} == pairs
    assert len(found) == len(pairs)
    assert all(same == restates(texts[old], texts[new]) for new, old, same in found)


def telling(said: list[str]) -> list[str]:
    return [word for word in said if word not in {"the", "and", ",", ".", ";"}]


@given(spoken, spoken, st.integers(0, 6))
def test_whatever_is_left_out_all_its_words_are_shown_in_their_order(
    older: list[str], more: list[str], place: int
) -> None:
    newer = [*older[:place], *more, *older[place:]]
    if restates(" ".join(newer), " ".join(older)):
        assert telling(newer)[: len(telling(older))] == telling(older)


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_compared(newer: str, older: str) -> None:
    assert restates(newer, older) in (True, False)
    assert restates(f"{older}, {newer}", older) in (True, False)
