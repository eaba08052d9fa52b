"""Definitions of custom sources: parsing with all mistakes at once, and starters."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from factbook.datasources.custom import extraction
from factbook.datasources.custom.documents import FORMATS, Format
from factbook.datasources.custom.extraction import LANGUAGE, Extractor, Template
from factbook.errors import InputError, InvalidItemsError, Problem, Problems, not_a_member, one_of
from factbook.facts import datasource
from factbook.facts.datasource import DataSource, Handler
from factbook.facts.schema import SHAPES, Fact, shape_facts
from factbook.outbound.client import build_address

SourceType = Literal["http", "repository-file", "repository-directory", "entity", "push"]
SOURCE_TYPES: Final[tuple[SourceType, ...]] = get_args(SourceType)
_REPOSITORY_TYPES: Final = frozenset({"repository-file", "repository-directory"})
# Files are read with the server's credentials from any repository that an entity names.
OWNED_TYPES: Final = frozenset(SOURCE_TYPES) - _REPOSITORY_TYPES
METHODS: Final = ("GET", "POST")
MOST_FACTS: Final = 200
# History rows use this name for the reasons of missing values.
_LONGEST_FACT_NAME: Final = 100
_MOST_HEADERS: Final = 20
_MOST_BODY_PARTS: Final = 200  # values inside one
_FACT_MEMBERS: Final = frozenset({"type", "description", "unit", "title", "metadata", "extract"})
_Report = Callable[[str, str], None]
_Body = Template | dict[str, Any] | list[Any] | int | float | bool | None
_HANDLER_MEMBER: Final = "handlerDefinition"
_SCHEMA_MEMBER: Final = "schema"
# Placeholders for required members with invalid values.
_ANY_NAME: Final = "x"
_REQUIRED_MEMBERS: Final = ("id", "title")
_SOURCE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Plain YAML scalars that are strings; `true`, `null` and numbers aren't.
_PLAIN_YAML: Final = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)+|[a-z]+[0-9]+")


# Facts with these names fill the metric tools.
_SHAPE_FACT_TYPES: Final = {
    f"{shape.name}.{fact.name}": fact.type for shape in SHAPES for fact in shape_facts(shape)
}


@dataclass(frozen=True, kw_only=True)
class RequestTemplate:
    """Request of an http source to its connection; strings in `body` are templates."""

    connection: str
    method: str = "GET"
    path: Template
    query: Mapping[str, Template]
    headers: Mapping[str, Template]
    body: _Body = None


@dataclass(frozen=True, kw_only=True)
class CustomSourceDefinition:
    """Custom source. `request` belongs to an http source, `path` to one of repository files.

    `document` is the definition as given.
    """

    source: DataSource
    type: SourceType
    document: Mapping[str, Any]
    extractors: Mapping[str, Extractor]
    format: Format = "json"
    request: RequestTemplate | None = None
    path: Template | None = None


def parse_source_definition(document: Any) -> CustomSourceDefinition:
    """The definition in a document; raises InvalidItemsError with every problem and its path."""
    source = datasource.parse_source(document)
    problems = Problems()
    definition = _Reader(document, source, problems.report).definition()
    problems.check()
    return definition


_PLACEHOLDER_HOST: Final = "https://connection.invalid"
HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
# Headers that set the target, length or real method of a request, or ask for part of the answer:
# secrets can't be detected in partial answers.
REFUSED_HEADER: Final = re.compile(
    r"host|x-forwarded-.*|x-original-.*|x-rewrite-.*|forwarded|content-length|content-encoding"
    r"|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|accept-encoding|proxy-.*"
    r"|x-(?:http-)?method.*|range|if-range",
    re.IGNORECASE,
)


class _Reader:
    """Reader of the members that only custom sources have; reports every problem."""

    def __init__(self, document: Mapping[str, Any], source: DataSource, report: _Report) -> None:
        self._document = document
        self._source = source
        self._report = report
        handler = source.handler or Handler("", "")
        self._type = handler.type
        self._config = dict(handler.config)

    def definition(self) -> CustomSourceDefinition:
        type_ = self._one_of("handlerDefinition.type", self._type, SOURCE_TYPES)
        self._check_source(type_)
        for members_name, given in (self._document.get("schema") or {}).items():
            for member in given.keys() - _FACT_MEMBERS:
                self._report(
                    f"schema.{members_name}.{member}",
                    not_a_member(member, "fact", sorted(_FACT_MEMBERS)),
                )
        language = self._take("extractor", str, LANGUAGE)
        if language != LANGUAGE:
            self._report(_member_path("extractor"), f"has to be {LANGUAGE}")
        request = self._request() if type_ == "http" else None
        path = self._path() if type_ in _REPOSITORY_TYPES else None
        format_: Format = "json"
        if type_ in {"http", "repository-file"}:
            format_ = self._one_of(
                _member_path("format"), self._take("format", str, "json"), FORMATS
            )
        for name in self._config:
            self._report(_member_path(name), f"is not a setting of a source of type {self._type}")
        handler = self._source.handler or Handler("", self._source.id)
        return CustomSourceDefinition(
            source=replace(self._source, handler=Handler(handler.type, self._source.id)),
            type=type_,
            document=self._document,
            extractors=self._extractors(type_),
            format=format_,
            request=request,
            path=path,
        )

    def _check_source(self, type_: SourceType) -> None:
        source = self._source
        if not source.schema:
            self._report("schema", "has to have at least one fact")
        if len(source.schema) > MOST_FACTS:
            self._report("schema", f"can have {MOST_FACTS} facts at most")
        for fact in source.schema:
            if len(fact.name) > _LONGEST_FACT_NAME:
                self._report("schema", f"has a fact of more than {_LONGEST_FACT_NAME} characters")
            wanted = _SHAPE_FACT_TYPES.get(fact.name, fact.type)
            if fact.type != wanted:
                self._report(f"schema.{fact.name}.type", f"has to be {wanted}, as the tools say")
        if source.handler and source.handler.id != source.id:
            self._report(_member_path("id"), "has to be the id of the source")
        if source.handler and source.handler.builtin_id:
            self._report(_member_path("builtinId"), "is only for built-in sources")
        if source.owner is not None and type_ not in OWNED_TYPES:
            self._report("owner", f"is not for a source of type {type_}")
        if type_ == "push" and source.cadence:
            self._report("cadence", "means nothing for a source that is pushed")

    def _request(self) -> RequestTemplate:
        return RequestTemplate(
            connection=self._take("connection", str, "") or self._needed("connection", ""),
            method=self._one_of(_member_path("method"), self._take("method", str, "GET"), METHODS),
            path=self._request_path(),
            query=self._templates("query"),
            headers=self._headers(),
            body=self._body(self._config.pop("body", None), _member_path("body")),
        )

    def _request_path(self) -> Template:
        found = self._template(_member_path("path"), self._take("path", str, ""))
        # Checked with plain values here, and with the entity's values at run time.
        text = "".join(part if isinstance(part, str) else "x" for part in found.parts)
        if text and build_address(_PLACEHOLDER_HOST, text, {}) != f"{_PLACEHOLDER_HOST}{text}":
            self._report(
                _member_path("path"), "has to be below the address of the connection, such as /a/b"
            )
        return found

    def _headers(self) -> dict[str, Template]:
        found = self._templates("headers")
        for name, template in found.items():
            if not HEADER_NAME.fullmatch(name) or REFUSED_HEADER.fullmatch(name):
                self._report(
                    f"{_member_path('headers')}.{name}", "is not a header that a source can set"
                )
            plain = "".join(part for part in template.parts if isinstance(part, str))
            if not _PRINTABLE.fullmatch(plain):
                self._report(f"{_member_path('headers')}.{name}", "has to be of printable ASCII")
        return found

    def _path(self) -> Template:
        text = self._take("path", str, "")
        if self._type == "repository-file" and not text:
            self._needed("path", "")
        if text and {"", ".", ".."} & set(text.split("/")):
            self._report(
                _member_path("path"), "has to be a path inside the repository, without / before it"
            )
        return self._template(_member_path("path"), text)

    def _extractors(self, type_: SourceType) -> dict[str, Extractor]:
        found = {}
        for fact in self._source.schema:
            given = self._document["schema"][fact.name].get("extract")
            path = f"schema.{fact.name}.extract"
            if type_ == "push":
                if given is not None:
                    self._report(path, "means nothing for a source that is pushed")
            elif extractor := self._extractor(given, path, fact):
                found[fact.name] = extractor
        return found

    def _extractor(self, given: Any, path: str, fact: Fact) -> Extractor | None:
        try:
            match given:
                case {"jmespath": str(text), **others} if not others:
                    return extraction.compile_expression(text)
                case {"regex": str(text), **others} if not others:
                    return extraction.compile_pattern(text, fact.type)
        except InputError as error:
            self._report(path, error.message)
            return None
        self._report(path, 'has to be {"jmespath": "..."} or {"regex": "..."}')
        return None

    def _templates(self, name: str) -> dict[str, Template]:
        given = self._take(name, dict, {})
        if len(given) > _MOST_HEADERS:
            self._report(_member_path(name), f"can have {_MOST_HEADERS} entries at most")
        return {
            key: self._template(
                f"{_member_path(name)}.{key}", text if isinstance(text, str) else None
            )
            for key, text in given.items()
        }

    def _body(self, given: Any, path: str, room: list[int] | None = None) -> _Body:
        room = [_MOST_BODY_PARTS] if room is None else room
        room[0] -= 1
        if room[0] < 0:
            if room[0] == -1:
                self._report(_member_path("body"), f"can have {_MOST_BODY_PARTS} values at most")
            return None
        match given:
            case str():
                return self._template(path, given)
            case dict():
                return {key: self._body(one, f"{path}.{key}", room) for key, one in given.items()}
            case list():
                return [self._body(one, f"{path}[{i}]", room) for i, one in enumerate(given)]
        found: _Body = given
        return found

    def _template(self, path: str, text: str | None) -> Template:
        if text is None:
            self._report(path, "has to be a text")
            return extraction.parse_template("")
        try:
            return extraction.parse_template(text)
        except InputError as error:
            self._report(path, error.message)
            return extraction.parse_template("")

    def _take(self, name: str, type_: type[Any], default: Any) -> Any:
        given = self._config.pop(name, default)
        if isinstance(given, type_):
            return given
        self._report(_member_path(name), f"has to be {'a text' if type_ is str else 'an object'}")
        return default

    def _needed(self, name: str, default: Any) -> Any:
        self._report(_member_path(name), "is required")
        return default

    def _one_of(self, path: str, given: str, known: tuple[Any, ...]) -> Any:
        if given in known:
            return given
        self._report(path, one_of(given, known))
        return known[0]


def _member_path(name: str) -> str:
    return f"handlerDefinition.config.{name}"


def read_source_definition(document: Any) -> CustomSourceDefinition:
    """The definition in a document; raises InvalidItemsError with every mistake."""
    try:
        return parse_source_definition(document)
    except InvalidItemsError as error:
        found = error.problem_list
    raise InvalidItemsError([*found, *_further_problems(document, found)])


def _further_problems(document: Any, found: Iterable[Problem]) -> list[Problem]:
    """Further problems, found without the members that already have one."""
    paths = [problem["path"] for problem in found]
    # Without the handler or the whole schema, there is nothing to read.
    if not isinstance(document, dict) or not isinstance(document.get(_SCHEMA_MEMBER), dict):
        return []
    if _SCHEMA_MEMBER in paths or any(path.partition(".")[0] == _HANDLER_MEMBER for path in paths):
        return []
    try:
        parse_source_definition(_without_members(document, paths))
    except InvalidItemsError as error:
        return [one for one in error.problem_list if _is_new_problem(one["path"], paths)]
    return []


def _without_members(document: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    schema: dict[str, Any] = dict(document[_SCHEMA_MEMBER])
    rest = dict(document)
    for path in paths:
        for name in [name for name in schema if f"{path}.".startswith(f"{_SCHEMA_MEMBER}.{name}.")]:
            del schema[name]
        if not path.startswith(f"{_SCHEMA_MEMBER}."):
            rest.pop(path.partition(".")[0].partition("[")[0], None)
    rest[_SCHEMA_MEMBER] = schema or {_ANY_NAME: {"type": "string"}}
    return {name: _ANY_NAME for name in _REQUIRED_MEMBERS if name not in rest} | rest


def _is_new_problem(path: str, known: Iterable[str]) -> bool:
    """True if a problem of the reduced document is one of the original and not yet reported."""
    is_made_up = path.startswith(f"{_SCHEMA_MEMBER}.{_ANY_NAME}.") or path in {
        *_REQUIRED_MEMBERS,
        _SCHEMA_MEMBER,
    }
    of_the_id = path == f"{_HANDLER_MEMBER}.config.id" and "id" in known
    return not (is_made_up or of_the_id or path in known)


def write_starter(name: str, type_: SourceType, owner: str | None = None) -> str:
    """A starter definition with this id and owner; raises InputError for an invalid id."""
    if not _SOURCE_ID.fullmatch(name):
        raise InputError(
            f'"{name}" is no id of a source: 1 to 100 letters, digits, dots, dashes or '
            "underscores, the first of them a letter or digit."
        )
    id_ = name if _PLAIN_YAML.fullmatch(name) else f'"{name}"'
    words = re.sub(r"[._-]+", " ", name).strip()
    title = f'"{words[:1].upper()}{words[1:]}"'
    head = _STARTER_HEAD + (_STARTER_OWNER if owner else "")
    text = (
        head
        + _STARTER_CADENCE[type_ == "push"]
        + _STARTER_TARGETS
        + _STARTER_HANDLERS[type_]
        + _STARTER_FACTS[type_]
    )
    text = text.replace("<id>", id_).replace("<title>", title)
    # Last, because a reference may contain the other placeholders.
    return text.replace("<owner>", json.dumps(owner, ensure_ascii=False))


_STARTER_HEAD = """\
id: <id>
title: <title>
# What an agent reads before it asks for these facts.
description: What the facts say, in a sentence.
"""

_STARTER_OWNER = """
# The group whose members manage it. It is about entities of this group alone.
owner: <owner>
"""

_STARTER_CADENCE = {
    False: """
# When to collect, in UTC: minute, hour, day of the month, month, day of the week.
cadence: "0 * * * *"

# How long one collection may take.
timeout: {minutes: 20}
""",
    True: "",
}

_STARTER_TARGETS = """
# Which entities have these facts; all of them when this is left out. Of several list entries one
# has to hold, in one entry all conditions. A list of values is "one of them".
entityFilter:
  - kind: component

# How much history is kept: so long, or {maxItems: 100}.
lifecycle: {timeToLive: {days: 90}}
"""

_STARTER_HANDLERS: dict[SourceType, str] = {
    "http": """
handlerDefinition:
  type: http
  config:
    id: <id>
    # A connection that an administrator configured. It holds the address and the secrets.
    connection: ci
    method: GET
    # Appended to the address of the connection. Between braces stand JMESPath expressions on the
    # entity; an entity that lacks the value is not asked about.
    path: /jobs/{{ metadata.name }}/last
    # query: {branch: main}
    # headers: {x-team: "{{ spec.owner }}"}
    # body: {job: "{{ metadata.name }}"}    # for method POST
    # What comes back: json, yaml or text.
    format: json
    extractor: jmespath/1
""",
    "repository-file": """
handlerDefinition:
  type: repository-file
  config:
    id: <id>
    # A file of the default branch of the entity's repository. `{{ metadata.name }}` and other
    # JMESPath expressions on the entity can stand in it.
    path: package.json
    # What the file is: json, yaml or text.
    format: json
    extractor: jmespath/1
""",
    "repository-directory": """
handlerDefinition:
  type: repository-directory
  config:
    id: <id>
    # A directory of the default branch of the entity's repository; the whole of it without a path.
    # The document is {"paths": [...], "count": N}: every file below it, however deep.
    path: docs
    extractor: jmespath/1
""",
    "entity": """
handlerDefinition:
  type: entity
  config:
    id: <id>
    # The document is the entity itself, as the catalog shows it.
    extractor: jmespath/1
""",
    "push": """
handlerDefinition:
  type: push
  config:
    id: <id>
""",
}

_STARTER_EXTRACTED = """
# The facts. A type is integer, float, string, boolean, datetime, set or object. A value comes from
# the document by a JMESPath expression, {jmespath: ...}, or by a regular expression, {regex: ...}.
schema:
"""

_STARTER_FACTS: dict[SourceType, str] = {
    "http": _STARTER_EXTRACTED
    + """\
  passed:
    type: boolean
    description: The last build passed.
    extract: {jmespath: "result && result == 'success'"}
  duration:
    type: float
    unit: seconds
    description: How long it took.
    extract: {jmespath: duration}
""",
    "repository-file": _STARTER_EXTRACTED
    + """\
  version:
    type: string
    description: The version that the file says.
    extract: {jmespath: version}
  usesReact:
    type: boolean
    description: React is among the dependencies.
    extract: {regex: '"react"\\s*:'}
""",
    "repository-directory": _STARTER_EXTRACTED
    + """\
  pages:
    type: integer
    description: How many pages of documentation there are.
    extract: {jmespath: "length(paths[?ends_with(@, '.md')])"}
""",
    "entity": _STARTER_EXTRACTED
    + """\
  hasRunbook:
    type: boolean
    description: A link of the entity has the title Runbook.
    extract: {jmespath: "length((metadata.links || `[]`)[?title == 'Runbook']) > `0`"}
""",
    "push": """
# The facts. A type is integer, float, string, boolean, datetime, set or object.
#   factbook push-facts <id> --entity REF coverage=81.5 reportedAt=2026-01-31T12:00:00Z
schema:
  coverage:
    type: float
    unit: percent
    description: How much of the code the tests run.
  reportedAt:
    type: datetime
    description: When it was measured.
""",
}
