"""Connections: what an administrator configures, and that nothing shows its secrets."""

from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.sources import custom
from factbook.sources.custom import Connection

SECRET = "the-secret-of-a-connection"


def test_a_table_becomes_a_connection_also_from_texts_as_variables_have_them() -> None:
    found = custom.configured(
        {
            "ci": {
                "base_url": "https://ci.test/api",
                "headers": f'{{"Authorization": "Bearer {SECRET}"}}',
                "methods": "GET,POST",
                "at_once": "2",
            }
        }
    )
    headers = {"Authorization": f"Bearer {SECRET}"}
    expected = Connection(
        base_url="https://ci.test/api", headers=headers, methods=("GET", "POST"), at_once=2
    )
    assert found == {"ci": expected}
    assert repr(found) == "{'ci': Connection(base_url='https://ci.test/api')}"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({}, "missing required field `base_url`"),
        ({"base_url": "ci.test"}, "has to begin with https://"),
        ({"base_url": f"https://user:{SECRET}@ci.test"}, "without name, password and query"),
        ({"base_url": f"https://ci.test/?token={SECRET}"}, "without name, password and query"),
        ({"base_url": "https://"}, "has to be like https://host/path"),
        ({"headers": {"a b": SECRET}}, "headers has a name that is none"),
        ({"headers": {"x-token": f"{SECRET}\r\nx: y"}}, "a character that cannot be sent"),
        ({"headers": {"x-token": f"{SECRET}é"}}, "a character that cannot be sent"),
        ({"headers": SECRET}, "Expected `object`"),
        ({"headers": {"x-token": [SECRET]}}, "Expected `str`"),
        ({"methods": ["DELETE"]}, "methods can be GET and POST"),
        ({"at_once": 0}, ">= 1"),
        ({"token": SECRET}, "unknown field `token`"),
    ],
)
def test_a_table_that_cannot_be_used_is_named_and_its_values_are_not(
    table: dict[str, Any], told: str
) -> None:
    whole = {"base_url": "https://ci.test"} | table if table else table
    with pytest.raises(ConfigurationError, match=r"connections\.ci: ") as refused:
        custom.configured({"ci": whole})
    assert told in str(refused.value)
    assert SECRET not in str(refused.value)
