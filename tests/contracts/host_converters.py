"""Converts lists of tools for models, with the libraries that hosts convert them with.

    python host_converters.py < LISTS

LISTS is {address: tools} in JSON. For each tool, converter and address, it prints an object on a
line: `address`, `tool`, `converter`, and either `problem` or `arguments`, `required` and `strict`.
It runs in an environment of its own, with the converters that are installed there.
"""

import copy
import importlib
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

Converted = dict[str, Any]


def google_tool(tool: Any) -> Converted:
    """google-genai, with the schema in Google's own form."""
    return _google(importlib.import_module("google.genai._mcp_utils").mcp_to_gemini_tools([tool]))


def google_declaration(tool: Any) -> Converted:
    """google-genai, with the schema as it is."""
    types = importlib.import_module("google.genai.types")
    declaration = types.FunctionDeclaration(
        name=tool.name, description=tool.description, parameters_json_schema=_schema(tool)
    )
    return _google([types.Tool(function_declarations=[declaration])])


def _google(converted: list[Any]) -> Converted:
    [tool] = converted
    [declaration] = tool.function_declarations
    assert declaration.description
    if declaration.parameters is None:
        return _read(declaration.name, declaration.parameters_json_schema)
    schema = declaration.parameters
    given = {"properties": schema.properties or {}, "required": schema.required or []}
    return _read(declaration.name, given)


def openai_strict(tool: Any) -> Converted:
    """OpenAI Agents SDK, asked for strict schemas."""
    return _openai(tool, strict=True)


def openai(tool: Any) -> Converted:
    """OpenAI Agents SDK."""
    return _openai(tool, strict=False)


def _openai(tool: Any, *, strict: bool) -> Converted:
    module = importlib.import_module("agents.mcp")
    server = module.MCPServerStreamableHttp({"url": "http://127.0.0.1/mcp"}, name="factbook")
    made = module.MCPUtil.to_function_tool(tool, server, strict)
    assert made.description
    return {**_read(made.name, made.params_json_schema), "strict": made.strict_json_schema}


def openai_schema(tool: Any) -> Converted:
    """OpenAI Agents SDK, its conversion of schemas alone."""
    convert = importlib.import_module("agents.strict_schema").ensure_strict_json_schema
    return {**_read(tool.name, convert(copy.deepcopy(_schema(tool)))), "strict": True}


def _schema(tool: Any) -> Any:
    return tool.input_schema if hasattr(tool, "input_schema") else tool.inputSchema


def _read(name: str, schema: Any) -> Converted:
    properties, required = schema["properties"], schema.get("required", [])
    return {"tool": name, "arguments": sorted(properties), "required": sorted(required)}


CONVERTERS: dict[str, list[Callable[[Any], Converted]]] = {
    "google.genai": [google_tool, google_declaration],
    "agents": [openai_strict, openai, openai_schema],
}


def main() -> None:
    """Convert every tool with every converter."""
    tool_type = importlib.import_module("mcp.types").Tool
    present = [each for module, some in CONVERTERS.items() if find_spec(module) for each in some]
    for address, tools in json.load(sys.stdin).items():
        for told in tools:
            for convert in present:
                line = {"address": address, "tool": told["name"], "converter": convert.__name__}
                try:
                    line |= convert(tool_type.model_validate(told))
                except Exception as error:  # noqa: BLE001  (whatever a library raises)
                    line["problem"] = f"{type(error).__name__}: {error}"
                sys.stdout.write(f"{json.dumps(line)}\n")


if __name__ == "__main__":
    main()
