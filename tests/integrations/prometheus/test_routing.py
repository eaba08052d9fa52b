"""Where the routes of an Alertmanager lead an alert."""

from typing import Any

import pytest
import yaml

from factbook.integrations.prometheus import api
from factbook.integrations.prometheus.api import Routing
from factbook.outbound.outcomes import Outcome

PAGER = {"name": "pager", "webhook_configs": [{"url": "<secret>"}]}
DEFAULT = {"name": "default", "email_configs": [{"to": "all@example.com"}]}
SILENT = {"name": "silent"}
ALERT = {"service": "checkout", "severity": "critical", "quoted": 'a"b\\c'}


def configured(*routes: dict[str, Any], **root: Any) -> str:
    """A configuration whose default receiver is `default`."""
    route = {"receiver": "default", "routes": list(routes), **root}
    return yaml.safe_dump({"route": route, "receivers": [DEFAULT, PAGER, SILENT]})


def leads_on(*routes: dict[str, Any], **root: Any) -> bool:
    found = api.read_alert_routes(configured(*routes, **root))
    assert isinstance(found, Routing), found
    return found.leads_on(ALERT)


def to_pager(**matching: Any) -> dict[str, Any]:
    return {"receiver": "pager", **matching}


def test_a_route_is_taken_by_what_it_matches(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], bool]] = [
        ({"match": {"service": "checkout"}}, True),
        ({"match": {"service": "search"}}, False),
        ({"match": {"service": "checkout", "team": "shop"}}, False),
        ({"match": {"team": ""}}, True),
        ({"match_re": {"service": "check.*|search"}}, True),
        ({"match_re": {"service": "check"}}, False),
        ({"match_re": {"service": "^(?:check(out)?)$"}}, True),
        ({"matchers": ['service="checkout"', 'severity=~"critical|page"']}, True),
        ({"matchers": ["service=checkout"]}, True),
        ({"matchers": ['"service" = "checkout"']}, True),
        ({"matchers": [' service =~ "c[a-z]+t" ']}, True),
        ({"matchers": ['service!="checkout"']}, False),
        ({"matchers": ['service!~"check.*"']}, False),
        ({"matchers": ['team!~".+"']}, True),
        ({"matchers": [r'quoted="a\"b\\c"']}, True),
        ({}, True),
    ]
    for matching, expected in cases:
        with subtests.test(matching=matching):
            assert leads_on(to_pager(**matching)) is expected


def test_the_deepest_route_decides_and_inherits_its_receiver() -> None:
    mine = {"match": {"service": "checkout"}}
    assert leads_on({**to_pager(), "routes": [{"receiver": "silent"}]}) is False
    assert leads_on({**mine, "receiver": "silent", "routes": [to_pager()]}) is True
    assert leads_on({**to_pager(), "routes": [mine]}) is True
    assert leads_on({**mine, "receiver": "silent"}, to_pager()) is False
    assert leads_on({**mine, "receiver": "silent", "continue": True}, to_pager()) is True
    assert leads_on(mine) is False
    assert leads_on() is False


def test_the_default_receiver_and_one_that_tells_nobody_are_no_policy() -> None:
    assert leads_on(receiver="pager") is False
    assert leads_on(to_pager(), receiver="pager") is False
    assert leads_on({"receiver": "silent"}) is False
    assert leads_on({"receiver": "no such one"}) is False


def test_what_is_not_understood_is_not_known(subtests: pytest.Subtests) -> None:
    texts = [
        "",
        "text",
        "route: [",
        "route: 7",
        "receivers: []",
        "route: {receiver: x, routes: {}}",
        "route: {receiver: x, matchers: ['no matcher']}",
        "route: {receiver: x, match_re: {service: '('}}",
        "route: {receiver: x, match_re: {service: '(?!a)b'}}",
        "route: {receiver: x, match_re: {service: 'a++b'}}",
        r"route: {receiver: x, match_re: {service: '(a)\1'}}",
        "route: {receiver: x, match_re: {service: '(?>a)'}}",
        "!!python/object/apply:os.system ['true']",
        "route: &x {receiver: y, routes: [*x]}",
        "a: &a [x]\nb: &b [*a, *a]\nroute: {receiver: y}",
        "[" * 50_000,
        "- " * 50_000,
        "{a: " * 50_000,
        "route: {receiver: 'x" + " " * api.LONGEST_CONFIGURATION + "'}",
        "route: {receiver: 7}",
        "route: !!timestamp x",
        "route: {receiver: !!int ''}",
        "\x00",
        "\ud800",
    ]
    for text in texts:
        with subtests.test(text=text):
            found = api.read_alert_routes(text)
            assert not isinstance(found, Routing)
            assert found.outcome is Outcome.TRANSIENT
            assert found.detail == "answered in an unknown format"
