"""Administration → Audit: who did what, shown to those who may read it."""

import json
import re
from html import unescape
from typing import Any

import pytest

from factbook.audit.trail import AuditEntry, Caller, append_record, append_records, make_record
from factbook.clock import DAY
from tests.service import NOON, Service, component
from tests.web.visiting import browser, signed_in, with_password, words

PATH = "/administration/audit"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def recorded(service: Service, *entries: tuple[str, int, str, str]) -> None:
    """Rows of an actor at a time (milliseconds after noon), an action and an object."""
    records = [
        make_record(Caller(actor, NOON + after, "192.0.2.1"), AuditEntry(action, object))
        for actor, after, action, object in entries
    ]
    await service.state.database.write(lambda tx: append_records(tx, records))


def objects(page: str) -> list[str]:
    """What was done something to, in the order of the rows."""
    return [words(cell) for cell in re.findall(r'<td class="wrap object">(.*?)</td>', page, re.S)]


@pytest.mark.spec("permissions.audit-read-guards-the-audit")
async def test_the_audit_needs_its_permission(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    assert (await vic.open(PATH)).status_code == 403
    assert PATH not in await vic.text("/administration/account")
    assert (await browser(service).open(PATH)).status_code == 303


async def test_what_was_done_is_told_newest_first_with_who_and_what(service: Service) -> None:
    ada = await with_password(service)
    await service.push("shop", component("web"))
    page = await ada.text(PATH)
    assert objects(page) == ["shop", "user:ada"]
    text = words(page)
    assert "user:tester Push a set shop done 127.0.0.1" in text
    assert "user:ada Sign in user:ada done 127.0.0.1" in text
    assert '"revision": 1' in unescape(page)


async def test_what_was_refused_is_there_at_once(service: Service) -> None:
    ada = await signed_in(service)
    vic = await signed_in(service, "vic", "viewer")
    await vic.open("/administration/people")
    text = words(await ada.text(PATH, outcome="refused"))
    assert "user:vic Refused call /administration/people refused" in text


async def test_things_are_links_to_their_pages(service: Service) -> None:
    ada = await with_password(service)
    await recorded(
        service,
        ("user:default/kim", 1, "set.push", "a set/& more"),
        ("user:default/kim", 2, "entity.put", "component:default/web"),
        ("user:default/kim", 3, "data-source.publish", "builds"),
        ("user:default/kim", 4, "person.change", "user:default/vic"),
        ("user:default/kim", 5, "set.delete", "gone"),
        ("user:default/kim", 6, "call.refused", "/api/catalog"),
    )
    page = await ada.text(PATH)
    cells = re.findall(r'<td class="wrap object">(.*?)</td>', page, re.S)
    links = [re.findall(r'href="([^"]+)"', cell) for cell in cells]
    assert links == [
        [],
        [],
        ["/administration/people/vic"],
        ["/data-sources/builds"],
        ["/catalog/component/default/web"],
        ["/sets/a%20set%2F%26%20more"],
        ["/administration/people/ada"],
    ]


async def test_the_rows_are_filtered(service: Service, subtests: pytest.Subtests) -> None:
    ada = await signed_in(service)
    await recorded(
        service,
        ("user:default/kim", 1, "set.push", "a"),
        ("user:default/kim", DAY // 2, "set.delete", "b"),
        ("command line", 3 * DAY // 2, "set.push", "c"),
    )
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"actor": "kim"}, ["b", "a"]),
        ({"actor": "user:default/kim"}, ["b", "a"]),
        ({"actor": "command line"}, ["c"]),
        ({"action": "set.delete"}, ["b"]),
        ({"object": "a"}, ["a"]),
        ({"from": "2026-11-22"}, ["c", "b"]),
        ({"to": "2026-11-21", "action": "set.push"}, ["a"]),
        ({"from": "2026-11-22", "to": "2026-11-22"}, ["b"]),
        ({"actor": "nobody"}, []),
        ({"action": "no such action"}, []),
    ]
    for query, expected in cases:
        with subtests.test(query=query):
            page = await ada.text(PATH, **query)
            assert objects(page) == expected
            if not expected:
                assert "No record matches these filters" in page


@ON_SQLITE
async def test_a_question_that_cannot_be_meant_is_said_on_the_page(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    cases: list[dict[str, Any]] = [
        {"from": "yesterday"},
        {"to": "2026-13-01"},
        {"before": "x"},
        {"from": "9" * 30},
    ]
    for query in cases:
        with subtests.test(query=query):
            page = words(await ada.text(PATH, 400, **query))
            assert "A date is written as" in page or "no such page" in page


async def test_a_long_audit_comes_in_pages_that_keep_the_filter(service: Service) -> None:
    ada = await signed_in(service)
    rows = [("user:default/kim", number, "set.push", f"n{number:03}") for number in range(120)]
    await recorded(service, *rows)
    seen, path = [], f"{PATH}?actor=kim"
    while path:
        page = await ada.text(path)
        seen += objects(page)
        path = unescape("".join(re.findall(r'href="([^"]+)" rel="next"', page)))
    assert seen == [f"n{number:03}" for number in reversed(range(120))]


async def test_equal_records_in_a_row_are_one_row_that_leads_to_each(service: Service) -> None:
    ada = await signed_in(service)
    kim, lou = "user:default/kim", "user:default/lou"
    await recorded(
        service,
        *((kim, number, "set.push", "shop") for number in range(3)),
        (lou, 10, "set.push", "shop"),
        (kim, 20, "set.push", "shop"),
        *((kim, 30 + number, "entity.put", f"component:default/c{number}") for number in range(4)),
        (kim, 40, "entity.put", "group:default/team"),
    )
    page = await ada.text(PATH, object="shop")
    assert objects(page) == ["shop", "shop", "shop"]
    assert "3 times : show each" in words(page)
    page = await ada.text(PATH, actor="kim")
    assert objects(page) == ["group:team", "4 of kind component", "shop"]
    assert [int(number) for number in re.findall(r"(\d+) times", page)] == [4, 4]
    paths = [unescape(path) for path in re.findall(r'class="badge" href="([^"]+)"', page)]
    each = await ada.text(paths[0])
    assert objects(each)[:5] == [f"component:c{number}" for number in (3, 2, 1, 0)] + ["shop"]
    assert "times" not in words(each)
    [folding] = re.findall(r'href="([^"]+)">Fold equal records', each)
    assert objects(await ada.text(unescape(folding))) == [
        "group:team",
        "4 of kind component",
        "shop",
    ]


async def test_pages_of_folded_records_show_each_once(service: Service) -> None:
    ada = await signed_in(service)
    names = [f"n{number // 4:03}" for number in range(400)]
    await recorded(
        service, *(("kim", number, "set.push", name) for number, name in enumerate(names))
    )
    seen, counted, path = [], 0, f"{PATH}?action=set.push"
    while path:
        page = await ada.text(path)
        seen += objects(page)
        counted += sum(int(number) for number in re.findall(r"(\d+) times", page))
        path = unescape("".join(re.findall(r'href="([^"]+)" rel="next"', page)))
    assert seen == sorted(set(names), reverse=True)
    assert counted == 400


async def test_the_filtered_records_are_exported_as_json_lines_oldest_first(
    service: Service,
) -> None:
    ada = await signed_in(service)
    rows = [("user:default/kim", number, "set.push", f"n{number:03}") for number in range(120)]
    await recorded(service, *rows, ("user:default/lou", 0, "set.push", "x"))
    page = await ada.text(PATH, actor="kim")
    [link] = re.findall(r'href="([^"]+)" download', page)
    answer = await ada.open(unescape(link))
    assert answer.headers["content-disposition"] == 'attachment; filename="audit.jsonl"'
    found = [json.loads(line)["object"] for line in answer.text.splitlines()]
    assert found == [f"n{number:03}" for number in range(120)]
    assert (await ada.open(f"{PATH}/export", to="never")).status_code == 400
    vic = await signed_in(service, "vic", "viewer")
    assert (await vic.open(f"{PATH}/export")).status_code == 403


async def test_what_is_recorded_is_text_and_nothing_else(service: Service) -> None:
    ada = await signed_in(service)
    evil = "<script>alert(1)</script>"
    record = make_record(
        Caller(evil, NOON, evil), AuditEntry("set.push", f'"{evil}', {"name": evil, evil: [evil]})
    )
    await service.state.database.write(lambda tx: append_record(tx, record))
    page = await ada.text(PATH, actor=evil, object=f'"{evil}')
    assert "<script>alert" not in page
    assert evil in unescape(page)
