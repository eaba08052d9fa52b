"""Definition of a custom source: a data source's document, with the extraction of its facts.

    id: builds
    title: Builds
    cadence: "0 * * * *"
    handlerDefinition:
      type: http
      config:
        id: builds
        connection: ci
        path: /jobs/{{ metadata.name }}/last
        extractor: jmespath/1
    schema:
      passed: {type: boolean, description: The last build passed., extract: {jmespath: result.ok}}

Everything but `config` and `extract` is the same as discovery shows for any source.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from factbook.datasources.custom import extraction, templates
from factbook.datasources.custom.documents import FORMATS, Format
from factbook.datasources.custom.extraction import LANGUAGE, Extractor
from factbook.datasources.custom.templates import Template
from factbook.errors import InputError, Problems, not_a_member, one_of
from factbook.facts import datasource
from factbook.facts.datasource import DataSource, Handler
from factbook.facts.schema import Fact
from factbook.facts.shapes import SHAPES, shape_facts
from factbook.outbound.client import build_address

Type = Literal["http", "repository-file", "repository-directory", "entity", "push"]
TYPES: Final[tuple[Type, ...]] = get_args(Type)
_OF_REPOSITORIES: Final = frozenset({"repository-file", "repository-directory"})
# Files are read with the credentials of the service, from wherever an entity points to.
OWNED_TYPES: Final = frozenset(TYPES) - _OF_REPOSITORIES
METHODS: Final = ("GET", "POST")
MOST_FACTS: Final = 200
# A row of history says by its name why a fact has no value.
_LONGEST_NAME: Final = 100
_MOST_HEADERS: Final = 20
_MOST_BODY: Final = 200  # values inside one

# Facts of these names fill the metric tools.
_SHAPED: Final = {
    f"{shape.name}.{fact.name}": fact.type for shape in SHAPES for fact in shape_facts(shape)
}

_MEMBERS: Final = frozenset({"type", "description", "unit", "title", "metadata", "extract"})

_Report = Callable[[str, str], None]
_Body = Template | dict[str, Any] | list[Any] | int | float | bool | None


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
    type: Type
    document: Mapping[str, Any]
    extractors: Mapping[str, Extractor]
    format: Format = "json"
    request: RequestTemplate | None = None
    path: Template | None = None


def parse(document: Any) -> CustomSourceDefinition:
    """The definition in a document; raises InvalidItemsError with every problem and its path."""
    source = datasource.parse_source(document)
    problems = Problems()
    definition = _Reader(document, source, problems.report).definition()
    problems.check()
    return definition


_SOMEWHERE: Final = "https://connection.invalid"
HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
# Those that say where a request goes, where it ends, which method it really has, or that a part of
# the answer is enough, in which nobody recognizes a secret.
NOT_A_HEADER: Final = re.compile(
    r"host|x-forwarded-.*|x-original-.*|x-rewrite-.*|forwarded|content-length|content-encoding"
    r"|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|accept-encoding|proxy-.*"
    r"|x-(?:http-)?method.*|range|if-range",
    re.IGNORECASE,
)


class _Reader:
    """Reader of the members beyond a data source's; reports every problem and reads on."""

    def __init__(self, document: Mapping[str, Any], source: DataSource, report: _Report) -> None:
        self._document = document
        self._source = source
        self._report = report
        handler = source.handler or Handler("", "")
        self._type = handler.type
        self._config = dict(handler.config)

    def definition(self) -> CustomSourceDefinition:
        type_ = self._one_of("handlerDefinition.type", self._type, TYPES)
        self._check_source(type_)
        self._check_members()
        language = self._take("extractor", str, LANGUAGE)
        if language != LANGUAGE:
            self._report(_at("extractor"), f"has to be {LANGUAGE}")
        request = self._request() if type_ == "http" else None
        path = self._path() if type_ in _OF_REPOSITORIES else None
        format_: Format = "json"
        if type_ in {"http", "repository-file"}:
            format_ = self._one_of(_at("format"), self._take("format", str, "json"), FORMATS)
        for name in self._config:
            self._report(_at(name), f"is not a setting of a source of type {self._type}")
        return CustomSourceDefinition(
            source=replace(self._source, handler=_shown(self._source)),
            type=type_,
            document=self._document,
            extractors=self._extractors(type_),
            format=format_,
            request=request,
            path=path,
        )

    def _check_source(self, type_: Type) -> None:
        source = self._source
        if not source.schema:
            self._report("schema", "has to have at least one fact")
        if len(source.schema) > MOST_FACTS:
            self._report("schema", f"can have {MOST_FACTS} facts at most")
        for fact in source.schema:
            if len(fact.name) > _LONGEST_NAME:
                self._report("schema", f"has a fact of more than {_LONGEST_NAME} characters")
            wanted = _SHAPED.get(fact.name, fact.type)
            if fact.type != wanted:
                self._report(f"schema.{fact.name}.type", f"has to be {wanted}, as the tools say")
        if source.handler and source.handler.id != source.id:
            self._report(_at("id"), "has to be the id of the source")
        if source.handler and source.handler.builtin_id:
            self._report(_at("builtinId"), "is only for built-in sources")
        if source.owner is not None and type_ not in OWNED_TYPES:
            self._report("owner", f"is not for a source of type {type_}")
        if type_ == "push" and source.cadence:
            self._report("cadence", "means nothing for a source that is pushed")

    def _check_members(self) -> None:
        for name, given in (self._document.get("schema") or {}).items():
            for member in given.keys() - _MEMBERS:
                self._report(
                    f"schema.{name}.{member}", not_a_member(member, "fact", sorted(_MEMBERS))
                )

    def _request(self) -> RequestTemplate:
        return RequestTemplate(
            connection=self._take("connection", str, "") or self._needed("connection", ""),
            method=self._one_of(_at("method"), self._take("method", str, "GET"), METHODS),
            path=self._request_path(),
            query=self._templates("query"),
            headers=self._headers(),
            body=self._body(self._config.pop("body", None), _at("body")),
        )

    def _request_path(self) -> Template:
        found = self._template(_at("path"), self._take("path", str, ""))
        # As it is with plain values; what an entity has in their place is looked at then.
        text = "".join(part if isinstance(part, str) else "x" for part in found.parts)
        if text and build_address(_SOMEWHERE, text, {}) != f"{_SOMEWHERE}{text}":
            self._report(_at("path"), "has to be below the address of the connection, such as /a/b")
        return found

    def _headers(self) -> dict[str, Template]:
        found = self._templates("headers")
        for name, template in found.items():
            if not HEADER.fullmatch(name) or NOT_A_HEADER.fullmatch(name):
                self._report(f"{_at('headers')}.{name}", "is not a header that a source can set")
            plain = "".join(part for part in template.parts if isinstance(part, str))
            if not _PRINTABLE.fullmatch(plain):
                self._report(f"{_at('headers')}.{name}", "has to be of printable ASCII")
        return found

    def _path(self) -> Template:
        text = self._take("path", str, "")
        if self._type == "repository-file" and not text:
            self._needed("path", "")
        if text and {"", ".", ".."} & set(text.split("/")):
            self._report(_at("path"), "has to be a path inside the repository, without / before it")
        return self._template(_at("path"), text)

    def _extractors(self, type_: Type) -> dict[str, Extractor]:
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
                    return extraction.expression(text)
                case {"regex": str(text), **others} if not others:
                    return extraction.pattern(text, fact.type)
        except InputError as error:
            self._report(path, error.message)
            return None
        self._report(path, 'has to be {"jmespath": "..."} or {"regex": "..."}')
        return None

    def _templates(self, name: str) -> dict[str, Template]:
        given = self._take(name, dict, {})
        if len(given) > _MOST_HEADERS:
            self._report(_at(name), f"can have {_MOST_HEADERS} entries at most")
        return {
            key: self._template(f"{_at(name)}.{key}", text if isinstance(text, str) else None)
            for key, text in given.items()
        }

    def _body(self, given: Any, path: str, room: list[int] | None = None) -> _Body:
        room = [_MOST_BODY] if room is None else room
        room[0] -= 1
        if room[0] < 0:
            if room[0] == -1:
                self._report(_at("body"), f"can have {_MOST_BODY} values at most")
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
            return templates.parse("")
        try:
            return templates.parse(text)
        except InputError as error:
            self._report(path, error.message)
            return templates.parse("")

    def _take(self, name: str, type_: type[Any], default: Any) -> Any:
        given = self._config.pop(name, default)
        if isinstance(given, type_):
            return given
        self._report(_at(name), f"has to be {'a text' if type_ is str else 'an object'}")
        return default

    def _needed(self, name: str, default: Any) -> Any:
        self._report(_at(name), "is required")
        return default

    def _one_of(self, path: str, given: str, known: tuple[Any, ...]) -> Any:
        if given in known:
            return given
        self._report(path, one_of(given, known))
        return known[0]


def _at(name: str) -> str:
    return f"handlerDefinition.config.{name}"


def _shown(source: DataSource) -> Handler:
    """The handler without its configuration, which stays in the definition."""
    handler = source.handler or Handler("", source.id)
    return Handler(handler.type, source.id)
