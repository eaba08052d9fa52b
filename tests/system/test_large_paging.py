"""Very many entities are read page by page, each once and in order, while a set is replaced."""

import itertools
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.processes import serving
from tests.service import PUSH
from tests.soak import SOAK

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

QUERY = "/api/catalog/entities/by-query"
ENTITIES = 1_000_000 if SOAK else 200_000
PAGE = 10_000 if SOAK else 4_000
FIELDS = "kind,metadata.name"
# The replaced entities stand between the others, from the first page to the last.
STEP = ENTITIES // 200

Json = dict[str, Any]


class Large(NamedTuple):
    """A server that holds the entities: clients to read and to push, and numbers for pushes."""

    reader: httpx2.Client
    pusher: httpx2.Client
    versions: Iterator[int]


class Page(NamedTuple):
    """The names on a page, and the cursors beside it."""

    names: list[str]
    cursors: Json


def name(number: int) -> str:
    return f"service-{number:07}"


def entity(name: str, version: int = 0) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"version": version},
    }


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    folder = tmp_path_factory.mktemp("large")
    path = folder / "factbook.db"
    with serving(f"sqlite:///{path}", folder) as server:
        token = server.token()
        with server.client(token) as http:
            answer = http.post(f"{PUSH}/entities", json=entity(name(0)))
            assert answer.status_code == 200, answer.text
    multiply(path, name(0))
    with (
        serving(f"sqlite:///{path}", folder) as server,
        server.client(token) as reader,
        server.client(token) as pusher,
    ):
        yield Large(reader, pusher, itertools.count(1))
    path.unlink()


def multiply(path: Path, template: str) -> None:
    """Copy the one stored entity under every name, whatever columns there are behind its uid.

    Only search rows are not copied: nothing here looks at them. The file has to be nobody else's.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000"):
            database.execute(f"PRAGMA {pragma}")
        database.execute("CREATE TEMP TABLE template AS SELECT * FROM entities")
        cursor = database.execute("SELECT * FROM template")
        assert [column[0] for column in cursor.description[:2]] == ["id", "uid"]
        [(_, _, *others)] = cursor.fetchall()
        # SQLite makes the rows: Python would take several times as long.
        made = ["id + number", "substr(uid, 1, length(uid) - 12) || printf('%012d', number)"]
        for (column, *_), value in zip(cursor.description[2:], others, strict=True):
            is_named = isinstance(value, str) and template in value
            made.append(f"replace({column}, '{template}', copy)" if is_named else column)
        database.execute("BEGIN")
        database.execute(
            "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 "  # noqa: S608 - columns
            "FROM numbers LIMIT ?), "
            "copies AS (SELECT number, printf('service-%07d', number) AS copy FROM numbers) "
            f"INSERT INTO entities SELECT {', '.join(made)} FROM copies CROSS JOIN template",
            (ENTITIES - 1,),
        )
        database.execute("UPDATE counters SET value = value + ? WHERE name = 'entity'", (ENTITIES,))
        database.execute("COMMIT")


def replacement(version: int) -> list[Json]:
    """The content of the set: every second name is another one in each version."""
    numbers = range(STEP // 2, ENTITIES, STEP)
    names = [f"{name(i)}-{version if i % (2 * STEP) > STEP else 'kept'}" for i in numbers]
    return [entity(one, version) for one in names]


class Walk:
    """Pages one after another, the set being replaced while each of them is read."""

    def __init__(self, large: Large) -> None:
        self._large = large

    def pages(self, way: str, **asked: str) -> Iterator[Page]:
        """The pages in one direction, `nextCursor` or `prevCursor`."""
        with ThreadPoolExecutor(1) as thread:
            while True:
                pushed = thread.submit(self._push)
                page = read(self._large.reader, asked)
                pushed.result()
                yield page
                if way not in page.cursors:
                    return
                asked = {"cursor": page.cursors[way]}

    def _push(self) -> None:
        items = replacement(next(self._large.versions))
        answer = self._large.pusher.put(f"{PUSH}/sets/replaced", json={"items": items})
        assert answer.status_code == 200, answer.text
        assert answer.json()["changes"]["unchanged"] == 0


def read(http: httpx2.Client, asked: dict[str, str]) -> Page:
    """One page of a query."""
    answer = http.get(QUERY, params={"limit": PAGE, "fields": FIELDS, **asked})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    names = [item["metadata"]["name"] for item in body["items"]]
    return Page(names, body["pageInfo"])


def assert_once_and_in_order(names: Iterable[str]) -> None:
    """Every entity that nobody changed is there once, at its place; the others are at theirs."""
    last, unchanged = "", 0
    for one in names:
        assert last < one
        last = one
        if len(one) == len(name(0)):
            assert one == name(unchanged)
            unchanged += 1
    assert unchanged == ENTITIES


@pytest.mark.spec("catalog.by-query")
def test_by_name_there_and_back_nothing_is_repeated_or_skipped(large: Large) -> None:
    walk = Walk(large)
    there = list(walk.pages("nextCursor", orderField="metadata.name,asc"))
    assert_once_and_in_order(one for page in there for one in page.names)
    assert len(there) > ENTITIES // PAGE

    last = there[-1]
    back = list(walk.pages("prevCursor", cursor=last.cursors["prevCursor"]))
    assert_once_and_in_order(one for page in [*back[::-1], last] for one in page.names)


@pytest.mark.spec("catalog.by-query")
def test_by_reference_nothing_is_repeated_or_skipped(large: Large) -> None:
    walk = Walk(large)
    there = list(walk.pages("nextCursor"))
    assert_once_and_in_order(one for page in there for one in page.names)
