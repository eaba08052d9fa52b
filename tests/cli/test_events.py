"""`factbook events`: the feed as lines, once and for as long as it goes on."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner, Result

from factbook.cli.commands import app
from tests.cli.bridge import Run
from tests.service import Service, component

ADDED = {"subject": "component:default/web", "type": "entity.added"}


def page(*subjects: str, cursor: str = "1.0", more: bool = False) -> dict[str, Any]:
    """A page as a server gives it."""
    events = [
        {
            "id": f"{number}-0",
            "type": "set.replaced",
            "at": "2026-11-21T12:00:00.000+00:00",
            "subject": subject,
            "data": {"set": subject},
        }
        for number, subject in enumerate(subjects)
    ]
    return {"events": events, "nextCursor": cursor, "more": more}


class Stopped:
    """A server that gives these pages; then the command is stopped as by Ctrl-C, or `end` comes."""

    def __init__(
        self, *pages: dict[str, Any], end: type[BaseException] = KeyboardInterrupt
    ) -> None:
        self._end = end
        self.asked: list[dict[str, str]] = []
        self._pages: Iterator[dict[str, Any]] = iter(pages)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(dict(request.url.params))
        found = next(self._pages, None)
        if found is None:
            raise self._end("the server has gone")
        return httpx2.Response(200, json=found)

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["events", *arguments], obj=httpx2.MockTransport(self))


async def test_events_are_printed_with_the_cursor_to_go_on_with(
    service: Service, served: Run
) -> None:
    await service.push("shop", component("web"))
    first = await served("events", "--set", "shop", "--limit", "1")
    assert first.exit_code == 0, first.output
    assert first.stdout == "2026-11-21T12:00:00.000+00:00  set.replaced    shop\n"
    said, _, cursor = first.stderr.strip().rpartition(" ")
    assert said == "To continue: --after"
    rest = await served("events", "--set", "shop", "--after", cursor, "--json")
    [event] = map(json.loads, rest.stdout.splitlines())
    assert event["data"]["set"] == "shop"
    assert ADDED.items() <= event.items()


async def test_events_can_be_narrowed_by_type_and_entity(service: Service, served: Run) -> None:
    await service.push("shop", component("web"), component("cart"))
    found = await served(
        "events", "--type", "entity.added", "--type", "entity.removed",
        "--entity", "component:default/cart",
    )  # fmt: skip
    assert [line.split()[1:] for line in found.stdout.splitlines()] == [
        ["entity.added", "component:default/cart"]
    ]


async def test_a_cursor_that_is_none_is_refused_in_words(served: Run) -> None:
    found = await served("events", "--after", "yesterday")
    assert found.exit_code == 1
    assert "has to be the nextCursor of a page, or now" in found.stderr


async def test_a_cursor_of_what_is_not_kept_is_refused_in_words(served: Run) -> None:
    found = await served("events", "--after", "999999.0")
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.startswith("Error: ")


def test_page_after_page_is_read_until_there_is_no_more() -> None:
    server = Stopped(page("a", cursor="1.0", more=True), page(cursor="2.0", more=True), page("b"))
    found = server.run()
    assert [line.split()[-1] for line in found.stdout.splitlines()] == ["a", "b"]
    assert [asked.get("after") for asked in server.asked] == [None, "1.0", "2.0"]


def test_no_more_is_read_than_was_asked_for() -> None:
    server = Stopped(page("a", "b", more=True), page("c", more=True))
    assert len(server.run("--limit", "3").stdout.splitlines()) == 3
    assert [asked["limit"] for asked in server.asked] == ["3", "1"]


def test_following_waits_for_more_until_it_is_stopped_and_says_where_it_was() -> None:
    server = Stopped(
        page("a", cursor="1.0", more=True), page(cursor="2.0"), page("b", cursor="3.0")
    )
    found = server.run("--follow", "--after", "now")
    assert found.exit_code == 0
    assert [line.split()[-1] for line in found.stdout.splitlines()] == ["a", "b"]
    assert found.stderr == "To continue: --after 3.0\n"
    assert [asked.get("wait") for asked in server.asked] == [None, None, "30", "30"]


def test_a_server_that_goes_away_leaves_the_cursor_to_go_on_with() -> None:
    found = Stopped(page("a", cursor="1.0"), end=httpx2.ConnectError).run("--follow")
    assert found.exit_code == 4
    assert found.stderr.startswith("To continue: --after 1.0\nError: ")


def test_following_has_no_end_to_be_told() -> None:
    found = Stopped().run("--follow", "--limit", "1")
    assert found.exit_code == 2
    assert "leave out --limit" in found.stderr


@pytest.mark.parametrize("name", ["line\nbreak", "\x1b[2Jclear"])
def test_what_a_server_sends_cannot_drive_the_terminal(name: str) -> None:
    found = Stopped(page(name)).run()
    assert "\x1b" not in found.stdout
