"""What holds for every result of a tool."""

import json
from typing import Any

import jsonschema

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
    [schema] = [listed.output_schema for listed in TOOLS if listed.name == tool]
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
    return value


def refusal(result: dict[str, Any]) -> str:
    """The text of a result that is an error, which has nothing else."""
    assert result.keys() == {"content", "isError"}, result
    assert result["isError"] is True
    [content] = result["content"]
    assert content.keys() == {"type", "text"}
    text: str = content["text"]
    return text
