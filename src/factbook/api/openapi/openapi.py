"""The OpenAPI descriptions of the REST interfaces, made from the table of routes and its types.

Source of the form: the OpenAPI specification, 3.1.0.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec

from factbook import __version__
from factbook.api.endpoint import Handler, Route
from factbook.api.openapi.parameter_types import AnswerHeader, Parameter, Schema
from factbook.api.openapi.parameters import PATH
from factbook.api.openapi.predicate_schema import PREDICATE
from factbook.auth.permissions import TITLES
from factbook.errors import (
    AuthenticationError,
    FactbookError,
    InputError,
    NotAllowedError,
    NotFoundError,
    PayloadTooLargeError,
    TooManyRequestsError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from factbook.http.context import HandlerContext
from factbook.http.requests import Reply, Request
from factbook.schemas.common import DESCRIBED_AS, ErrorAnswer

_PART = re.compile(r"{(\w+)(?::path)?}")
_SCHEMAS = "#/components/schemas/"
_BEARER = "token"
_HEADERS = {
    AuthenticationError: ("WWW-Authenticate", "The challenge of RFC 6750."),
    NotAllowedError: ("WWW-Authenticate", "The missing permissions, as the scope of RFC 6750."),
    TooManyRequestsError: ("Retry-After", "The number of seconds to wait."),
    UnavailableError: ("Retry-After", "The number of seconds to wait, where it helps."),
}


def document(
    routes: Iterable[Route], *, title: str, description: str, public_url: str | None
) -> Schema:
    """The description of the routes that are described."""
    described = [route for route in routes if route.described]
    types = [ErrorAnswer, *(type_ for route in described for type_ in _types(route))]
    schemas, components = _components(types)
    by_type = dict(zip(map(repr, types), schemas, strict=True))
    answers = [ErrorAnswer, *(type_ for route in described for type_ in _answers(route))]
    for name in _components(answers)[1]:
        _omit_defaults(components[name])
    paths: dict[str, dict[str, Schema]] = {}
    for route in described:
        path = _PART.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, by_type)
    refusals = {error for route in described for error in _refusals(route)}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": description},
        "servers": [{"url": (public_url or "").rstrip("/") or "/"}],
        "paths": paths,
        "components": {
            "schemas": _schemas(components),
            "responses": {
                error.__name__: _refusal(error)
                for error in sorted(refusals, key=lambda error: (error.status, error.__name__))
            },
            "securitySchemes": {_BEARER: {"type": "http", "scheme": "bearer"}},
        },
    }


def serving(make: Callable[[], Schema]) -> Handler:
    """A handler that answers with a document, made when it is first asked for: few ever ask."""

    @cache
    def encoded() -> bytes:
        return msgspec.json.encode(make())

    async def describe(request: Request, state: HandlerContext) -> Reply:
        """This description."""
        return Reply(encoded())

    return describe


def _operation(route: Route, schemas: dict[str, Schema]) -> Schema:
    text = inspect.getdoc(route.handler) or ""
    summary, _, rest = text.partition("\n")
    operation: Schema = {
        "operationId": operation_id(route),
        "summary": summary.rstrip("."),
        "description": "\n\n".join(filter(None, (rest.strip(), _needed(route)))),
        "parameters": [_parameter(each) for each in _parameters(route)],
        "responses": {str(route.status): _answer(route, schemas), **_refused(route, schemas)},
        "security": [] if route.permissions is None else [{_BEARER: []}],
        "x-permissions": list(route.permissions or ()),
    }
    if route.body is not None:
        content = {"application/json": {"schema": schemas[repr(route.body)]}}
        operation["requestBody"] = {"required": route.needs_body, "content": content}
    return operation


def operation_id(route: Route) -> str:
    """The handler's module and name in camel case."""
    module = route.handler.__module__.rpartition(".")[2]
    first, *others = f"{module}_{route.handler.__name__}".split("_")
    return first + "".join(map(str.capitalize, others))


def _needed(route: Route) -> str:
    if not route.permissions:
        return "Open to everyone." if route.permissions is None else "Needs a token."
    return f"Needs {' and '.join(f'`{name}` ({TITLES[name]})' for name in route.permissions)}."


def _parameters(route: Route) -> list[Parameter[Any]]:
    given = route.parameters or ()
    own = {each.name: each for each in given if each.place == "path"}
    path = [own.get(name) or PATH[name] for name in _PART.findall(route.path)]
    return [*path, *(each for each in given if each.place != "path")]


def _parameter(parameter: Parameter[Any]) -> Schema:
    example = {} if parameter.example is None else {"example": parameter.example}
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "required": parameter.required,
        "schema": parameter.schema,
        **example,
    }


def _answer(route: Route, schemas: dict[str, Schema]) -> Schema:
    answer: Schema = {"description": HTTPStatus(route.status).phrase}
    if route.headers:
        answer["headers"] = {header.name: _header(header) for header in route.headers}
    if forms := [schemas[repr(form)] for form in route.answers]:
        schema = forms[0] if len(forms) == 1 else {"anyOf": forms}
        answer["content"] = {route.media: {"schema": schema}}
    return answer


def _header(header: AnswerHeader) -> Schema:
    return {
        "description": header.description,
        "required": header.always,
        "schema": {"type": "string"},
    }


def _refused(route: Route, schemas: dict[str, Schema]) -> dict[str, Schema]:
    answers: dict[str, Schema] = {
        str(error.status): {"$ref": f"#/components/responses/{error.__name__}"}
        for error in _refusals(route)
    }
    for status, type_ in route.other_answers.items():
        forms = [{"$ref": f"{_SCHEMAS}{ErrorAnswer.__name__}"}, schemas[repr(type_)]]
        answers[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": {"anyOf": forms}}},
        }
    return answers


def _refusals(route: Route) -> Sequence[type[FactbookError]]:
    found: list[type[FactbookError]] = [InputError]
    if route.permissions is not None:
        found += [AuthenticationError, NotAllowedError, TooManyRequestsError, UnavailableError]
    if "{" in route.path:
        found.append(NotFoundError)
    if route.body is not None:
        found += [PayloadTooLargeError, UnsupportedMediaTypeError]
    found += route.refusals
    return sorted(set(found), key=lambda error: (error.status, error.__name__))


def _refusal(error: type[FactbookError]) -> Schema:
    schema = {"$ref": f"{_SCHEMAS}{ErrorAnswer.__name__}"}
    answer: Schema = {
        "description": inspect.getdoc(error) or "",
        "content": {"application/json": {"schema": schema}},
    }
    if error in _HEADERS:
        name, description = _HEADERS[error]
        header = {"description": description, "schema": {"type": "string"}}
        answer["headers"] = {name: header}
    return answer


def _types(route: Route) -> tuple[Any, ...]:
    return _answers(route) if route.body is None else (route.body, *_answers(route))


def _answers(route: Route) -> tuple[Any, ...]:
    return (*route.answers, *route.other_answers.values())


def _components(types: Sequence[Any]) -> tuple[Sequence[Schema], dict[str, Schema]]:
    schemas, components = msgspec.json.schema_components(types, ref_template=f"{_SCHEMAS}{{name}}")
    return _exact(schemas), _exact(components)


def _exact(schema: Any) -> Any:
    """The schema with each `describe_as` in the place of the type that clients read."""
    if isinstance(schema, dict):
        if DESCRIBED_AS in schema:
            about = {key: schema[key] for key in ("description",) if key in schema}
            return {**schema[DESCRIBED_AS], **about}
        return {key: _exact(value) for key, value in schema.items()}
    return [*map(_exact, schema)] if isinstance(schema, list | tuple) else schema


def _omit_defaults(schema: Schema) -> None:
    """Describe an answer's members with a default as left out then, and never null for that."""
    for member in schema["properties"].values():
        if "default" in member and member.pop("default") is None and "anyOf" in member:
            member["anyOf"].remove({"type": "null"})
            if len(member["anyOf"]) == 1:
                member.update(member.pop("anyOf")[0])


def _schemas(components: dict[str, Schema]) -> dict[str, Schema]:
    """The types' schemas, with their docstrings as documentation shows them."""
    schemas = {
        name: {**schema, "description": inspect.cleandoc(schema["description"])}
        for name, schema in components.items()
    }
    if any(f"{_SCHEMAS}Predicate" in str(schema) for schema in schemas.values()):
        schemas["Predicate"] = PREDICATE
    return schemas
