"""Definition of a tool, and the parts that tools share: arguments, times, schemas and pages."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from factbook import invisible
from factbook.audit.trail import Caller
from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.auth.tokens import Grant
from factbook.catalog import ref as refs
from factbook.catalog.store import stored_entities
from factbook.clock import DAY, HOUR, MINUTE, iso, milliseconds
from factbook.datasources.registry import Registry
from factbook.errors import InputError, ToolError, in_words
from factbook.facts.datasource import DataSource
from factbook.settings import Settings
from factbook.storage import Database

Schema = dict[str, Any]
SIZE_NOTE: Final = "Agents cut results above about 25,000 tokens"
_FORM: Final = "Write kind:namespace/name, such as component:default/payments-api."
_NUL: Final = b"\\u0000"
_EMPTY: Final = (b"null", b'""')
_arguments_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
# Agents cut above about 25,000 tokens, and a token of this JSON has between two and three
# characters.
MOST_PAGE_CHARACTERS: Final = 50_000
# Reads for one page, if the earlier reads had little to show.
MOST_READS: Final = 5
# A value whose JSON is longer is cut short.
LONGEST_VALUE: Final = 400
CUT_NOTE: Final = (
    f"Values longer than {LONGEST_VALUE} characters are cut short, and cut tells how many items or "
    "characters they have"
)
_INVALID_CURSOR: Final = (
    "cursor is not the nextCursor of an earlier page. Leave it out to start over."
)
# No reference begins with it.
_QUOTED: Final = "="
_PLACE = re.compile(r"(\d{1,16})/([A-Za-z0-9][A-Za-z0-9._-]{0,99})(?:/(\d{1,18}))?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_AGO = re.compile(r"(\d{1,6})([mhdw])", re.ASCII)
_UNITS = {"m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
TIME_FORM: Final = "a date or an ISO 8601 time, in UTC unless it has an offset"


def describe_text_member(description: str) -> Schema:
    """The JSON Schema of a text in a result."""
    return {"type": "string", "description": description}


def describe_record(properties: Schema, required: Sequence[str]) -> Schema:
    """The JSON Schema of an object in a result, with its required members."""
    return {"type": "object", "properties": properties, "required": list(required)}


def describe_list(items: Schema) -> Schema:
    """The JSON Schema of a list in a result."""
    return {"type": "array", "items": items}


class ToolCall(NamedTuple):
    """A call with its caller: the grant of the token, and the caller for the audit."""

    grant: Grant
    caller: Callable[[], Caller]
    registry: Registry
    settings: Settings


class Context(NamedTuple):
    """The resources for answering one call; `now` in milliseconds since the epoch.

    `find_call` is None on pages, which offer only tools whose answer doesn't depend on the caller.
    `in_pages` asks for answers that agent hosts don't cut.
    """

    database: Database
    sources: Mapping[str, DataSource]
    now: int
    find_call: Callable[[], ToolCall] | None = None
    in_pages: bool = False

    @property
    def call(self) -> ToolCall:
        """The call, with its caller."""
        assert self.find_call is not None
        return self.find_call()

    @property
    def reads_values(self) -> bool:
        """True if the caller may read the values of facts."""
        return SOURCE_READ in self.call.grant.permissions


@dataclass(frozen=True)
class Tool:
    """A tool. `run` returns the result as JSON text, or raises ToolError with advice.

    A caller needs all of its `permissions`. A tool that `writes` changes stored data. Hosts at
    `/mcp` get the `host_description`, if any.
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

        It omits `additionalProperties`, which some hosts cannot convert; the server rejects others.
        """
        _, components = msgspec.json.schema_components([self.arguments])
        schema: Schema = components[self.arguments.__name__]
        schema.setdefault("required", [])
        for part in schema["properties"].values():
            if "default" in part:  # after the type, wherever it was
                part["default"] = part.pop("default")
        return {
            "type": "object",
            "properties": schema["properties"],
            "required": schema["required"],
        }

    async def call(self, arguments: msgspec.Raw | bytes, context: Context) -> str:
        """The result as JSON text; raises ToolError for invalid arguments."""
        if _NUL in bytes(arguments):
            # Nothing in the catalog contains NUL, and PostgreSQL rejects text that does.
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
        """The arguments without optional ones that are null or empty text: both mean absent.

        Not for a tool that writes: it must not ignore an argument that its caller meant to send.
        """
        body = bytes(arguments)
        if not any(empty in body for empty in _EMPTY):
            return arguments
        given = _arguments_decoder.decode(arguments)
        optional = self.input_schema["properties"].keys() - self.input_schema["required"]
        kept = {
            name: value
            for name, value in given.items()
            if not (name in optional and bytes(value) in _EMPTY)
        }
        return msgspec.json.encode(kept)

    def _decoded(self, arguments: msgspec.Raw | bytes) -> Struct:
        """Decode the arguments, also from JSON in text: some hosts send nested values like that."""
        try:
            return self.decoder.decode(arguments)
        except msgspec.ValidationError as error:
            try:
                return self.decoder.decode(self._parsed(arguments))
            except (msgspec.DecodeError, RecursionError):
                raise error from None

    def _parsed(self, arguments: msgspec.Raw | bytes) -> bytes:
        """The arguments, with text parsed as JSON where another type is expected."""
        properties = self.input_schema["properties"]
        return msgspec.json.encode(
            {
                name: _read_argument_value(text, properties.get(name, {}).get("type", "string"))
                for name, text in _arguments_decoder.decode(arguments).items()
            }
        )

    @cached_property
    def usage(self) -> str:
        """The arguments, described in one sentence."""
        schema = self.input_schema
        if not schema["properties"]:
            return f"{self.name} takes no arguments."
        listed = []
        for name, part in schema["properties"].items():
            about = str(part["type"])
            if name in schema["required"]:
                about += ", required"
            elif "default" in part:
                about += f", default {part['default']}"
            listed.append(f"{name} ({about})")
        return f"{self.name} takes {', '.join(listed)}."


def _read_argument_value(given: msgspec.Raw, type_: str) -> Any:
    """An argument of a type. Unless that is text, text is parsed as JSON, also `True` and `5.0`."""
    if type_ == "string":
        return given
    value = msgspec.json.decode(given)
    if type(value) is str:
        value = msgspec.json.decode(value.lower() if type_ == "boolean" else value)
    is_whole = type_ == "integer" and type(value) is float and value.is_integer()
    return int(value) if is_whole else value


def describe_argument(description: str, *examples: object, **rules: Any) -> Meta:
    """Describe an argument, with examples of its value."""
    return Meta(description=description, examples=list(examples), **rules)


Name = Annotated[
    str, describe_argument("Name of the catalog entity.", "payments-api", min_length=1)
]
_KIND: Final = "component"
# Absent differs from the default: a full reference may have another namespace or kind.
Namespace = (
    Annotated[
        str,
        describe_argument(
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
        describe_argument(
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
        return build_canonical_ref(self.kind, self.namespace, self.name)


class NameOrRefArguments(Struct, forbid_unknown_fields=True):
    """The arguments of a tool that takes a name or a whole reference."""

    name: (
        Annotated[
            str,
            describe_argument(
                "Name of the catalog entity; give this or entityRef.", "payments-api"
            ),
        ]
        | UnsetType
    ) = UNSET
    namespace: Namespace = UNSET
    kind: Kind = UNSET
    entity_ref: (
        Annotated[
            str,
            describe_argument(
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
        # Clients send empty text for omitted arguments.
        named = build_canonical_ref(self.kind, self.namespace, self.name) if self.name else None
        whole = None
        if self.entity_ref:
            # With a name, the comparison below reports the difference.
            read = _parse_ref_parts if named else _parse_whole_ref
            whole = str(read(self.kind, self.namespace, self.entity_ref))
        if named is None and whole is None:
            raise ToolError(f"Neither name nor entityRef was given. {both}")
        if named and whole and named != whole:
            raise ToolError(f"name means {named} and entityRef means {whole}. {both}")
        found = whole or named
        assert found is not None
        return found


def build_canonical_ref(kind: str | UnsetType, namespace: str | UnsetType, name: str) -> str:
    """The canonical reference of three parts; a name may itself be a full reference.

    Raises ToolError for a blank part, or one that contradicts a full reference.
    """
    if ":" in name or "/" in name:
        return str(_parse_whole_ref(kind, namespace, name))
    kind, namespace = (
        _use_default(kind, _KIND).strip(),
        _use_default(namespace, refs.DEFAULT_NAMESPACE).strip(),
    )
    name = name.strip()
    if not (kind and namespace and name):
        raise ToolError(f"kind, namespace and name may not be blank. {_FORM}")
    whole = f"{kind}:{namespace}/{name}"
    return whole.lower() if whole.isascii() else str(refs.EntityRef.of(kind, namespace, name))


def _parse_ref_parts(
    kind: str | UnsetType, namespace: str | UnsetType, text: str
) -> refs.EntityRef:
    defaults = _use_default(namespace, refs.DEFAULT_NAMESPACE)
    return refs.parse_ref(text, kind=_use_default(kind, _KIND), namespace=defaults)


def _parse_whole_ref(
    kind: str | UnsetType, namespace: str | UnsetType, text: str
) -> refs.EntityRef:
    """The reference in a text; raises ToolError if kind or namespace contradict it."""
    ref = _parse_ref_parts(kind, namespace, text)
    for part, given, meant in (("kind", kind, ref.kind), ("namespace", namespace, ref.namespace)):
        if given is not UNSET and given.strip().lower() != meant:
            raise ToolError(
                f"{part} says {given.strip()}, and the reference {text.strip()} says {meant}. "
                f"Leave {part} out, or make both agree."
            )
    return ref


def _use_default(given: str | UnsetType, default: str) -> str:
    return default if given is UNSET else given


async def build_unknown_entity_error(database: Database, ref: str) -> ToolError:
    """The error for an entity that is not in the catalog, suggesting similar ones."""
    missing = await stored_entities.make_unknown_error(database, ref)
    return ToolError(
        f"{missing.message} Give the name as the catalog has it, and kind and namespace unless "
        "they are component and default."
    )


async def find_existing_entity(
    database: Database, ref: str, *, owners: bool = False
) -> stored_entities.Complying:
    """The entity's reference, compliance bits and time; raises ToolError if there is none.

    Without `owners`, the bits lack the owner's bit, which needs a lookup.
    """
    found = await stored_entities.list_complying(database, ref, owners=owners)
    if found is None:
        raise await build_unknown_entity_error(database, ref)
    return found


def encode_result(value: object) -> str:
    """Encode a result as JSON text."""
    return msgspec.json.encode(value).decode()


class EntryPage:
    """Entries as JSON text, up to the size of a page."""

    def __init__(self, limit: int) -> None:
        self.texts: list[str] = []
        self._limit = limit
        self._room = MOST_PAGE_CHARACTERS

    @property
    def wanted(self) -> int:
        """The number of entries that still fit."""
        return self._limit - len(self.texts)

    def add(self, entry: dict[str, Any]) -> bool:
        """Add an entry; returns false if there is no room. The first one always fits."""
        text = encode_result(entry)
        if self.wanted == 0 or (self.texts and len(text) > self._room):
            return False
        self.texts.append(text)
        self._room -= len(text)
        return True


def decode_place(cursor: str, parts: int) -> tuple[Any, ...]:
    """The time, source and (with three parts) entity id in a cursor; raises ToolError."""
    match = _PLACE.fullmatch(cursor)
    if match is None or (match[3] is None) != (parts == 2):
        raise ToolError(_INVALID_CURSOR)
    time, source_id, entity_id = match.groups()
    return (int(time), source_id) if parts == 2 else (int(time), source_id, int(entity_id))


def decode_ref_cursor(cursor: str) -> str:
    """The reference encoded in a cursor; raises ToolError for an invalid one."""
    if cursor.startswith(_QUOTED):
        cursor = unquote(cursor.removeprefix(_QUOTED))
    if ":" not in cursor or "/" not in cursor:
        raise ToolError(_INVALID_CURSOR)
    return cursor


def encode_ref_cursor(ref: str) -> str:
    """The cursor after a reference; quoted if the reference has invisible characters."""
    return _QUOTED + quote(ref) if invisible.has(ref) else ref


def render_next_cursor(place: tuple[Any, ...] | None) -> str:
    """The result member that names the next page; empty if there is none."""
    return "" if place is None else f',"nextCursor":{encode_result("/".join(map(str, place)))}'


def shorten_value(value: object) -> tuple[object, int | None]:
    """The value and None, or its beginning and its full size in characters, items or members."""
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return value[:LONGEST_VALUE], len(value)
    if isinstance(value, list) and len(encode_result(value)) > LONGEST_VALUE:
        return value[: _count_fitting(value)], len(value)
    if isinstance(value, dict) and len(encode_result(value)) > LONGEST_VALUE:
        members = list(value.items())
        return dict(members[: _count_fitting(members)]), len(members)
    return value, None


def _count_fitting(items: list[Any]) -> int:
    room = LONGEST_VALUE
    for count, item in enumerate(items):
        room -= len(encode_result(item)) + 1
        if room < 0:
            return count
    return len(items)


def parse_start(text: str, name: str) -> int:
    """The given time, or the start of a date; raises ToolError naming the argument."""
    return _parse_moment(text, name, TIME_FORM)


def parse_end(text: str, name: str) -> int:
    """The given time, or the end of a date; raises ToolError naming the argument."""
    return _parse_moment(text, name, TIME_FORM) + (DAY - 1 if _DATE.fullmatch(text) else 0)


def parse_since(text: str, name: str, now: int) -> int:
    """The given time or date, or the time before now by a duration such as `7d`.

    Raises ToolError naming the argument for any other text, and for a time in the future.
    """
    if match := _AGO.fullmatch(text):
        return max(0, now - int(match[1]) * _UNITS[match[2]])
    found = _parse_moment(text, name, f"{TIME_FORM}, or how long ago, such as 90m, 24h, 7d or 2w")
    if found > now:
        raise ToolError(f"{name} is in the future: it is {iso(now)} now. Give an earlier time.")
    return found


def _parse_moment(text: str, name: str, form: str) -> int:
    whole = f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text
    for given in (whole, f"{whole}Z"):
        if (found := milliseconds(given)) is not None:
            return found
    raise ToolError(
        f"{name} is not a time from 1970 on. Give {form}: 2026-11-01 or 2026-11-01T06:00:00Z."
    )


NEXT_CURSOR: Final = describe_text_member("Pass as cursor for the next page.")
AGE: Final[Schema] = {
    "asOf": describe_text_member("Time as of which the figures are right."),
    "staleSources": describe_list(
        describe_text_member("Data source of the figures that is down or overdue since asOf.")
    ),
}
