"""GitHub's GraphQL schema: the whole one from npm, and the part that our documents use.

The part is kept in `schema.graphql`, so that tests run without npm; `python -m tests.fakes.github`
renews it from the whole, and a test compares the two.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    build_schema,
    get_named_type,
    is_specified_scalar_type,
    parse,
    visit,
)

WHOLE = Path(__file__).parents[2] / (
    "contracts/node_modules/@octokit/graphql-schema/schema.graphql"
)
PART = Path(__file__).parent / "schema.graphql"

# Types that answers have behind an interface or a union, which no document names.
_BEHIND = {"Actor": ("Bot", "User"), "GitObject": ("Commit",), "BypassActor": ("App", "Team")}


@cache
def part() -> GraphQLSchema:
    """The part that our documents use."""
    return build_schema(PART.read_text())


@cache
def whole() -> GraphQLSchema:
    """The whole schema, which npm brings."""
    return build_schema(WHOLE.read_text(), assume_valid=True)


def pruned(schema: GraphQLSchema, documents: Iterable[str]) -> str:
    """The part of the schema that the documents use, in the schema language."""
    uses = _Uses(schema)
    for document in documents:
        visit(parse(document), TypeInfoVisitor(uses.types, uses))
    for interface, names in _BEHIND.items():
        # A union has no fields, and a type needs one.
        shared = uses.fields.get(interface, {"id": set[str]()})
        for name in names:
            uses.add(schema.type_map[name])
            uses.fields.setdefault(name, {}).update(shared)
    return "\n\n".join(_printed(schema, uses, name) for name in sorted(uses.names)) + "\n"


class _Uses(Visitor):
    def __init__(self, schema: GraphQLSchema) -> None:
        super().__init__()
        self.types = TypeInfo(schema)
        self.names: set[str] = set()
        self.fields: dict[str, dict[str, set[str]]] = {"Node": {"id": set()}}
        self.inputs: dict[str, set[str]] = {}

    def add(self, type_: GraphQLNamedType) -> None:
        if not is_specified_scalar_type(type_) and not type_.name.startswith("__"):
            self.names.add(type_.name)

    def enter_field(self, node: Any, *_: Any) -> None:
        parent, definition = self.types.get_parent_type(), self.types.get_field_def()
        if parent is None or definition is None or node.name.value.startswith("__"):
            return
        self.add(parent)
        self.add(get_named_type(definition.type))
        arguments = self.fields.setdefault(parent.name, {}).setdefault(node.name.value, set())
        for argument in node.arguments or ():
            arguments.add(argument.name.value)
            self.add(get_named_type(definition.args[argument.name.value].type))

    def enter_object_field(self, node: Any, *_: Any) -> None:
        parent = self.types.get_parent_input_type()
        type_ = self.types.get_input_type()
        if parent is not None and type_ is not None:
            self.inputs.setdefault(get_named_type(parent).name, set()).add(node.name.value)
            self.add(get_named_type(type_))


def _printed(schema: GraphQLSchema, uses: _Uses, name: str) -> str:
    type_ = schema.type_map[name]
    match type_:
        case GraphQLObjectType():
            return _object(type_, "type", uses)
        case GraphQLInterfaceType():
            return _object(type_, "interface", uses)
        case GraphQLUnionType():
            members = [one.name for one in type_.types if one.name in uses.names]
            return f"union {name} = {' | '.join(members)}"
        case GraphQLEnumType():
            return _block(f"enum {name}", list(type_.values))
        case GraphQLInputObjectType():
            keys = sorted(uses.inputs.get(name, ()))
            return _block(f"input {name}", [f"{key}: {type_.fields[key].type}" for key in keys])
    return f"scalar {name}"


def _object(type_: GraphQLObjectType | GraphQLInterfaceType, word: str, uses: _Uses) -> str:
    shared = [one.name for one in type_.interfaces if one.name in uses.names]
    fields = dict(uses.fields.get(type_.name, {}))
    for name in shared:
        fields |= {key: fields.get(key, set()) for key in uses.fields.get(name, {})}
    lines = [_field(key, type_.fields[key], arguments) for key, arguments in sorted(fields.items())]
    implements = f" implements {' & '.join(shared)}" if shared else ""
    return _block(f"{word} {type_.name}{implements}", lines)


def _block(head: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{head} {{", *(f"  {line}" for line in lines), "}"])


def _field(name: str, field: GraphQLField, used: set[str]) -> str:
    arguments = [f"{key}: {field.args[key].type}" for key in sorted(used)]
    given = f"({', '.join(arguments)})" if arguments else ""
    return f"{name}{given}: {field.type}"
