"""The query language: parsing and formatting, results, plans, errors and bounds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mem0_core import QueryError, Scope
from mem0_core.domain.records import Event, RelationChange, Triplet
from mem0_core.graph._query_check import check
from mem0_core.graph._query_tree import (
    Aggregate,
    And,
    Call,
    Compare,
    Constant,
    IsNull,
    Item,
    Match,
    NodePattern,
    Not,
    Or,
    Order,
    Pattern,
    Property,
    Query,
    RelationPattern,
    Similar,
    Variable,
)
from mem0_core.graph.adjacency import Adjacency
from mem0_core.graph.query_engine import Bounds, Near, Plan
from mem0_core.graph.query_language import MAX_HOPS, parse
from mem0_core.testing import HashEmbedder
from tests.support import MODES, MemoryDriver, Mode, hang_guard, open_memory
from tests.unit.graph.test_traversal import graph


def make_plan(query: Query, adjacency: Adjacency, near: Near, **options: Any) -> Plan:
    return Plan(check(query), adjacency, near, **options)


# --- reading and writing ---------------------------------------------------------------------------------------------

NAMES = st.one_of(
    st.sampled_from(["a", "b", "person", "match", "OF", "as", "ünï", "x y", "`", "1st"]),
    st.text(min_size=1, max_size=6),
)
TEXTS = st.text(max_size=8)
NUMBERS = st.one_of(st.integers(-(10**17), 10**17), st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.one_of(TEXTS, NUMBERS, st.booleans(), st.none()).map(Constant)
PROPERTIES = st.builds(Property, NAMES, NAMES)
PLAIN_OPERANDS = st.one_of(PROPERTIES, st.builds(Variable, NAMES), VALUES)
CALLS = st.one_of(
    st.builds(Call, st.sampled_from(["toLower", "type", "size", "nodes"]), st.tuples(PLAIN_OPERANDS)),
    st.builds(Call, st.just("coalesce"), st.lists(PLAIN_OPERANDS, min_size=1, max_size=3).map(tuple)),
)
OPERANDS = st.one_of(PLAIN_OPERANDS, CALLS)
LISTS = st.lists(st.one_of(TEXTS, NUMBERS, st.none()), max_size=3).map(lambda values: Constant(tuple(values)))
ATOMS = st.one_of(
    st.builds(
        Compare,
        OPERANDS,
        st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "CONTAINS", "STARTS WITH", "ENDS WITH"]),
        OPERANDS,
    ),
    st.builds(Compare, OPERANDS, st.just("IN"), LISTS),
    st.builds(IsNull, OPERANDS, st.booleans()),
    st.builds(Similar, NAMES, TEXTS.filter(str.strip), st.none() | st.floats(-1, 1)),
)


def _joined(inner: Any) -> Any:
    def of(kind: Any) -> Any:
        parts = st.lists(inner.filter(lambda part: not isinstance(part, kind)), min_size=2, max_size=3)
        return parts.map(tuple).map(kind)

    return st.one_of(st.builds(Not, inner), of(And), of(Or))


CONDITIONS = st.recursive(ATOMS, _joined, max_leaves=8)
MAPS = st.lists(st.tuples(NAMES, VALUES), max_size=2).map(tuple)
NODES = st.builds(NodePattern, st.none() | NAMES, st.none() | NAMES, MAPS)
HOPS = st.tuples(st.integers(1, MAX_HOPS), st.integers(1, MAX_HOPS)).map(lambda pair: (min(pair), max(pair)))
RELATIONS = st.builds(
    RelationPattern,
    st.none() | NAMES,
    st.lists(NAMES, max_size=2).map(tuple),
    st.none() | HOPS,
    MAPS,
    st.sampled_from(["->", "<-", "-"]),
)


@st.composite
def _patterns(draw: st.DrawFn) -> Pattern:
    relations = draw(st.lists(RELATIONS, max_size=2))
    nodes = draw(st.lists(NODES, min_size=len(relations) + 1, max_size=len(relations) + 1))
    return Pattern(tuple(nodes), tuple(relations), draw(st.none() | NAMES))


AGGREGATES = st.one_of(
    st.just(Aggregate()), st.builds(Aggregate, st.sampled_from(["count", "collect", "max"]), OPERANDS, st.booleans())
)
RETURNED = st.one_of(PROPERTIES, st.builds(Variable, NAMES), CALLS, AGGREGATES)
MATCHES = st.builds(Match, st.lists(_patterns(), min_size=1, max_size=2).map(tuple), st.none() | CONDITIONS)
QUERIES = st.builds(
    Query,
    matches=st.lists(MATCHES, min_size=1, max_size=2).map(tuple),
    items=st.lists(st.builds(Item, RETURNED, st.none() | NAMES), max_size=3).map(tuple),
    distinct=st.booleans(),
    order=st.lists(st.builds(Order, RETURNED, st.booleans()), max_size=2).map(tuple),
    skip=st.integers(0, 10**9),
    limit=st.none() | st.integers(0, 10**9),
    as_of=st.none() | TEXTS,
    explain=st.booleans(),
)


@settings(max_examples=500, deadline=None)
@given(QUERIES)
def test_what_is_written_is_read_as_the_same(query: Query) -> None:
    assert parse(str(query)) == query


def test_the_forms_a_person_may_write() -> None:
    for text, written in {
        "match (a)-->(b)<--(c)--(d) return *": "MATCH (a)-[]->(b)<-[]-(c)-[]-(d) RETURN *",
        "MATCH (a:person{name:'x'})-[r:A|B*]->() Return a": (
            f"MATCH (a:person {{name: 'x'}})-[r:A|B*1..{MAX_HOPS}]->() RETURN a"
        ),
        "MATCH (a)-[*2]-(b) RETURN a": "MATCH (a)-[*2..2]-(b) RETURN a",
        "MATCH (a)-[*..3]-(b) RETURN a": "MATCH (a)-[*1..3]-(b) RETURN a",
        "MATCH (a)-[*2..]-(b) RETURN a": f"MATCH (a)-[*2..{MAX_HOPS}]-(b) RETURN a",
        'MATCH (a) WHERE a.name != "it\'s" RETURN a': "MATCH (a) WHERE a.name <> 'it\\'s' RETURN a",
        "MATCH (a) WHERE (a.name='x') AND ((a.name='y' AND a.name='z')) RETURN a": (
            "MATCH (a) WHERE a.name = 'x' AND a.name = 'y' AND a.name = 'z' RETURN a"
        ),
        "MATCH (a) WHERE NOT (a.name='x' OR a.name='y') RETURN a": (
            "MATCH (a) WHERE NOT (a.name = 'x' OR a.name = 'y') RETURN a"
        ),
        "MATCH (counter)-[returns]->(matching) RETURN counter": "MATCH (counter)-[returns]->(matching) RETURN counter",
        "MATCH (a) RETURN a.name AS n, count(*) ORDER BY n ASC, count(*) DESC skip 1 limit 2 as of '2025'": (
            "MATCH (a) RETURN a.name AS n, count(*) ORDER BY n, count(*) DESC SKIP 1 LIMIT 2 AS OF '2025'"
        ),
    }.items():
        assert str(parse(text)) == written


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 0, "MATCH"),
        ("MATCH (a) WHERE", 15, "a name"),
        ("MATCH (a) RETURN", 16, "a name"),
        ("MATCH a RETURN a", 8, "expected =: MATCH a >>>RETURN a; nearest accepted form: MATCH (a:person"),
        ("MATCH (a RETURN a", 9, "expected"),
        ("MATCH (a)-[r>(b) RETURN a", 12, "]"),
        ("MATCH (a) WHERE a.name = RETURN a", 32, "RETURN"),
        ("MATCH (a) WHERE a.name 'x' RETURN a", 23, "="),
        ("MATCH (a) RETURN a LIMIT x", 25, "a whole number"),
        ("MATCH (a) RETURN a §", 19, "§"),
        ("MATCH (a)<-[]->(b) RETURN a", 9, "one way"),
        ("MATCH (a)-[*0..2]->(b) RETURN a", 11, "must lie"),
        ("MATCH (a)-[*3..2]->(b) RETURN a", 11, "the shorter first"),
        ("MATCH (a)-[*1..99]->(b) RETURN a", 11, "*1..8"),
        ("MATCH (a) WHERE a.name = 'x\\q' RETURN a", 27, "escape"),
        ("MATCH (a) WHERE SIMILAR(a, 'x', 1.5) RETURN a", 32, "cosine"),
        ("MATCH (a) WHERE SIMILAR(a, ' ', 0.5) RETURN a", 27, "a text"),
        ("MATCH (a) WHERE a.name = 1e999 RETURN a", 25, "out of range"),
        ("MATCH (a) RETURN b", 17, "in no pattern; there are a"),
        ("MATCH (a)-[a]->(b) RETURN a", 9, "stands for a node"),
        ("MATCH (a)-[r]->(b), (b)-[r]->(c) RETURN a", 9, "two relations; give"),
        ("MATCH (a) WHERE a.nme = 'x' RETURN a", 16, "it has name, type"),
        ("MATCH (a {age: 3}) RETURN a", 6, "no property 'age'"),
        ("MATCH (a)-[r*]->(b) RETURN r.weight", 27, "in a row"),
        ("MATCH (a)-[r*]->(b) WHERE SIMILAR(r, 'x', 0.5) RETURN a", 34, "one relation"),
        ("MATCH (a) RETURN DISTINCT a.type ORDER BY a.name", 42, "not among"),
    ],
)
def test_an_error_says_where_and_what_was_expected(text: str, position: int, expected: str) -> None:
    with pytest.raises(QueryError) as error:
        make_plan(parse(text), graph(("x", "r", "y")), {})
    assert error.value.position == position
    assert expected in str(error.value)


@pytest.mark.parametrize("part", ["(", "NOT ", "'", "'\\", "`", "((a)-[", ",", "{", "a.", "*", "AND ", "9"])
def test_an_endless_query_is_refused_at_once(part: str) -> None:
    for length in (19_000, 10**6):
        with hang_guard(), pytest.raises(QueryError):  # quadratic reading would take minutes
            parse("MATCH (a) WHERE " + part * (length // len(part)) + " RETURN a")
    with pytest.raises(QueryError, match="query must be a text, not 3"):
        parse(3)  # type: ignore[arg-type]


# --- random queries ------------------------------------------------------------------------------------------------

EDGES = [
    ("ann", "sister", "eve", 2),
    ("ann", "works_at", "Acme"),
    ("eve", "works_at", "Acme"),
    ("eve", "has_pet", "Rex"),
    ("bob", "boss_of", "ann"),
    ("bob", "likes", "bob"),
]
HELD = graph(*EDGES, ann="person", eve="person", bob="person", Rex="dog", Acme="company")
WORDS = (
    "MATCH ( ) (a) (b) (a:person) {name:'ann'} - -> <- -[r]-> <-[:works_at]- -[*1..2]- [r] , WHERE AND OR NOT a.name"
    " b.type r.weight = <> < 'ann' 'person' 1 SIMILAR(a,'x',0.5) RETURN a b r * count(*) DISTINCT ORDER BY SKIP LIMIT 3"
    " AS OF '2025-01-01' EXPLAIN IN [1] IS NULL ` ' \" é \\ \n 99999999999999999999"
)


GOOD = "MATCH (a) -[r]-> (b) WHERE a.name = 'ann' AND NOT b.type = 'dog' RETURN a , b LIMIT 3"


def test_ten_thousand_random_strings_give_rows_or_an_error() -> None:
    chance = random.Random(11)
    words = WORDS.split(" ")
    outcomes = {"rows": 0, "error": 0}
    for number in range(10_000):
        match number % 3:
            case 0:
                text = "".join(
                    chr(chance.choice([chance.randrange(32, 127), chance.randrange(0x3000)])) for _ in range(30)
                )
            case 1:
                text = " ".join(chance.choices(words, k=chance.randrange(1, 16)))
            case _:  # a good one with a word or two put in, left out or doubled
                good = GOOD.split(" ")
                for _ in range(chance.randrange(3)):
                    place = chance.randrange(len(good))
                    good[place : place + chance.randrange(2)] = chance.choices(words, k=chance.randrange(2))
                text = " ".join(good)
        outcomes["rows" if _ran(text) else "error"] += 1
    assert outcomes["rows"] > 500
    assert outcomes["error"] > 500


def _ran(text: str) -> bool:
    try:
        query = parse(text)
        near = dict.fromkeys([("node", "x", 0.5), ("relation", "x", 0.5)], frozenset({0}))
        rows, _ = make_plan(query, HELD, near, bounds=Bounds(matches=2_000, steps=20_000)).rows()
    except QueryError:
        return False
    assert parse(str(query)) == query
    assert all(len(row) == len(rows[0]) for row in rows)
    return True


# --- against brute force -------------------------------------------------------------------------------------------

FEW = st.lists(
    st.tuples(st.sampled_from("uvwxyz"), st.sampled_from("rst"), st.sampled_from("uvwxyz"), st.integers(1, 3)),
    min_size=1,
    max_size=8,
    unique_by=lambda edge: edge[:3],
)
SIDES = {"->": "-[{}]->", "<-": "<-[{}]-", "-": "-[{}]-"}


@settings(max_examples=300, deadline=None)
@given(
    FEW,
    st.sampled_from(list(SIDES)),
    st.sampled_from(list(SIDES)),
    st.sampled_from(["", ":r", ":r|s"]),
    st.sampled_from(["(c)", "(a)"]),
    st.sampled_from(["", "a.name = 'u'", "q.weight > 1", "NOT (a.name = 'u' OR p.weight >= 2)", "p.weight < q.weight"]),
)
def test_two_relations_in_a_row_are_those_of_brute_force(
    edges: list[Any], first: str, second: str, label: str, last: str, where: str
) -> None:
    text = f"MATCH (a){SIDES[first].format('p' + label)}(b){SIDES[second].format('q')}{last}"
    text += f" WHERE {where}" * bool(where) + f" RETURN a.name, b.name, {last[1]}.name AS end, p.weight, q.weight"
    held = graph(*edges)
    rows, _ = make_plan(parse(text), held, {}).rows()
    expected = []
    for p in edges:
        for q in edges:
            if p is q or (label and p[1] not in label[1:].split("|")):
                continue
            for a, b in _ways(p, first):
                for b_too, c in _ways(q, second):
                    if b != b_too or (last == "(a)" and c != a):
                        continue
                    kept = {
                        "": True,
                        "a.name = 'u'": a == "u",
                        "q.weight > 1": q[3] > 1,
                        "NOT (a.name = 'u' OR p.weight >= 2)": not (a == "u" or p[3] >= 2),
                        "p.weight < q.weight": p[3] < q[3],
                    }[where]
                    if kept:
                        expected.append((a, b, c, p[3], q[3]))
    assert sorted(rows) == sorted(expected)


def _ways(edge: Any, side: str) -> set[tuple[str, str]]:
    forward, backward = (edge[0], edge[2]), (edge[2], edge[0])
    return {"->": {forward}, "<-": {backward}, "-": {forward, backward}}[side]


@settings(max_examples=200, deadline=None)
@given(FEW, st.sampled_from(list(SIDES)), st.integers(1, 2), st.integers(0, 2))
def test_relations_in_a_row_are_those_of_brute_force(edges: list[Any], side: str, low: int, more: int) -> None:
    text = f"MATCH (a){SIDES[side].format(f'*{low}..{low + more}')}(b) RETURN a.name, b.name"
    rows, _ = make_plan(parse(text), graph(*edges), {}).rows()
    expected: list[tuple[str, str]] = []

    def walk(start: str, at: str, used: tuple[Any, ...]) -> None:
        if len(used) >= low:
            expected.append((start, at))
        if len(used) < low + more:
            for edge in edges:
                if edge not in used:
                    for here, there in _ways(edge, side):
                        if here == at:
                            walk(start, there, (*used, edge))

    for start in {name for edge in edges for name in (edge[0], edge[2])}:
        walk(start, start, ())
    assert sorted(rows) == sorted(expected)


# --- results --------------------------------------------------------------------------------------------


def rows(text: str, **options: Any) -> list[tuple[Any, ...]]:
    return make_plan(parse(text), HELD, options.pop("near", {}), **options).rows()[0]


def test_names_types_and_labels_are_compared_as_the_graph_does() -> None:
    assert rows("MATCH (a:PERSON {name: ' Ann '})-[:`Works At`]->(b) RETURN b.name") == [("Acme",)]
    assert rows("MATCH (a)-[r]->(b) WHERE r.relationship = 'WORKS AT' AND a.name IN ['EVE', 'x'] RETURN b.name") == [
        ("Acme",)
    ]
    assert rows("MATCH (a) WHERE a.type = 'Dog' RETURN a.name") == [("Rex",)]
    assert rows("MATCH (a) WHERE a.name CONTAINS 'NN' RETURN a.name") == [("ann",)]
    assert rows("MATCH (a) WHERE a.name STARTS WITH 're' OR a.name ENDS WITH 'ME' RETURN a.name ORDER BY a.name") == [
        ("Acme",),
        ("Rex",),
    ]


def test_what_is_not_known_is_neither_true_nor_false() -> None:
    held = graph(("x", "r", "y"), x="person")
    for condition, found in {
        "a.type = 'person'": ["x"],
        "NOT a.type = 'person'": [],
        "a.type IS NULL": ["y"],
        "a.type IS NOT NULL": ["x"],
        "a.type = 'dog' OR a.name = 'y'": ["y"],
        "NOT (a.type = 'dog' AND a.name = 'x')": ["x", "y"],
        "a.name < 3": [],
        "NOT a.name < 3": [],
        "a.type <> null": [],
    }.items():
        query = parse(f"MATCH (a) WHERE {condition} RETURN a.name ORDER BY a.name")
        assert [name for (name,) in make_plan(query, held, {}).rows()[0]] == found, condition


def test_counting_groups_by_what_is_not_counted() -> None:
    text = "MATCH (a)-[r]->(b) RETURN b.name AS at, count(*) AS n, count(DISTINCT a.type) ORDER BY n DESC, at LIMIT 2"
    assert rows(text) == [("Acme", 2, 1), ("ann", 1, 1)]
    assert rows("MATCH (a:robot) RETURN count(*), count(a)") == [(0, 0)]
    assert rows("MATCH (a:robot) RETURN a.name, count(*)") == []
    assert rows("MATCH (a)-[r]->(b) RETURN count(r), count(DISTINCT a)") == [(6, 3)]


def test_distinct_order_skip_and_limit() -> None:
    assert rows("MATCH (a)-[]-(b) RETURN DISTINCT a.name ORDER BY a.name DESC SKIP 1 LIMIT 2") == [("eve",), ("bob",)]
    assert rows("MATCH (a)-[r]->(b) RETURN a.name ORDER BY r.weight DESC, b.name LIMIT 1") == [("ann",)]
    assert rows("MATCH (a) RETURN a LIMIT 0") == []


def test_no_relation_stands_twice_in_a_row() -> None:
    assert rows("MATCH (a)-[r]-(b)-[s]-(c {name: 'ann'}) WHERE b.name = 'bob' RETURN a.name") == [("bob",)]
    assert rows("MATCH (a {name: 'bob'})-[r]-(a) RETURN count(*)") == [(1,)]


def test_similar_is_true_of_those_that_are_near() -> None:
    near = {("node", "firm", 0.5): frozenset({2}), ("relation", "pets", 0.5): frozenset({3})}
    assert rows("MATCH (a)-[r]->(b) WHERE SIMILAR(b, 'firm', 0.5) RETURN a.name", near=near) == [("ann",), ("eve",)]
    assert rows("MATCH (a)-[r]->(b) WHERE SIMILAR(r, 'pets', 0.5) RETURN b.name", near=near) == [("Rex",)]
    text = "MATCH (a)-[r]->(b) WHERE NOT SIMILAR(b, 'firm', 0.5) AND a.name = 'ann' RETURN b.name"
    assert rows(text, near=near) == [("eve",)]


# --- plans and bounds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("MATCH (a:person)-[r]->(b {name: 'Rex'}) RETURN a", "begin at node b (name 'Rex', 1"),
        ("MATCH (a)-[r]->(b) WHERE 'Rex' = b.name RETURN a", "begin at node b (name 'Rex', 1"),
        ("MATCH (a:person)-[r]->(b:dog) RETURN a", "begin at node b (type dog, 1"),
        ("MATCH (a:person)-[r:boss_of]->(b) RETURN a", "begin at relation r (boss_of, 1"),
        ("MATCH (a:person)-[r]->(b) WHERE SIMILAR(b, 'x', 0.5) RETURN a", "begin at node b (near 'x', 1"),
        ("MATCH (a:person)-[r]->(b) WHERE SIMILAR(b, 'x', 0.5) OR b.name = 'Rex' RETURN a", "begin at node a (type"),
        ("MATCH (a)-[*1..2]->(b), (c {name: 'ann'})-->(b) RETURN a", "begin at node c"),
    ],
)
def test_a_plan_begins_at_the_most_selective_end(text: str, start: str) -> None:
    plan = make_plan(parse("EXPLAIN " + text), HELD, {("node", "x", 0.5): frozenset({2})})
    assert start in plan.lines()[0]


def test_a_plan_tests_as_soon_as_it_can_and_says_so() -> None:
    plan = make_plan(
        parse("MATCH (a {name: 'ann'})-[r]->(b)-[s]->(c) WHERE b.type = 'person' AND c.name <> a.name RETURN a"),
        HELD,
        {},
    )
    first, second, third, last = plan.lines()
    assert "where" not in first
    assert "where b.type = 'person'" in second
    assert "where c.name <> a.name" in third
    assert "1000 rows" in last


def test_starting_at_a_name_looks_at_few_of_many() -> None:
    held = graph(*((f"s{number}", "r", f"d{number}") for number in range(3_000)), ("s1", "r", "goal"))
    plan = make_plan(parse("MATCH (a)-[:r]->(b {name: 'goal'}) RETURN a.name"), held, {}, bounds=Bounds(steps=10))
    assert plan.rows()[0] == [("s1",)]


def test_what_goes_too_far_is_given_up_with_a_hint() -> None:
    held = graph(*((f"n{one}", "r", f"n{other}") for one in range(30) for other in range(30)))
    for text, bounds, said in (
        ("MATCH (a)-[*1..8]-(b) RETURN count(*)", Bounds(seconds=0.3), "0.3 seconds"),
        ("MATCH (a)-[*1..8]-(b) RETURN count(*)", Bounds(steps=1_000), "1,000 steps"),
        ("MATCH (a), (b), (c), (d) RETURN count(*)", Bounds(matches=5_000), "5,000 times"),
        ("MATCH (a)-[:r*8]->(b {name: 'n1'}) WHERE b.type = 'x' RETURN a", Bounds(steps=1_000), ""),
    ):
        plan = make_plan(parse(text), held, {}, bounds=bounds)
        if not said:
            assert plan.rows() == ([], False)
            continue
        with pytest.raises(QueryError, match=said) as error:
            plan.rows()
        assert "name an entity" in str(error.value)


def test_more_rows_than_are_returned_unasked_are_told() -> None:
    held = graph(*((f"s{number}", "r", f"d{number}") for number in range(1_200)))
    found, more = make_plan(parse("MATCH (a)-[r]->(b) RETURN a"), held, {}).rows()
    assert (len(found), more) == (1_000, True)
    found, more = make_plan(parse("MATCH (a)-[r]->(b) RETURN a LIMIT 1100"), held, {}).rows()
    assert (len(found), more) == (1_100, False)
    with pytest.raises(QueryError, match="10,000"):
        make_plan(parse("MATCH (a) RETURN a LIMIT 10001"), held, {})


# --- the verb ------------------------------------------------------------------------------------------------------

Open = Callable[..., MemoryDriver]


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_memory(tmp_path) as opened:
        yield MemoryDriver(opened, mode)


def test_a_query_shows_nodes_and_relations_with_their_evidence(memory: MemoryDriver) -> None:
    memory.add("My sister is Anna.", user_id="maya")
    memory.add("Anna has a dog named Rex.", user_id="maya")
    result = memory.query("MATCH (a)-[r]->(b:animal)<-[p*1..2]-(c {name: 'maya'}) RETURN *", user_id="maya")
    assert result["rows"] == []
    result = memory.query("MATCH (c {name: 'maya'})-[p*2]->(b:animal) RETURN *", user_id="maya")
    (row,) = result["rows"]
    assert result["columns"] == ["c", "b", "p"]
    assert row["b"] == {"name": "Rex", "type": "animal"}
    assert [relation["relationship"] for relation in row["p"]] == ["sister", "has_pet"]
    assert all(relation["memories"] for relation in row["p"])
    assert "plan" in memory.query("EXPLAIN MATCH (a) RETURN a", user_id="maya")


def test_a_query_sees_what_held_then(memory: MemoryDriver) -> None:
    memory.add("I live in Rome.", user_id="maya", timestamp="2025-01-01")
    memory.add("I moved to Oslo.", user_id="maya", timestamp="2025-06-01")
    text = "MATCH (a)-[r:lives_in]->(b) RETURN b.name, r.valid_from"

    def homes(query: str, **options: Any) -> list[str]:
        return [row["b.name"] for row in memory.query(query, user_id="maya", **options)["rows"]]

    assert homes(text) == ["Oslo"]
    assert homes(text, as_of="2025-03-01") == ["Rome"]
    assert homes(text + " AS OF '2025-03-01'") == ["Rome"]
    assert homes(text + " AS OF '2025-07-01'", as_of="2025-03-01") == ["Oslo"]
    with pytest.raises(QueryError, match="AS OF"):
        memory.query(text + " AS OF 'yesterday'", user_id="maya")
    (row,) = memory.query(text, user_id="maya")["rows"]
    assert row["r.valid_from"] == "2025-06-01T00:00:00+00:00"


def test_similar_finds_by_the_vectors_of_the_store(memory: MemoryDriver) -> None:
    memory.add("I work at Galp Energia.", user_id="maya")
    memory.add("My sister is Anna.", user_id="maya")
    text = "MATCH (a)-[r]->(b) WHERE SIMILAR({}, '{}', 0.6) RETURN b.name"
    assert memory.query(text.format("b", "Galp Energia"), user_id="maya")["rows"] == [{"b.name": "Galp Energia"}]
    assert memory.query(text.format("r", "maya sister Anna"), user_id="maya")["rows"] == [{"b.name": "Anna"}]
    assert memory.query(text.format("b", "something else"), user_id="maya")["rows"] == []


def test_similar_without_graph_memory_is_refused(tmp_path: Path) -> None:
    with open_memory(tmp_path, graph=False) as memory, pytest.raises(QueryError, match="graph memory is off"):
        memory.query("MATCH (a) WHERE SIMILAR(a, 'x', 0.5) RETURN a", user_id="maya")


def test_no_query_reaches_another_user(memory: MemoryDriver) -> None:
    memory.add("My sister is Anna.", user_id="maya")
    memory.add("My sister is Zoe.", user_id="eve")
    everything = memory.query("MATCH (a)-[r]-(b) RETURN *", user_id="maya")
    assert "Zoe" not in json.dumps(everything)
    for name in ("Zoe", "eve"):
        assert memory.query(f"MATCH (a {{name: '{name}'}}) RETURN a", user_id="maya")["rows"] == []
        similar = f"MATCH (a)-[r]-(b) WHERE SIMILAR(a, '{name}', -1) RETURN DISTINCT a.name ORDER BY a.name"
        found = memory.query(similar, user_id="maya")["rows"]
        assert [row["a.name"] for row in found] == ["Anna", "maya"]
    assert memory.query('MATCH (a) WHERE a.name = "x\' OR 1=1 --" RETURN a', user_id="maya")["rows"] == []
    assert len(memory.query("MATCH (a) RETURN a", user_id="maya", run_id="r")["rows"]) == 0


def test_what_was_deleted_is_in_no_row(memory: MemoryDriver) -> None:
    (entry,) = memory.add("My sister is Anna.", user_id="maya")["results"]
    assert len(memory.query("MATCH (a) RETURN a", user_id="maya")["rows"]) == 2
    memory.delete(entry["id"])
    assert memory.query("MATCH (a) RETURN a", user_id="maya")["rows"] == []
    assert memory.query("MATCH (a)-[r]-(b) RETURN r", user_id="maya")["rows"] == []


def test_nearness_that_could_not_be_looked_at_whole_is_told(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    with open_memory(tmp_path, embedder=embedder) as memory:
        (vector,) = embedder.embed(["thing"])
        changes = [
            RelationChange(Event.ADD, Triplet("maya", "likes", f"thing {number}"), vectors=(vector, vector, vector))
            for number in range(400)
        ]
        at = "2025-01-01T00:00:00+00:00"
        space = (embedder.name, embedder.dims)
        memory._store.commit((), relations=changes, scope=Scope("maya"), at=at, embedding_space=space)
        result = memory.query("MATCH (a) WHERE SIMILAR(a, 'thing', 0.9) RETURN count(a)", user_id="maya")
        assert result["rows"] == [{"count(a)": 256}]
        assert "256" in result["note"]


def test_the_command_shows_rows_plans_and_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mem0_core.cli import main

    config = tmp_path / "config.json"
    config.write_text(json.dumps({"embedder": "hash", "durability": "process"}))
    common = ["--user", "maya", "--config", str(config), "--path", str(tmp_path / "data")]
    main(["add", "My sister is Anna.", *common])
    capsys.readouterr()
    assert main(["query", "MATCH (a)-[r]->(b) RETURN a, r, b.type", *common]) == 0
    assert capsys.readouterr().out == "a     r                       b.type\nmaya  maya -- sister -- Anna  person\n"
    one = ["--parameter", 'names=["anna", "x"]', "--parameter", "label=sister"]
    text = "MATCH p = (a)-[r]->(b) WHERE b.name IN $names AND type(r) = $label RETURN p"
    assert main(["query", text, *one, *common]) == 0
    assert capsys.readouterr().out == "p\nmaya -- sister -- Anna\n"
    assert main(["query", text, "--parameter", "names", *common]) == 1
    assert "NAME=VALUE" in capsys.readouterr().err
    assert main(["query", "EXPLAIN MATCH (a {name: 'x'}) RETURN a", *common]) == 0
    assert capsys.readouterr().out.startswith("1. begin at node a")
    assert main(["query", "MATCH (a:robot) RETURN a", *common]) == 0
    assert capsys.readouterr().out == "no rows\n"
    assert main(["query", "MATCH (a", *common]) == 1
    assert "position 8" in capsys.readouterr().err
