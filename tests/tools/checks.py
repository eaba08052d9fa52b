"""What holds for every result of a tool."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from factbook.tools import TOOLS

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"


def structured(tool: str, result: dict[str, Any]) -> dict[str, Any]:
    """The structured content of a good result, which is checked in every respect."""
    assert result.keys() == {"content", "structuredContent", "isError"}, result
    assert result["isError"] is False
    [content] = result["content"]
    assert content.keys() == {"type", "text"}
    assert content["type"] == "text"
    value: dict[str, Any] = result["structuredContent"]
    # The same value in the same order, without blanks.
    assert content["text"] == json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    _validator(tool).validate(value)
    return value


@cache
def _validator(tool: str) -> Draft202012Validator:
    """The validator of a tool's results: to check a schema takes longer than most results."""
    [schema] = [listed.output_schema for listed in TOOLS if listed.name == tool]
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def refusal(result: dict[str, Any]) -> str:
    """The text of a result that is an error, which has nothing else."""
    assert result.keys() == {"content", "isError"}, result
    assert result["isError"] is True
    [content] = result["content"]
    assert content.keys() == {"type", "text"}
    text: str = content["text"]
    return text
