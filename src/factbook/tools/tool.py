"""Definition of a tool, and the parts shared by all: arguments, and entity lookup."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from factbook.audit.trail import Caller
from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.auth.tokens import Grant
from factbook.catalog import ref as refs
from factbook.catalog.store import by_ref
from factbook.datasources.registry import Registry
from factbook.errors import InputError, ToolError, in_words
from factbook.facts.datasource import DataSource
from factbook.settings import Settings
from factbook.storage import Database
from factbook.tools.result_schema import Schema

_FORM: Final = "Write kind:namespace/name, such as component:default/payments-api."
_NUL: Final = b"\\u0000"
_EMPTY: Final = (b"null", b'""')
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ToolCall(NamedTuple):
    """A call by its caller: the grant of its token, and who the audit names."""

    grant: Grant
    caller: Callable[[], Caller]
    registry: Registry
    settings: Settings


class Context(NamedTuple):
    """The resources for answering one call; `now` in milliseconds since the epoch.

    `find_call` is None on pages, which offer only tools that answer everybody who may call them
    alike. `in_pages` asks for answers that hosts of agents don't cut.
    """

    database: Database
    sources: Mapping[str, DataSource]
    now: int
    find_call: Callable[[], ToolCall] | None = None
    in_pages: bool = False

    @property
    def call(self) -> ToolCall:
        """The call by its caller."""
        assert self.find_call is not None
        return self.find_call()

    @property
    def reads_values(self) -> bool:
        """True if the caller may read the values of facts."""
        return SOURCE_READ in self.call.grant.permissions


@dataclass(frozen=True)
class Tool:
    """A tool. `run` returns the result as JSON text, or raises ToolError with advice.

    A caller needs all of its `permissions`. One that `writes` changes what is stored. Hosts at
    `/mcp` are told the `host_description` where it differs.
    """

    name: str
    title: str
    description: str
    arguments: type[Struct]
    output_schema: Schema
    run: Callable[[Any, Context], Awaitable[str]]
    permissions: tuple[str, ...] = (CATALOG_READ, SOURCE_READ)
    writes: bool = False
    host_description: str = ""

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Struct]:
        """The decoder and validator of arguments."""
        return msgspec.json.Decoder(self.arguments)

    @cached_property
    def input_schema(self) -> Schema:
        """The JSON Schema of the arguments, fully inlined.

        That there are no others the server says: the converters of some hosts refuse the member.
        """
        _, components = msgspec.json.schema_components([self.arguments])
        schema: Schema = components[self.arguments.__name__]
        schema.setdefault("required", [])
        for part in schema["properties"].values():
            if "default" in part:  # behind the type, wherever it was said
                part["default"] = part.pop("default")
        return {
            "type": "object",
            "properties": schema["properties"],
            "required": schema["required"],
        }

    async def call(self, arguments: msgspec.Raw | bytes, context: Context) -> str:
        """The result as JSON text; raises ToolError for invalid arguments."""
        if _NUL in bytes(arguments):
            # Nothing in the catalog has it, and PostgreSQL takes no text that does.
            raise ToolError(f"Arguments may not contain the character NUL. {self.usage}")
        try:
            decoded = self._decoded(arguments if self.writes else self._given(arguments))
        except msgspec.ValidationError as error:
            raise ToolError(f"{in_words(error, self.decoder.type)}. {self.usage}") from None
        try:
            return await self.run(decoded, context)
        except InputError as error:
            raise ToolError(f"{error.message} {_FORM}") from None

    def _given(self, arguments: msgspec.Raw | bytes) -> msgspec.Raw | bytes:
        """The arguments without optional ones that are null or empty text, which mean the same.

        Not of a tool that writes: it must not write without what its caller believes to have given.
        """
        body = bytes(arguments)
        if not any(empty in body for empty in _EMPTY):
            return arguments
        given = _members.decode(arguments)
        optional = self.input_schema["properties"].keys() - self.input_schema["required"]
        kept = {
            name: value
            for name, value in given.items()
            if not (name in optional and bytes(value) in _EMPTY)
        }
        return msgspec.json.encode(kept)

    def _decoded(self, arguments: msgspec.Raw | bytes) -> Struct:
        """The arguments. JSON of their type may be text: some hosts send all that is nested so."""
        try:
            return self.decoder.decode(arguments)
        except msgspec.ValidationError as error:
            try:
                return self.decoder.decode(self._parsed(arguments))
            except (msgspec.DecodeError, RecursionError):
                raise error from None

    def _parsed(self, arguments: msgspec.Raw | bytes) -> bytes:
        """The arguments, with those read as JSON that are text and should be something else."""
        properties = self.input_schema["properties"]
        return msgspec.json.encode(
            {
                name: _value(text, properties.get(name, {}).get("type", "string"))
                for name, text in _members.decode(arguments).items()
            }
        )

    @cached_property
    def usage(self) -> str:
        """The arguments, described in one sentence."""
        schema = self.input_schema
        if not schema["properties"]:
            return f"{self.name} takes no arguments."
        listed = [
            f"{name} ({_about(name, part, schema)})" for name, part in schema["properties"].items()
        ]
        return f"{self.name} takes {', '.join(listed)}."


def _value(given: msgspec.Raw, type_: str) -> Any:
    """An argument of a type. Text is read as JSON, `True` and `5.0` too, unless text is meant."""
    if type_ == "string":
        return given
    value = msgspec.json.decode(given)
    if type(value) is str:
        value = msgspec.json.decode(value.lower() if type_ == "boolean" else value)
    is_whole = type_ == "integer" and type(value) is float and value.is_integer()
    return int(value) if is_whole else value


def _about(name: str, part: Schema, schema: Schema) -> str:
    if name in schema["required"]:
        return f"{part['type']}, required"
    return f"{part['type']}, default {part['default']}" if "default" in part else part["type"]


def argument(description: str, *examples: object, **rules: Any) -> Meta:
    """Description of an argument, with examples of its value."""
    return Meta(description=description, examples=list(examples), **rules)


Name = Annotated[str, argument("Name of the catalog entity.", "payments-api", min_length=1)]
_KIND: Final = "component"
# Absent they are not the same as given: a reference in full may say something else.
Namespace = (
    Annotated[
        str,
        argument(
            "Namespace of the entity.",
            "default",
            min_length=1,
            extra_json_schema={"default": refs.DEFAULT_NAMESPACE},
        ),
    ]
    | UnsetType
)
Kind = (
    Annotated[
        str,
        argument(
            "Kind of the entity, in any case.",
            "component",
            min_length=1,
            extra_json_schema={"default": _KIND},
        ),
    ]
    | UnsetType
)


class EntityArguments(Struct, forbid_unknown_fields=True):
    """The arguments of a tool about one entity."""

    name: Name
    namespace: Namespace = UNSET
    kind: Kind = UNSET

    def ref(self) -> str:
        """The canonical reference named by the arguments."""
        return canonical(self.kind, self.namespace, self.name)


class NameOrRefArguments(Struct, forbid_unknown_fields=True):
    """The arguments of a tool that takes a name or a whole reference."""

    name: (
        Annotated[
            str,
            argument("Name of the catalog entity; give this or entityRef.", "payments-api"),
        ]
        | UnsetType
    ) = UNSET
    namespace: Namespace = UNSET
    kind: Kind = UNSET
    entity_ref: (
        Annotated[
            str,
            argument(
                "Whole reference of the entity; give this or name.",
                "component:default/payments-api",
            ),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="entityRef")

    def ref(self) -> str:
        """The canonical reference; raises ToolError if name and entityRef contradict each other."""
        both = "Give either name (with namespace and kind when they differ from the defaults) "
        both += "or entityRef, such as component:default/payments-api."
        # Clients send empty text for what they leave out.
        named = canonical(self.kind, self.namespace, self.name) if self.name else None
        whole = None
        if self.entity_ref:
            # Beside a name, the comparison below says what differs.
            read = _parsed if named else _whole
            whole = str(read(self.kind, self.namespace, self.entity_ref))
        if named is None and whole is None:
            raise ToolError(f"Neither name nor entityRef was given. {both}")
        if named and whole and named != whole:
            raise ToolError(f"name means {named} and entityRef means {whole}. {both}")
        found = whole or named
        assert found is not None
        return found


def canonical(kind: str | UnsetType, namespace: str | UnsetType, name: str) -> str:
    """The canonical reference of three parts; a name may itself be a full reference.

    Raises ToolError for a blank part, and for one that contradicts such a name.
    """
    if ":" in name or "/" in name:
        return str(_whole(kind, namespace, name))
    kind, namespace = _or(kind, _KIND).strip(), _or(namespace, refs.DEFAULT_NAMESPACE).strip()
    name = name.strip()
    if not (kind and namespace and name):
        raise ToolError(f"kind, namespace and name may not be blank. {_FORM}")
    whole = f"{kind}:{namespace}/{name}"
    return whole.lower() if whole.isascii() else str(refs.EntityRef.of(kind, namespace, name))


def _parsed(kind: str | UnsetType, namespace: str | UnsetType, text: str) -> refs.EntityRef:
    defaults = _or(namespace, refs.DEFAULT_NAMESPACE)
    return refs.parse(text, kind=_or(kind, _KIND), namespace=defaults)


def _whole(kind: str | UnsetType, namespace: str | UnsetType, text: str) -> refs.EntityRef:
    """The reference in a text; raises ToolError if kind or namespace contradict it."""
    ref = _parsed(kind, namespace, text)
    for part, given, meant in (("kind", kind, ref.kind), ("namespace", namespace, ref.namespace)):
        if given is not UNSET and given.strip().lower() != meant:
            raise ToolError(
                f"{part} says {given.strip()}, and the reference {text.strip()} says {meant}. "
                f"Leave {part} out, or make both agree."
            )
    return ref


def _or(given: str | UnsetType, default: str) -> str:
    return default if given is UNSET else given


async def unknown_entity(database: Database, ref: str) -> ToolError:
    """The error for an entity that is not in the catalog, suggesting similar ones."""
    missing = await by_ref.unknown(database, ref)
    return ToolError(
        f"{missing.message} Give the name as the catalog has it, and kind and namespace unless "
        "they are component and default."
    )


async def existing(database: Database, ref: str, *, owners: bool = False) -> by_ref.Complying:
    """The entity's reference, compliance bits and time; raises ToolError if there is none.

    Without `owners` the bits lack the one of its owner, which has to be looked up.
    """
    found = await by_ref.complying(database, ref, owners=owners)
    if found is None:
        raise await unknown_entity(database, ref)
    return found


def encode(value: object) -> str:
    """Encode a result as JSON text."""
    return msgspec.json.encode(value).decode()
