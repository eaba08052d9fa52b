"""Tools as a browser calls them in the playground, and a vendor's facts to ask for."""

import json
import re
from collections.abc import Mapping
from html import unescape
from typing import Any
from urllib.parse import urlencode

from factbook.facts import schema
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from tests.facts.shapes import everything
from tests.web.test_connect import codes
from tests.web.visiting import Browser

BILLING = "billing"
SOURCE = {"dataSourceId": "entity-metadata"}


def _facts(shape: schema.Shape) -> dict[str, object]:
    return {f"{shape.name}.{path}": value for path, value in everything(shape).items()}


VENDOR_FACTS = _facts(schema.OBSERVABILITY) | _facts(schema.REPOSITORY)
_TYPES: dict[type, Any] = {bool: "boolean", int: "integer", list: "set", str: "string"}
VENDOR = DataSource(
    id="vendor",
    title="A vendor <script>alert(1)</script>",
    schema=tuple(Fact(name, _TYPES[type(value)]) for name, value in VENDOR_FACTS.items()),
)


async def called(visitor: Browser, tool: str, typed: Mapping[str, str], status: int = 200) -> str:
    """The page of a tool after its form was sent."""
    query = urlencode({**typed, "run": "1"})
    return await visitor.text(f"/connect/tools/{tool}?{query}", status=status)


def answer(page: str) -> Any:
    """The answer that a page shows."""
    return json.loads(codes(page)[0])


def value_of(page: str, name: str) -> str:
    """What a field of the form holds."""
    found = re.search(rf'<input [^>]*name="{name}" value="([^"]*)"', page)
    assert found is not None, name
    return unescape(found[1])
