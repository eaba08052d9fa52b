"""The settings of one Prometheus."""

from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.facts import datasource
from factbook.integrations.prometheus import INTEGRATION
from factbook.integrations.prometheus.api import PrometheusOptions

URL = "https://prometheus.example.com"
SECRET = "a secret of tests"


def test_a_mistake_is_named_without_a_value(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"base_url": ""}, "base_url has to be like https://prometheus.example.com"),
        ({"base_url": "prometheus:9090"}, "base_url has to be like https://prometheus.example.com"),
        (
            {"base_url": f"https://me:{SECRET}@prometheus.example.com"},
            "base_url has to be like https://prometheus.example.com",
        ),
        (
            {"base_url": "https://[prometheus"},
            "base_url has to be like https://prometheus.example.com",
        ),
        (
            {"alertmanager_url": "ftp://alerts.example.com"},
            "alertmanager_url has to be like https://alertmanager.example.com",
        ),
        (
            {"token": SECRET, "username": "me", "password": SECRET},
            "token and username exclude each other",
        ),
        ({"password": SECRET}, "username and password are needed, both"),
        (
            {"alertmanager_username": "me"},
            "alertmanager_username and alertmanager_password are needed, both",
        ),
        ({"username": "a:b", "password": SECRET}, "username cannot have a colon"),
        ({"label": 'service="x"'}, "label has to be the name of a label, such as service"),
        ({"severity_label": ""}, "severity_label has to be the name of a label, such as service"),
        ({"up_metric": "up{}"}, "up_metric has to be the name of a metric, such as up"),
        ({"resolution": 0}, "resolution has to be from 1 to 3600"),
        ({"tokn": SECRET}, "Object contains unknown field `tokn` (did you mean token?)"),
    ]
    for table, problem in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError) as raised:
                INTEGRATION.configured("work", {"base_url": URL} | table)
            assert raised.value.message == f"integrations.prometheus.work: {problem}."
            assert SECRET not in raised.value.message


def test_no_secret_is_shown() -> None:
    table = {"base_url": URL, "username": "me", "password": SECRET, "alertmanager_token": SECRET}
    table["alertmanager_url"] = "https://alerts.example.com"
    integration = INTEGRATION.configured("default", table)
    options = PrometheusOptions(base_url=URL, token=SECRET)
    assert SECRET not in f"{integration!r} {integration.source.render()} {options!r}"


def test_the_source_of_each_instance_has_an_id_of_its_own() -> None:
    first = INTEGRATION.configured("default", {"base_url": URL}).source
    second = INTEGRATION.configured("work", {"base_url": URL}).source
    assert (first.id, first.title) == ("prometheus", "Prometheus")
    assert (second.id, second.title) == ("prometheus-work", "Prometheus (work)")
    assert datasource.parse_source(first.render()).render() == first.render()
