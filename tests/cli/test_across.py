"""`factbook facts --across`: one fact of every entity, asked of a real service."""

import csv
import io
import json

import pytest

from tests.api.defining import define, item, push, pushed
from tests.cli.bridge import Run
from tests.service import Service, component

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def hosts(service: Service) -> Service:
    owners = {"a": "payments", "b": "payments", "c": "search"}
    items = [component(name, owner=owner) for name, owner in owners.items()]
    assert (await service.push("all", *items)).status_code == 200
    schema = {
        "open": {"type": "integer", "unit": "issues"},
        "protected": {"type": "boolean"},
        "language": {"type": "string"},
    }
    await define(service, pushed("hosts", schema=schema))
    await push(
        service,
        item("component:a", open=3, protected=True, language="=1+1"),
        item("component:b", open=5, protected=False, language="\x1b[31mred"),
        to="hosts",
    )
    return service


async def test_a_fact_is_shown_with_its_figures_and_what_is_unknown(
    hosts: Service, served: Run
) -> None:
    answer = await served("facts", "--across", "hosts", "open", "--by", "owner")
    assert answer.exit_code == 0, answer.stderr
    rows = [line.split() for line in answer.stdout.splitlines() if line]
    assert rows[0] == ["hosts", "open,", "issues"]
    assert ["known", "2"] in rows
    assert ["never-collected", "1"] in rows
    assert ["median", "4"] in rows
    assert ["component:default/b", "5"] in rows
    assert ["group:default/payments", "2", "2", "0", "4"] in rows
    assert ["group:default/search", "1", "0", "1"] in rows


async def test_a_boolean_is_counted_and_shared_by_owner(hosts: Service, served: Run) -> None:
    answer = await served("facts", "--across", "hosts", "protected", "--by", "owner")
    rows = [line.split() for line in answer.stdout.splitlines() if line]
    assert rows[-2] == ["group:default/payments", "2", "2", "0", "1", "of", "2"]
    assert rows[-1] == ["group:default/search", "1", "0", "1"]


async def test_the_part_of_the_catalog_and_json_are_asked_for(hosts: Service, served: Run) -> None:
    words = ("facts", "--across", "hosts", "open", "--where", "owner=search")
    found = json.loads((await served(*words, "--output", "json")).stdout)
    assert (found["entities"], found["known"]) == (1, 0)
    assert json.loads((await served(*words, "--json")).stdout) == found


async def test_csv_has_every_entity_and_no_formula(hosts: Service, served: Run) -> None:
    answer = await served("facts", "--across", "hosts", "language", "--output", "csv")
    rows = list(csv.reader(io.StringIO(answer.stdout)))
    assert [row[1] for row in rows] == ["value", "'=1+1", "\x1b[31mred", ""]
    table = await served("facts", "--across", "hosts", "language")
    assert "\x1b" not in table.stdout


async def test_words_that_do_not_go_together_are_refused(
    hosts: Service, served: Run, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, ...]] = [
        ("facts",),
        ("facts", "a", "--across", "hosts", "open"),
        ("facts", "a", "--output", "csv"),
        ("facts", "--across", "hosts", "open", "--where", "colour=red"),
        ("facts", "--across", "hosts", "open", "--where", "owner=a", "--where", "owner=b"),
        ("facts", "--across", "hosts", "open", "--by", "colour"),
        ("facts", "--across", "hosts"),
    ]
    for words in cases:
        with subtests.test(words=words):
            assert (await served(*words)).exit_code == 2


async def test_a_fact_that_there_is_not_is_said(hosts: Service, served: Run) -> None:
    answer = await served("facts", "--across", "hosts", "none")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert 'has no fact "none"' in answer.stderr
