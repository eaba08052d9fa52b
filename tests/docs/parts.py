"""The parts of the documentation that repeat the code: made from it, and compared with the pages.

A page holds a part between `<!-- part: NAME -->` and `<!-- end -->`. `python -m tests.docs` writes
them anew.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from typer.main import get_command

from factbook import errors
from factbook.api.catalog import CATALOG_ROUTES
from factbook.api.data_sources import SOURCE_ROUTES
from factbook.api.definitions import CHECK_ROUTES
from factbook.api.endpoint import Route
from factbook.api.facts import FACT_ROUTES
from factbook.api.push import PUSH_ROUTES
from factbook.api.results import RESULT_ROUTES
from factbook.auth import permissions as known_roles
from factbook.auth.group_roles import GroupRoleOptions
from factbook.auth.oauth.clients import OAuthOptions
from factbook.auth.oidc.identity import ProviderOptions as OpenIDOptions
from factbook.auth.permissions import PERMISSION_NAMES, PERMISSIONS, PRESETS
from factbook.checks.rules.language import OPERATORS
from factbook.cli.commands import app
from factbook.errors import FactbookError
from factbook.facts.schema import REASONS, SHAPES, Leaf, LeafGroup, Shape
from factbook.outbound.outcomes import MEANINGS, SIGNS
from factbook.tools import TOOLS, Tool, toolsets
from tests.deploy import chart_values
from tests.docs import vendors
from tests.docs.settings import importers, options, settings
from tests.docs.tables import code, table

DOCS = Path(__file__).parents[2] / "docs"
_PART = re.compile(r"(<!-- part: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


# Commands


def commands() -> str:
    """Every command with its arguments and options."""
    return "\n".join(_command(name, command) for name, command in every_command())


def every_command() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its whole name."""
    for name, command in vars(get_command(app))["commands"].items():
        below = vars(command).get("commands")
        if below is None:
            yield name, command
        for inner, leaf in (below or {}).items():
            yield f"{name} {inner}", leaf


def _command(name: str, command: Any) -> str:
    about = " ".join(command.help.partition("\b")[0].split())
    options = [option for option in command.params if is_option(option)]
    arguments = [argument for argument in command.params if not is_option(argument)]
    usage = " ".join(["factbook", name, *map(_usage, arguments), "[OPTIONS]"])
    listed = "".join(f"- `{argument.metavar}`: {argument.help}\n" for argument in arguments)
    columns = ("Option", "Environment variable", "Default", "Meaning")
    rows = [
        (_names(option), code(option.envvar), _default(option), option.help) for option in options
    ]
    texts = [f"## {name}", about, f"```text\n{usage}\n```", listed.strip(), table(columns, rows)]
    return "\n\n".join(text for text in texts if text)


def is_option(parameter: Any) -> bool:
    """Whether a parameter of a command is an option, and not an argument."""
    return bool(parameter.opts[0].startswith("-"))


def _usage(argument: Any) -> str:
    many = "..." if argument.nargs == -1 else ""
    return f"{argument.metavar}{many}" if argument.required else f"[{argument.metavar}]{many}"


def _names(option: Any) -> str:
    return ", ".join(code(name) for name in option.opts)


def _json_value(value: object) -> object:
    """A default as a caller writes it in JSON, texts without their quotes."""
    return str(value).lower() if isinstance(value, bool) else value


def _default(option: Any) -> str:
    return "" if option.is_flag else code(option.default)


# The chart


def chart() -> str:
    """Every value of the Helm chart."""
    rows = [
        (code(path), code(json.dumps(chart_values.default(path))), part["description"])
        for path, part in chart_values.leaves()
    ]
    return table(("Value", "Default", "Meaning"), rows)


# Tools


def arguments(tool: Tool) -> str:
    """The arguments of one tool."""
    schema = tool.input_schema
    return table(
        ("Argument", "Type", "Required", "Default", "Meaning"),
        [
            (
                code(name),
                _json_type(part),
                "yes" if name in schema["required"] else "no",
                code(_json_value(part.get("default"))),
                part["description"],
            )
            for name, part in schema["properties"].items()
        ],
    )


def _json_type(part: dict[str, Any]) -> str:
    return "array of strings" if part["type"] == "array" else str(part["type"])


def leaves(shape: Shape) -> str:
    """The values of one metric shape, with their units."""
    return table(
        ("Path", "Type", "Unit", "Meaning"),
        [
            (code(path), _leaf_type(member, leaf), leaf.unit or "", leaf.description)
            for member in shape.members
            for path, leaf in member.paths
        ],
    )


def _leaf_type(member: LeafGroup | Leaf, leaf: Leaf) -> str:
    if leaf.optional:
        return f"{leaf.type}, optional"
    return f"{leaf.type}, in an optional group" if member.optional else leaf.type


def reasons() -> str:
    """Every reason for something unknown."""
    return table(("Reason", "Meaning"), [(code(word), text) for word, text in REASONS.items()])


def signs() -> str:
    """Which answers of a host mean which outcome."""
    columns = ("Status", "Sign", "Outcome")
    return table(columns, [(sign.status, sign.sign, code(sign.outcome.value)) for sign in SIGNS])


def outcomes() -> str:
    """What each outcome makes of a value that is missing."""
    columns = ("Outcome", "Reason", "The last value")
    kept = {True: "is kept for a while", False: "is unknown at once"}
    rows = MEANINGS.items()
    return table(
        columns,
        [
            (code(outcome.value), code(meaning.reason), kept[meaning.passing])
            for outcome, meaning in rows
        ],
    )


# Errors and permissions


def error_tree() -> str:
    """Every error that Factbook raises on purpose."""
    columns = ("Class", "Below", "Status", "`error.name`", "Message when none is given")
    return table(columns, [_error(error) for error in every_error()])


def every_error() -> list[type[FactbookError]]:
    """The classes of the error tree, in the order in which the code has them."""
    found = vars(errors).values()
    return [each for each in found if isinstance(each, type) and issubclass(each, FactbookError)]


def _error(error: type[FactbookError]) -> tuple[str, ...]:
    parent = "" if error is FactbookError else code(error.__bases__[0].__name__)
    message = " ".join((error.__doc__ or "").split())
    return code(error.__name__), parent, str(error.status), code(error.name), message


def presets() -> str:
    """Every preset of permissions for tokens."""
    return table(
        ("Preset", "Meaning", "Permissions"),
        [
            (code(each.name), each.about, ", ".join(map(code, sorted(each.permissions))))
            for each in PRESETS
        ],
    )


def permissions() -> str:
    """Every permission."""
    columns = ("Permission", "Title")
    return table(columns, [(code(each.name), each.title) for each in PERMISSIONS])


def roles() -> str:
    """Every role, and what it allows."""
    return table(
        ("Role", "Meaning", "Permissions"),
        [
            (
                f"`{role}`",
                known_roles.ROLE_DESCRIPTIONS[role],
                "all"
                if allowed == PERMISSION_NAMES
                else ", ".join(code(name) for name in sorted(allowed)),
            )
            for role, allowed in known_roles.ROLES.items()
        ],
    )


# Parameters


def parameters(routes: Sequence[Route]) -> str:
    """Every parameter of an interface's queries and headers, with the calls that take it."""
    columns = ("Parameter", "Of", "Values", "Meaning")
    described = [route for route in routes if route.described]
    found = [each for route in described for each in route.parameters or ()]
    return table(
        columns,
        [
            (
                code(each.name) if each.place == "query" else f"{each.place} {code(each.name)}",
                ", ".join(_call(route) for route in described if each in (route.parameters or ())),
                _values(each.schema),
                each.description,
            )
            for place, each in enumerate(found)
            if each not in found[:place]
        ],
    )


def _values(schema: dict[str, Any]) -> str:
    if schema["type"] == "integer":
        most = f" to {schema['maximum']:,}" if schema["maximum"] < 2**31 - 1 else " or more"
        return f"{schema['minimum']}{most}"
    if schema["type"] == "boolean":
        return "`true`, `false`"
    if schema["type"] == "array":
        return f"up to {schema['maxItems']} texts" if "maxItems" in schema else "texts"
    return ", ".join(map(code, schema["enum"])) if "enum" in schema else "text"


def _call(route: Route) -> str:
    return code(f"{route.method} {route.path.replace(':path', '')}")


# Checks


def operators() -> str:
    """Every operator of conditions, with the facts that it takes and what it wants."""
    rows = [
        (
            code(one.name),
            ", ".join(sorted(one.types)),
            one.form.value + (", or another fact" if one.takes_fact else ""),
            one.words.replace("{}", "…"),
        )
        for one in OPERATORS.values()
    ]
    return table(("Operator", "Types of facts", "Value", "Meaning: the fact …"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings,
    "settings:importers": importers,
    "settings:openid": partial(options, OpenIDOptions),
    "settings:group_roles": partial(options, GroupRoleOptions),
    "settings:oauth": partial(options, OAuthOptions),
    "chart": chart,
    "commands": commands,
    "operators": operators,
    "reasons": reasons,
    "signs": signs,
    "outcomes": outcomes,
    "errors": error_tree,
    "permissions": permissions,
    "presets": presets,
    "roles": roles,
    "parameters:catalog": partial(parameters, CATALOG_ROUTES),
    "parameters:push": partial(parameters, PUSH_ROUTES),
    "parameters:checks": partial(parameters, (*CHECK_ROUTES, *RESULT_ROUTES)),
    "parameters:tech-insights": partial(parameters, (*SOURCE_ROUTES, *FACT_ROUTES)),
    **{
        f"arguments:{tool.name}": partial(arguments, tool)
        for tool in (*TOOLS, *toolsets.READING_CHECK_TOOLS, *toolsets.WRITING_CHECK_TOOLS)
    },
    **vendors.parts(),
    **{f"shape:{shape.name}": partial(leaves, shape) for shape in SHAPES},
}


def parts_in(text: str) -> dict[str, str]:
    """The parts that a page holds, by name, without their blank lines around."""
    return {match[2]: match[3].strip() for match in _PART.finditer(text)}


def rewritten(text: str, parts: Mapping[str, Callable[[], str]] = PARTS) -> str:
    """A page with its parts made anew."""
    return _PART.sub(lambda match: f"{match[1]}\n{parts[match[2]]().strip()}\n\n{match[4]}", text)
