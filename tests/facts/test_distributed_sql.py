"""The statements on facts and history are such as a cluster takes that spreads both by entity.

Citus itself runs where FACTBOOK_TEST_CITUS_URL names a coordinator. This reads the texts for what
its documentation says that it refuses: locks of rows on several machines, steps from row to row
over them, and comparisons of one entity's rows with those of another.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import factbook
from factbook.operations.layout import DISTRIBUTED
from tests.storage.test_table_owners import texts

FACTS = Path(factbook.__file__).parent / "facts"
TABLES = rf"\b(?:{'|'.join(DISTRIBUTED)})\b"
OF_ONE_ENTITY = r"\bentity_id = \?"


def statements() -> Iterator[tuple[str, str]]:
    """Each text with one of the tables, with its module."""
    for path in FACTS.glob("*.py"):
        for text in texts(ast.parse(path.read_text())):
            if re.search(rf"\b(?:FROM|INTO|UPDATE|JOIN)\s+{TABLES}", text):
                yield path.name, " ".join(text.split())


def problems(sql: str) -> list[str]:
    """What of a statement would be refused where entities are on several machines."""
    found = []
    if re.search(r"\bFOR (UPDATE|SHARE)\b", sql) and not re.search(OF_ONE_ENTITY, sql):
        found.append("locks rows on several machines")
    if "WITH RECURSIVE" in sql and _count(OF_ONE_ENTITY, sql) < _count(TABLES, sql):
        found.append("goes from row to row over several machines")
    if re.search(r"\bSET (?:(?!WHERE).)*\bentity_id =", sql):
        found.append("moves a row to another machine")
    for columns in re.findall(rf"INTO {TABLES} \((.*?)\)|ON CONFLICT \((.*?)\)", sql):
        if "entity_id" not in "".join(columns):
            found.append("writes or finds a row without its entity")
    return found + [problem for query in _subqueries(sql) for problem in _correlated(query, sql)]


def _count(pattern: str, sql: str) -> int:
    return len(re.findall(pattern, sql))


def _subqueries(sql: str) -> Iterator[str]:
    """Every SELECT in parentheses, also within others."""
    begun: list[int] = []
    for place, char in enumerate(sql):
        if char == "(":
            begun.append(place + 1)
        elif char == ")" and begun:
            inner = sql[begun.pop() : place].strip()
            if inner.startswith("SELECT"):
                yield inner


def _correlated(query: str, sql: str) -> Iterator[str]:
    """Problems of a subquery that refers to rows around it."""
    own = set(re.findall(r"(?:\b(?:FROM|JOIN) \w+|\)) (?:AS )?(\w+)", query))
    around = set(re.findall(r"\b([a-z]\w*)\.\w+", query)) - own
    if not around or not re.search(TABLES, query):
        return
    same = "|".join(rf"entity_id = {name}\.entity_id" for name in sorted(around))
    if not re.search(rf"{OF_ONE_ENTITY}|{same}", query):
        yield f"compares with another entity: {query}"
    for derived in _subqueries(sql):
        name = sql[sql.index(derived) + len(derived) :].removeprefix(")").split()[:1]
        if set(name) & around and re.search(r"\bLIMIT\b(?![^(]*\))", derived):
            yield f"compares with rows of a limited subquery: {query}"


def test_a_statement_can_be_spread_by_entity() -> None:
    every = set(statements())
    assert every
    assert {row: found for row in every if (found := problems(row[1]))} == {}


def test_what_a_cluster_refuses_is_found(subtests: pytest.Subtests) -> None:
    cases = [
        ("SELECT facts FROM facts_latest WHERE source_id = ? FOR UPDATE", "locks"),
        (
            "WITH RECURSIVE s (id) AS (SELECT MIN(source_id) FROM facts_history UNION ALL SELECT "
            "(SELECT MIN(h.source_id) FROM facts_history h WHERE h.source_id > s.id) FROM s) "
            "SELECT id FROM s",
            "goes from row to row",
        ),
        (
            "SELECT d.id, (SELECT MAX(h.written_at) FROM facts_history h WHERE h.source_id = d.id) "
            "FROM data_sources d",
            "compares with another entity",
        ),
        (
            "SELECT s.entity_id, (SELECT b.facts FROM facts_history b "
            "WHERE b.entity_id = s.entity_id ORDER BY b.written_at LIMIT 1) "
            "FROM (SELECT entity_id FROM facts_history ORDER BY written_at LIMIT ?) s",
            "limited subquery",
        ),
        ("INSERT INTO facts_latest (source_id, facts) VALUES (?, ?)", "without its entity"),
        ("UPDATE facts_latest SET entity_id = ? WHERE source_id = ?", "moves a row"),
    ]
    for sql, problem in cases:
        with subtests.test(sql=sql, problem=problem):
            assert any(problem in each for each in problems(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT facts FROM facts_latest WHERE source_id = ? AND entity_id = ? FOR UPDATE",
        "SELECT e.ref FROM entities e JOIN facts_latest l ON l.entity_id = e.id",
        "SELECT t.entity_id, (SELECT MAX(n.written_at) FROM facts_history n "
        "WHERE n.entity_id = t.entity_id) FROM (SELECT DISTINCT entity_id FROM facts_history) t",
    ],
)
def test_what_a_cluster_takes_is_left_alone(sql: str) -> None:
    assert problems(sql) == []
