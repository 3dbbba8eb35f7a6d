"""Forms of the query language with their rows on one small graph, and errors that name the nearest form."""

from __future__ import annotations

from typing import Any

import pytest

from mem0_core import QueryError
from mem0_core.graph._query_check import check
from mem0_core.graph.query_engine import Edge, Plan, Route, Vertex
from mem0_core.graph.query_language import parse
from tests.support import MODES, MemoryDriver, open_memory
from tests.unit.graph.test_traversal import graph

EDGES = [
    ("maya", "sister", "Anna"),
    ("maya", "brother", "Tom", 3),
    ("maya", "lives_in", "Lisbon"),
    ("Anna", "works_at", "Galp", 2),
    ("Tom", "works_at", "Galp"),
    ("Anna", "lives_in", "Porto"),
    ("Tom", "lives_in", "Porto"),
    ("Anna", "has_pet", "Rex"),
    ("Galp", "located_in", "Lisbon"),
]
TYPES = {
    "maya": "person",
    "Anna": "person",
    "Tom": "person",
    "Lisbon": "city",
    "Porto": "city",
    "Galp": "company",
    "Rex": "dog",
}
GRAPH = graph(*EDGES, **TYPES)
COMPANY, HOUSING = frozenset({GRAPH.find_vertices("Galp")[0]}), frozenset({2, 5, 6})
PARAMETERS = {"me": "maya", "names": ["ANNA", "tom"], "text": "an oil company", "minimum": 0.6, "one": 1, "none": None}
"""Values of the parameters, for every query."""


def show(value: Any) -> Any:
    """Return a value of a row as names: relations as ``source-label-destination``, paths as lists of these."""
    match value:
        case Vertex(number):
            return GRAPH.names[number]
        case Edge(number):
            ends = GRAPH.names[GRAPH.source[number]], GRAPH.names[GRAPH.destination[number]]
            return f"{ends[0]}-{GRAPH.labels[GRAPH.label[number]]}-{ends[1]}"
        case Route(vertices, edges):
            return {"nodes": show(vertices), "relations": show(edges)}
        case tuple():
            return [show(one) for one in value]
        case _:
            return value


def run(text: str) -> list[tuple[Any, ...]]:
    query = check(parse(text, PARAMETERS))
    near = {key: COMPANY if key[0] == "node" else HOUSING for key in query.similar_keys}
    rows, _ = Plan(query, GRAPH, near).rows()
    return [tuple(show(value) for value in row) for row in rows]


HOUSES = [("maya", "Lisbon"), ("Anna", "Porto"), ("Tom", "Porto")]
COLLEAGUES = [("Anna",), ("Tom",)]
FORMS: dict[str, list[tuple[Any, ...]]] = {
    # the specification's form: rows of relations, without RETURN
    "MATCH (a:person {name: 'Anna'})-[:works_at*1..2]->(b:company)": [(["Anna-works_at-Galp"], "Anna", "Galp")],
    "MATCH (a:person {name:'Anna'})-[r:HAS_PET]->(b:dog) WHERE b.name = 'Rex'": [("Anna-has_pet-Rex", "Anna", "Rex")],
    "MATCH (:person {name: 'Anna'})-[:sister|has_pet]->()": [("Anna-has_pet-Rex",)],
    "MATCH (a {name: 'Rex'})--(b)": [("Anna-has_pet-Rex", "Rex", "Anna")],
    "MATCH (a:dog)": [("Rex",)],
    "MATCH (:dog)": [("Rex",)],
    "MATCH (a)-[:has_pet]->() ORDER BY a.name LIMIT 1": [("Anna-has_pet-Rex", "Anna")],
    "MATCH ({name: 'maya'})-[:sister]->()-[:has_pet]->()": [("maya-sister-Anna", "Anna-has_pet-Rex")],
    # similarity
    "MATCH (a)-[:works_at]->(b) WHERE SIMILAR(b, 'an oil company') RETURN a.name": COLLEAGUES,
    "MATCH (a)-[:works_at]->(b) WHERE SIMILAR(b, 'an oil company', 0.5) RETURN a.name": COLLEAGUES,
    "MATCH (a)-[:works_at]->(b) WHERE SIMILAR(b, 'an oil company') >= 0.5 RETURN a.name": COLLEAGUES,
    "MATCH (a)-[:works_at]->(b) WHERE SIMILAR(b.name, $text, $minimum) RETURN a.name": COLLEAGUES,
    "MATCH (a)-[:works_at]->(b) WHERE b SIMILAR 'an oil company' RETURN a.name": COLLEAGUES,
    "MATCH (a)-[:works_at]->(b) WHERE b.name SIMILAR TO $text RETURN a.name": COLLEAGUES,
    "MATCH (a)-[:works_at]->(b) WHERE b similar ('an oil company', 0.3) RETURN a.name": COLLEAGUES,
    "MATCH (a)-[:works_at]->(b) WHERE SIMILAR($text, b) > 0.2 RETURN a.name ORDER BY a.name DESCENDING": COLLEAGUES[
        ::-1
    ],
    "MATCH (a)-[r]->(b) WHERE NOT r SIMILAR 'home' AND a.name = 'Tom' RETURN b.name": [("Galp",)],
    "MATCH (a)-[:works_at]->(b) WHERE SIMILAR(b, 'x') AND a:person": [
        ("Anna-works_at-Galp", "Anna", "Galp"),
        ("Tom-works_at-Galp", "Tom", "Galp"),
    ],
    # parameters
    "MATCH (a {name: $me})-[:sister]->(b) RETURN b.name": [("Anna",)],
    "MATCH (a)-[:lives_in]->(b) WHERE a.name IN $names RETURN a.name, b.name": HOUSES[1:],
    "MATCH (a)-[:lives_in]->(b) WHERE a.name IN [$me, 'x'] RETURN a.name, b.name": HOUSES[:1],
    "MATCH (a)-[:lives_in]->(b) RETURN a.name, b.name SKIP $one LIMIT $one": HOUSES[1:2],
    "MATCH (a) WHERE a.name = $none RETURN a": [],
    "MATCH (a) WHERE coalesce($none, a.name) = 'Rex' RETURN a": [("Rex",)],
    # several MATCH
    "MATCH (a)-[:works_at]->(b) MATCH (a)-[:lives_in]->(c) RETURN a.name, b.name, c.name": [
        ("Anna", "Galp", "Porto"),
        ("Tom", "Galp", "Porto"),
    ],
    "MATCH (a {name: 'Tom'})-[:works_at]->(b) WHERE b:company MATCH (c)-[:works_at]->(b) WHERE c.name <> a.name"
    " RETURN c.name": [("Anna",)],
    "MATCH (a {name: 'Tom'})-[:works_at]->(b) MATCH (c)-[:works_at]->(b) RETURN c.name": COLLEAGUES,
    "MATCH (a {name: 'Tom'})-[:works_at]->(b)<-[:works_at]-(c) RETURN c.name": [("Anna",)],
    "MATCH (a:dog) MATCH (b:company) RETURN a, b": [("Rex", "Galp")],
    "MATCH (a)-[:has_pet]->(b) MATCH (a)-[:works_at]->(c)": [
        ("Anna-has_pet-Rex", "Anna-works_at-Galp", "Anna", "Rex", "Galp")
    ],
    # paths
    "MATCH p = (a {name: 'maya'})-[:sister]->(b)-[:has_pet]->(c) RETURN p": [
        ({"nodes": ["maya", "Anna", "Rex"], "relations": ["maya-sister-Anna", "Anna-has_pet-Rex"]},)
    ],
    "MATCH p = (a:dog)<-[*1..2]-(b:person {name: 'maya'}) RETURN length(p), nodes(p), relationships(p)": [
        (2, ["Rex", "Anna", "maya"], ["Anna-has_pet-Rex", "maya-sister-Anna"])
    ],
    "MATCH p = (a:dog) RETURN p, length(p)": [({"nodes": ["Rex"], "relations": []}, 0)],
    "MATCH p = (a)-[*1..3]->(b:dog) WHERE length(p) > 1 RETURN a.name": [("maya",)],
    "MATCH p = (a)-[r:has_pet]->(b)": [
        ("Anna-has_pet-Rex", {"nodes": ["Anna", "Rex"], "relations": ["Anna-has_pet-Rex"]}, "Anna", "Rex")
    ],
    "MATCH p = (a:dog)--(b), q = (b)-[:works_at]->(c) RETURN length(p), length(q), c.name": [(1, 1, "Galp")],
    # functions
    "MATCH (a {name: 'maya'})-[r]->(b:person) RETURN type(r), b.name ORDER BY type(r)": [
        ("brother", "Tom"),
        ("sister", "Anna"),
    ],
    "MATCH (a)-[r]->(b) WHERE type(r) = 'HAS PET' RETURN b.name": [("Rex",)],
    "MATCH (a)-[r]->(b) WHERE type(r) IN ['has_pet', 'x'] RETURN b.name": [("Rex",)],
    "MATCH (a)-[r]->(b) WHERE r.type = 'has_pet' AND r:has_pet RETURN b.name": [("Rex",)],
    "MATCH (a) WHERE toLower(a.name) = 'galp' RETURN toUpper(a.name), size(a.name)": [("GALP", 4)],
    "MATCH (a) WHERE 'Dog' IN labels(a) RETURN labels(a), trim(a.name)": [(["dog"], "Rex")],
    "MATCH ()-[r:has_pet]->() RETURN startNode(r), endNode(r)": [("Anna", "Rex")],
    "MATCH (a)-[r]->(b) WHERE tolower(coalesce(b.type, 'x')) CONTAINS 'do' RETURN a.name": [("Anna",)],
    "MATCH (a)-[r:has_pet]->(b) WHERE r.valid_from < datetime('2999-01-01') AND r.valid_to IS NULL RETURN b": [
        ("Rex",)
    ],
    "MATCH (a)-[r:has_pet]->(b) WHERE r.valid_from < date('1960-01-01') RETURN b": [],
    # groups
    "MATCH (a)-[:lives_in]->(b) RETURN b.name, collect(a.name) AS who ORDER BY b.name": [
        ("Lisbon", ["maya"]),
        ("Porto", ["Anna", "Tom"]),
    ],
    "MATCH (a)-[:works_at]->(b) RETURN b, COLLECT(a), count(*)": [("Galp", ["Anna", "Tom"], 2)],
    "MATCH (a:person)-[r]->(b) RETURN collect(DISTINCT a.type)": [(["person"],)],
    "MATCH (a:robot) RETURN collect(a), count(a), sum(a.component), max(a.name)": [([], 0, 0, None)],
    "MATCH ()-[r:works_at|brother]->() RETURN sum(r.weight), min(r.weight), max(r.weight), avg(r.weight)": [
        (6, 1, 3, 2)
    ],
    "MATCH p = (a {name: 'Anna'})-->(b:city) RETURN a.name, collect(p)": [
        ("Anna", [{"nodes": ["Anna", "Porto"], "relations": ["Anna-lives_in-Porto"]}])
    ],
    "MATCH (a)-[r]->(b) RETURN type(r), count(*) AS n ORDER BY n DESC, type(r) LIMIT 2": [
        ("lives_in", 3),
        ("works_at", 2),
    ],
    "MATCH (count)-[collect:has_pet]->(type) RETURN count, count(collect), type.name": [("Anna", 1, "Rex")],
    # writing
    "MATCH (a:dog) RETURN a;": [("Rex",)],
    "MATCH (a:dog) ;": [("Rex",)],
    "match (a:Dog)\n// the pets\nreturn a /* all\nof them */ limit 3;": [("Rex",)],
    "MATCH (a)-[:has_pet|:sister]->(b) RETURN b.name": [("Anna",), ("Rex",)],
    "MATCH (a) WHERE a:dog OR NOT (a:person OR a:city) RETURN a.name ORDER BY a.name": [("Galp",), ("Rex",)],
}


@pytest.mark.parametrize("text", FORMS)
def test_a_form_has_its_rows(text: str) -> None:
    assert run(text) == FORMS[text]


@pytest.mark.parametrize("text", FORMS)
def test_a_form_reads_back_from_its_tree(text: str) -> None:
    tree = parse(text, PARAMETERS)
    assert parse(str(tree)) == tree


ONLY_READS = "queries only read"
ERRORS: dict[str, tuple[int, str]] = {
    "SELECT name FROM people": (0, "MATCH (a)-[r]->(b) RETURN"),
    "MACTH (a) RETURN a": (0, "nearest accepted form: MATCH ("),
    "MATCH (a) RETRUN a": (10, "nearest accepted form: RETURN"),
    "MATCH (a) WHRE a.name = 'x'": (10, "nearest accepted form: WHERE"),
    "MATCH (a) RETURN a ODER BY a": (19, "nearest accepted form: ORDER BY"),
    "MATCH (a)-(b)": (10, "nearest accepted form: MATCH (a:person"),
    "MATCH (a)-[r]->b RETURN a": (15, "expected (:"),
    "MATCH (a {name = 'x'}) RETURN a": (15, "{name: 'Anna'}"),
    "MATCH p < (a) RETURN p": (8, "p = (a)-[r]->(b)"),
    "MATCH (a) WHERE a.name == 'x' RETURN a": (24, "form: a.name = 'Anna'"),
    "MATCH (a) WHERE a.name =~ 'x.*' RETURN a": (24, "CONTAINS"),
    "MATCH (a) WHERE a.name LIKE 'x' RETURN a": (23, "CONTAINS"),
    "MATCH (a) WHERE exists(a.type) RETURN a": (31, "IS NOT NULL"),
    "MATCH (a) WHERE a.name = 'x' && a.type = 'y'": (29, "AND"),
    "MATCH (a) WHERE a.name IN 'Anna' RETURN a": (26, "['Anna', 'Eve']"),
    "OPTIONAL MATCH (a) RETURN a": (0, "without OPTIONAL"),
    "MATCH (a) WITH a RETURN a": (10, "as many MATCH as needed"),
    "CREATE (a)": (0, ONLY_READS),
    "MATCH (a) SET a.name = 'x'": (10, ONLY_READS),
    "MATCH (a) DETACH DELETE a": (10, ONLY_READS),
    "MATCH (a) RETURN a;;": (19, "the end of the query"),
    "MATCH (a) RETURN lenght(a)": (17, "did you mean length?"),
    "MATCH (a) RETURN quux(a)": (17, "there are count, collect"),
    "MATCH (a) RETURN type(a)": (17, "takes a relation: type(r)"),
    "MATCH (a) RETURN toLower(a)": (17, "toLower(a.name)"),
    "MATCH (a) RETURN toLower(a.name, a.type)": (17, "written toLower(a.name)"),
    "MATCH (a) RETURN toLower(DISTINCT a.name)": (17, "written toLower(a.name)"),
    "MATCH (a) RETURN collect(*)": (17, "collect(r.weight)"),
    "MATCH (a) RETURN count()": (17, "count(*)"),
    "MATCH (a) WHERE count(a) > 1 RETURN a": (16, "a column of RETURN"),
    "MATCH (a) RETURN toLower(collect(a.name))": (25, "a column of RETURN"),
    "MATCH (a) RETURN sum(a)": (17, "sum(a.name)"),
    "MATCH (a) RETURN a.nmae": (17, "did you mean name?"),
    "MATCH p = (a) RETURN p.name": (21, "a path has no properties"),
    "MATCH p = (a), p = (b) RETURN p": (6, "two paths"),
    "MATCH p = (a) WHERE SIMILAR(p, 'x') RETURN p": (28, "one node or one relation"),
    "MATCH (a) WHERE SIMILAR(a) RETURN a": (25, "SIMILAR(b, 'an oil company', 0.5)"),
    "MATCH (a) WHERE SIMILAR(a.type, 'x') RETURN a": (24, "SIMILAR(a, 'text')"),
    "MATCH (a), (b) WHERE SIMILAR(a, b) RETURN a": (32, "a text to compare"),
    "MATCH (a) WHERE SIMILAR(a, 3) RETURN a": (27, "a text to compare"),
    "MATCH (a) WHERE SIMILAR(a, 'x') < 0.5 RETURN a": (32, "SIMILAR(a, 'text') >= 0.5"),
    "MATCH (a) WHERE a SIMILAR 'x' 0.5 RETURN a": (30, "SIMILAR(b, 'an oil company', 0.5)"),
    "MATCH (a) WHERE a.name = $nobody RETURN a": (25, "parameters={'nobody': ...}"),
    "MATCH (a {name: $names}) RETURN a": (16, "WHERE with IN"),
    "MATCH (a) WHERE a.name IN [$names] RETURN a": (27, "a list in a list"),
    "MATCH (a) RETURN a LIMIT $me": (25, "a whole number of rows"),
    "MATCH (a) RETURN a AS OF $one": (25, "2025-03-01"),
    "MATCH (a) MATCH (b)-[r]->(c) MATCH (c)-[r]->(d)": (19, "two relations"),
    "MATCH (a) WHERE " + "toLower(" * 60 + "a.name" + ")" * 60 + " = 'x'": (0, "levels deep"),
}


@pytest.mark.parametrize("text", ERRORS)
def test_an_error_has_a_position_and_the_nearest_form(text: str) -> None:
    position, form = ERRORS[text]
    with pytest.raises(QueryError) as error:
        run(text)
    assert (error.value.position, f"position {position}" in str(error.value)) == (position, True)
    assert form in str(error.value)


def test_the_sum_of_texts_is_refused() -> None:
    with pytest.raises(QueryError, match=r"sum\(a.name\) needs numbers, such as r.weight"):
        run("MATCH (a) RETURN sum(a.name)")


@pytest.mark.parametrize("value", [{"a": 1}, b"x", float("nan"), [["x"]], object()])
def test_a_parameter_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(QueryError, match="'name' must be a text"):
        parse("MATCH (a) RETURN a", {"name": value})
    with pytest.raises(QueryError, match="mapping"):
        parse("MATCH (a) RETURN a", ["x"])  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES)
def test_parameters_are_values_and_never_a_part_of_the_query(mode: Any, tmp_path: Any) -> None:
    with open_memory(tmp_path) as opened:
        memory = MemoryDriver(opened, mode)
        memory.add("My sister is Anna.", user_id="maya")
        text = "MATCH p = (a {name: $name})-[r]->(b) WHERE type(r) = $label RETURN p, collect(b) AS found;"
        parameters = {"name": "maya", "label": "sister"}
        (row,) = memory.query(text, user_id="maya", parameters=parameters)["rows"]
        assert row["p"]["nodes"] == [{"name": "maya", "type": "person"}, {"name": "Anna", "type": "person"}]
        assert row["p"]["relations"][0]["destination"] == "Anna"
        assert row["found"] == [{"name": "Anna", "type": "person"}]
        parameters["name"] = "maya'}) RETURN a //"
        assert memory.query(text, user_id="maya", parameters=parameters)["rows"] == []
        (edge,) = memory.query("MATCH (a)-[:sister]->(b)", user_id="maya")["rows"]
        assert edge["relation"]["destination"] == "Anna"
