"""The values of the chart are described, one by one, and have a default."""

import jsonschema
import pytest

from tests.deploy.chart_values import CHART, Values, default, defaults, leaves, schema
from tests.deploy.test_deploy import DEPLOY, is_setting


def names(values: Values, part: Values) -> list[str]:
    """What is in values or in the schema, and not in both."""
    odd = [*(values.keys() ^ part["properties"].keys())]
    for name, below in part["properties"].items():
        if "properties" in below and name in values:
            odd += [f"{name}.{one}" for one in names(values[name], below)]
    return odd


def test_every_value_has_a_default_and_every_default_is_described() -> None:
    assert names(defaults(), schema()) == []


def test_the_defaults_are_values_that_the_schema_allows() -> None:
    found = jsonschema.Draft7Validator(schema()).iter_errors(defaults())
    assert [error.message for error in found] == []


@pytest.mark.slow
def test_a_value_is_described_in_a_sentence(subtests: pytest.Subtests) -> None:
    values = dict(leaves())
    assert values
    for path, part in values.items():
        with subtests.test(path=path):
            assert part["description"].endswith(".")
            jsonschema.validate(default(path), part, cls=jsonschema.Draft7Validator)


def test_the_alerts_of_the_chart_are_those_of_other_installations() -> None:
    assert (CHART / "files" / "alerts.yml").resolve() == DEPLOY / "prometheus" / "alerts.yml"


def test_settings_are_written_as_the_chart_makes_variables_of_them() -> None:
    allowed = schema()["properties"]["settings"]["propertyNames"]
    jsonschema.validate("trusted_proxies", allowed)
    assert is_setting("FACTBOOK_TRUSTED_PROXIES")
