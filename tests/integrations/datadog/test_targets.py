"""Which tags annotations ask for, and that they choose nothing else."""

from typing import Any

import pytest

from factbook.outbound.outcomes import Missing, Outcome
from tests.integrations.datadog.asking import APP, started, target

NAME = "datadoghq.com/service-name"
MONITORS = "datadoghq.com/monitor_tags"
SLO = "datadoghq.com/slo_tag"
SITE = "datadoghq.com/site"
LONG = "x" * 201
MANY = ",".join(f"tag:{i}" for i in range(21))


def test_annotations_name_tags_as_datadog_writes_them(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({NAME: "app"}, APP),
        ({NAME: " App "}, APP),
        ({MONITORS: "service:app", SLO: "service:app"}, APP),
        ({NAME: "other", MONITORS: "Service:App", SLO: " service:app "}, APP),
        ({NAME: "app", SLO: "team:one"}, "service:app team:one"),
        (
            {NAME: "app", MONITORS: "team:one, service:app,env:prod,service:app,"},
            "env:prod,service:app,team:one service:app",
        ),
        ({SLO: "payments"}, " payments"),
        ({MONITORS: "service:app"}, "service:app "),
        ({NAME: "app", SITE: "datadoghq.com"}, APP),
        ({NAME: "app", SITE: "app.datadoghq.com"}, APP),
        ({NAME: "app", SLO: 7}, "service:app "),
        ({NAME: "app", MONITORS: f"service:app,{LONG}"}, " service:app"),
        ({NAME: "My app, new"}, "service:my_app__new service:my_app__new"),
        ({NAME: "größe"}, "service:größe service:größe"),
        ({NAME: "a\nb%2f../c?d#e"}, "service:a_b_2f../c_d_e service:a_b_2f../c_d_e"),
    ]
    for annotations, expected in cases:
        with subtests.test(annotations=annotations):
            assert target(annotations) == expected


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_other_annotations_name_nothing(subtests: pytest.Subtests) -> None:
    cases: list[Any] = [
        None,
        {},
        "no mapping",
        {NAME: ""},
        {NAME: "  "},
        {NAME: 7},
        {NAME: ["app"]},
        {NAME: LONG},
        {MONITORS: ""},
        {MONITORS: " , ,"},
        {MONITORS: "service:"},
        {MONITORS: MANY},
        {NAME: "app", MONITORS: "", SLO: ""},
        {NAME: "app", SITE: "datadoghq.eu"},
        {NAME: "app", SITE: "evil.example.net"},
        {NAME: "app", SITE: "https://datadoghq.com"},
        {NAME: "app", SITE: "datadoghq.com/../evil"},
        {NAME: "app", SITE: "datadoghq.com\nx"},
        {NAME: "app", SITE: ""},
        {NAME: "app", SITE: None},
    ]
    for annotations in cases:
        with subtests.test(annotations=annotations):
            found = target(annotations)
            assert isinstance(found, Missing)
            assert found.outcome in {Outcome.NO_ANNOTATION, Outcome.BAD_ANNOTATION}
            assert "evil" not in found.detail


def test_an_instance_counts_for_its_own_site_and_key() -> None:
    table = {"site": "datadoghq.eu", "tag_key": "app"}
    assert target({NAME: "one", SITE: "datadoghq.eu"}, **table) == "app:one app:one"
    assert isinstance(target({NAME: "one", SITE: "datadoghq.com"}, **table), Missing)
    browser = {"site": "app.datadoghq.com", "base_url": "https://api.datadoghq.com"}
    for annotations in ({NAME: "app"}, {NAME: "app", SITE: "app.datadoghq.com"}):
        assert target(annotations, **browser) == APP


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
async def test_no_word_of_an_annotation_is_sent() -> None:
    fake, asking = started()
    wanted = target({NAME: "evil.example.net/../x?y=1"})
    assert isinstance(wanted, str)
    await asking.one(wanted)
    assert [(one.path, one.query) for one in fake.exchanges] == [
        ("/api/v1/monitor", [("page", "0"), ("page_size", "500")]),
        ("/api/v1/slo", [("limit", "500"), ("offset", "0")]),
    ]
    assert {one.headers["host"] for one in fake.exchanges} == {"api.datadoghq.com"}


def test_a_query_is_no_list_of_tags_and_counts_nothing(subtests: pytest.Subtests) -> None:
    queries = [
        "service:app AND env:prod",
        "service:(app OR web)",
        "scope:{service:app}",
        "NOT team:one",
        "service:app*",
    ]
    for query in queries:
        with subtests.test(query=query):
            found = target({MONITORS: query})
            assert found == Missing(
                Outcome.BAD_ANNOTATION, f"{MONITORS} is no list of tags with commas"
            )
            assert target({SLO: query, MONITORS: "service:app"}) == "service:app "
            assert isinstance(nothing := target({}), Missing)
            assert nothing.outcome is Outcome.NO_ANNOTATION


def test_names_that_hold_the_words_of_queries_are_tags() -> None:
    assert target({MONITORS: "team:brand,app:not-found"}) == "app:not-found,team:brand "
