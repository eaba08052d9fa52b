"""OpenAPI documents of the REST interfaces, generated from the route table and its types.

The format follows the OpenAPI specification 3.1.0.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import msgspec

from factbook import __version__
from factbook.api.endpoint import Handler, Route
from factbook.api.parameters import PATH, Parameter, Schema
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

_PREDICATE: Final = {"$ref": "#/components/schemas/Predicate"}
_PREDICATES: Final = {"type": "array", "items": _PREDICATE}
_PRIMITIVE: Final = {"type": ["string", "number", "boolean"]}
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
_PATH_PARAMETER = re.compile(r"{(\w+)(?::path)?}")
_SCHEMAS = "#/components/schemas/"
_BEARER = "token"
_HEADERS = {
    AuthenticationError: ("WWW-Authenticate", "The challenge of RFC 6750."),
    NotAllowedError: ("WWW-Authenticate", "The missing permissions, as the scope of RFC 6750."),
    TooManyRequestsError: ("Retry-After", "The number of seconds to wait."),
    UnavailableError: ("Retry-After", "The number of seconds to wait, where it helps."),
}


def _describe_lone_member(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: schema},
        "required": [name],
        "additionalProperties": False,
    }


def build_document(
    routes: Iterable[Route], *, title: str, description: str, public_url: str | None
) -> Schema:
    """Build the OpenAPI document of all described routes."""
    described = [route for route in routes if route.described]
    types: list[Any] = [ErrorAnswer]
    for route in described:
        types += () if route.body is None else (route.body,)
        types += _list_answer_types(route)
    schemas, components = _build_components(types)
    by_type = dict(zip(map(repr, types), schemas, strict=True))
    answers = [ErrorAnswer, *(type_ for route in described for type_ in _list_answer_types(route))]
    for name in _build_components(answers)[1]:
        _mark_omitted_defaults(components[name])
    paths: dict[str, dict[str, Schema]] = {}
    for route in described:
        path = _PATH_PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _describe_operation(route, by_type)
    refusals = {error for route in described for error in _list_refusals(route)}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": description},
        "servers": [{"url": (public_url or "").rstrip("/") or "/"}],
        "paths": paths,
        "components": {
            "schemas": _tidy_schemas(components),
            "responses": {
                error.__name__: _describe_refusal(error)
                for error in sorted(refusals, key=lambda error: (error.status, error.__name__))
            },
            "securitySchemes": {_BEARER: {"type": "http", "scheme": "bearer"}},
        },
    }


def serve_document(make: Callable[[], Schema]) -> Handler:
    """Make a handler for a document, which is rarely requested and built at the first request."""

    @cache
    def encoded() -> bytes:
        return msgspec.json.encode(make())

    async def describe(request: Request, state: HandlerContext) -> Reply:
        """This description."""
        return Reply(encoded())

    return describe


def _describe_operation(route: Route, schemas: dict[str, Schema]) -> Schema:
    text = inspect.getdoc(route.handler) or ""
    summary, _, rest = text.partition("\n")
    needs = "Open to everyone."
    if route.permissions is not None:
        permissions = [f"`{name}` ({TITLES[name]})" for name in route.permissions]
        needs = f"Needs {' and '.join(permissions) or 'a token'}."
    declared = route.parameters or ()
    by_name = {parameter.name: parameter for parameter in declared if parameter.place == "path"}
    in_path = [by_name.get(name) or PATH[name] for name in _PATH_PARAMETER.findall(route.path)]
    elsewhere = [parameter for parameter in declared if parameter.place != "path"]
    operation: Schema = {
        "operationId": build_operation_id(route),
        "summary": summary.rstrip("."),
        "description": "\n\n".join(filter(None, (rest.strip(), needs))),
        "parameters": [_describe_parameter(parameter) for parameter in (*in_path, *elsewhere)],
        "responses": {
            str(route.status): _describe_answer(route, schemas),
            **_describe_refused_statuses(route, schemas),
        },
        "security": [] if route.permissions is None else [{_BEARER: []}],
        "x-permissions": list(route.permissions or ()),
    }
    if route.body is not None:
        content = {"application/json": {"schema": schemas[repr(route.body)]}}
        operation["requestBody"] = {"required": route.needs_body, "content": content}
    return operation


def build_operation_id(route: Route) -> str:
    """Convert the handler's name to camel case, or return its published id."""
    name = route.handler.__name__
    first, *others = name.split("_")
    return _PUBLISHED_IDS.get(name) or first + "".join(map(str.capitalize, others))


def _describe_parameter(parameter: Parameter[Any]) -> Schema:
    example = {} if parameter.example is None else {"example": parameter.example}
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "required": parameter.required,
        "schema": parameter.schema,
        **example,
    }


def _describe_answer(route: Route, schemas: dict[str, Schema]) -> Schema:
    answer: Schema = {"description": HTTPStatus(route.status).phrase}
    if route.headers:
        answer["headers"] = {
            header.name: {
                "description": header.description,
                "required": header.always,
                "schema": {"type": "string"},
            }
            for header in route.headers
        }
    if forms := [schemas[repr(form)] for form in route.answers]:
        schema = forms[0] if len(forms) == 1 else {"anyOf": forms}
        answer["content"] = {route.media: {"schema": schema}}
    return answer


def _describe_refused_statuses(route: Route, schemas: dict[str, Schema]) -> dict[str, Schema]:
    answers: dict[str, Schema] = {
        str(error.status): {"$ref": f"#/components/responses/{error.__name__}"}
        for error in _list_refusals(route)
    }
    for status, type_ in route.other_answers.items():
        forms = [{"$ref": f"{_SCHEMAS}{ErrorAnswer.__name__}"}, schemas[repr(type_)]]
        answers[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": {"anyOf": forms}}},
        }
    return answers


def _list_refusals(route: Route) -> Sequence[type[FactbookError]]:
    found: list[type[FactbookError]] = [InputError]
    if route.permissions is not None:
        found += [AuthenticationError, NotAllowedError, TooManyRequestsError, UnavailableError]
    if "{" in route.path:
        found.append(NotFoundError)
    if route.body is not None:
        found += [PayloadTooLargeError, UnsupportedMediaTypeError]
    found += route.refusals
    return sorted(set(found), key=lambda error: (error.status, error.__name__))


def _describe_refusal(error: type[FactbookError]) -> Schema:
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


def _list_answer_types(route: Route) -> tuple[Any, ...]:
    return (*route.answers, *route.other_answers.values())


def _build_components(types: Sequence[Any]) -> tuple[Sequence[Schema], dict[str, Schema]]:
    schemas, components = msgspec.json.schema_components(types, ref_template=f"{_SCHEMAS}{{name}}")
    return _replace_described(schemas), _replace_described(components)


def _replace_described(schema: Any) -> Any:
    """Replace types marked with `describe_as` by the schema that clients see."""
    if isinstance(schema, dict):
        if DESCRIBED_AS in schema:
            about = {key: schema[key] for key in ("description",) if key in schema}
            return {**schema[DESCRIBED_AS], **about}
        return {key: _replace_described(value) for key, value in schema.items()}
    return [*map(_replace_described, schema)] if isinstance(schema, list | tuple) else schema


def _mark_omitted_defaults(schema: Schema) -> None:
    """Mark members with a default as optional, not null: answers leave out default values."""
    for member in schema["properties"].values():
        if "default" in member and member.pop("default") is None and "anyOf" in member:
            member["anyOf"].remove({"type": "null"})
            if len(member["anyOf"]) == 1:
                member.update(member.pop("anyOf")[0])


def _tidy_schemas(components: dict[str, Schema]) -> dict[str, Schema]:
    """Clean up the docstrings in schemas, and add the predicate schema if needed."""
    schemas = {
        name: {**schema, "description": inspect.cleandoc(schema["description"])}
        for name, schema in components.items()
    }
    if any(f"{_SCHEMAS}Predicate" in str(schema) for schema in schemas.values()):
        schemas["Predicate"] = PREDICATE
    return schemas


_VALUE: Final = [
    _PRIMITIVE,
    _describe_lone_member("$exists", {"type": "boolean"}),
    _describe_lone_member("$in", {"type": "array", "items": _PRIMITIVE}),
    _describe_lone_member("$hasPrefix", {"type": "string"}),
    _describe_lone_member("$contains", _PRIMITIVE),
]
_TEXT_OR_TEXTS: Final = {"anyOf": [{"type": "string"}, _describe_lone_member("$in", _TEXTS)]}
_RELATION: Final = {
    "type": "object",
    "properties": {"type": _TEXT_OR_TEXTS, "targetRef": _TEXT_OR_TEXTS},
    "additionalProperties": False,
    "minProperties": 1,
}

PREDICATE: Final[dict[str, Any]] = {
    "title": "Predicate",
    "description": "Which entities are meant: dotted paths with their values, or `$all`, `$any` or "
    "`$not`. Nested 30 deep at most, with 500 conditions at most.",
    "type": "object",
    "anyOf": [
        _describe_lone_member("$all", _PREDICATES),
        _describe_lone_member("$any", _PREDICATES),
        _describe_lone_member("$not", _PREDICATE),
        {
            "properties": {
                "relations": {"anyOf": [*_VALUE, _describe_lone_member("$contains", _RELATION)]}
            },
            "propertyNames": {"pattern": "^(?!\\$)"},
            "additionalProperties": {"anyOf": _VALUE},
        },
    ],
}


# Ids published under earlier handler names. Generated clients depend on them.
_PUBLISHED_IDS = {
    "get_entities": "entitiesListEntities",
    "get_entities_by_query": "queriesGetByQuery",
    "post_entity_query": "queriesPostByQuery",
    "get_entity_by_name": "entitiesGetByName",
    "get_entity_ancestry": "entitiesGetAncestry",
    "get_entities_by_refs": "entitiesGetByRefs",
    "get_entity_by_uid": "entitiesGetByUid",
    "delete_entity_by_uid": "entitiesDeleteByUid",
    "get_facets": "facetsGetFacets",
    "post_facets": "facetsPostFacets",
    "validate_entity": "entityValidationValidateEntity",
    "refresh_entity": "refreshingRefresh",
    "get_locations": "locationsListLocations",
    "post_location_query": "locationsQueryLocations",
    "get_data_sources": "dataSourcesListAll",
    "post_data_source": "dataSourcesCreate",
    "get_data_source": "dataSourcesGet",
    "put_data_source": "dataSourcesReplace",
    "delete_data_source": "dataSourcesDelete",
    "publish_data_source": "dataSourcesPublish",
    "post_source_trial": "trialsCreate",
    "run_data_source": "dataSourcesRun",
    "get_source_runs": "dataSourcesListRuns",
    "get_source_run": "dataSourcesGetRun",
    "get_connections": "connectionsListAll",
    "get_connection": "connectionsGet",
    "put_connection": "connectionsPut",
    "delete_connection": "connectionsDelete",
    "get_fact_history": "factsPast",
    "get_latest_facts": "factsLatest",
    "post_facts": "factsPush",
    "get_fact_distribution": "distributionsShow",
    "get_fact_values": "distributionsValues",
    "export_fact_values": "distributionsExport",
    "post_check_preview": "previewsCreate",
    "get_checks": "checksListAll",
    "post_check": "checksCreate",
    "get_check": "checksGet",
    "put_check": "checksReplace",
    "delete_check": "checksDelete",
    "publish_check": "checksPublish",
    "get_check_versions": "checksListVersions",
    "get_scorecards": "scorecardsListAll",
    "post_scorecard": "scorecardsCreate",
    "get_scorecard": "scorecardsGet",
    "put_scorecard": "scorecardsReplace",
    "delete_scorecard": "scorecardsDelete",
    "publish_scorecard": "scorecardsPublish",
    "get_scorecard_versions": "scorecardsListVersions",
    "get_starter_scorecard": "starterScorecardGet",
    "adopt_starter_scorecard": "starterScorecardAdopt",
    "get_exemptions": "exemptionsListAll",
    "post_exemption": "exemptionsCreate",
    "get_exemption": "exemptionsGet",
    "approve_exemption": "exemptionsApprove",
    "deny_exemption": "exemptionsDeny",
    "revoke_exemption": "exemptionsRevoke",
    "get_check_results": "checkResultsListAll",
    "export_check_results": "checkResultsExport",
    "post_entity_preview": "entityPreviewsCreate",
    "get_check_overview": "checkResultsOverview",
    "get_check_result": "checkResultsGet",
    "get_check_result_history": "checkResultsHistory",
    "get_all_scorecard_results": "scorecardResultsListAll",
    "export_scorecard_levels": "scorecardResultsExport",
    "get_scorecard_results": "scorecardResultsGet",
    "get_scorecard_rollup": "scorecardResultsRollUp",
    "get_scorecard_trend": "scorecardResultsFollow",
    "get_next_steps": "scorecardResultsPlan",
    "get_badge_image": "badgesImage",
    "get_shields_badge": "badgesShields",
    "get_digests": "digestsListAll",
    "post_digest": "digestsCreate",
    "get_digest": "digestsGet",
    "put_digest": "digestsReplace",
    "delete_digest": "digestsDelete",
    "send_digest_test": "digestsTest",
    "get_tokens": "tokensListAll",
    "post_token": "tokensCreate",
    "delete_token": "tokensRevoke",
    "get_audit_records": "auditListRecords",
    "export_audit_records": "auditExport",
    "get_events": "eventsListEvents",
    "get_webhooks": "webhooksListAll",
    "post_webhook": "webhooksCreate",
    "get_webhook": "webhooksGet",
    "delete_webhook": "webhooksDelete",
    "enable_webhook": "webhooksEnable",
    "send_webhook_test": "webhooksTest",
    "get_importers": "importersListAll",
    "get_importer": "importersGetOne",
    "post_importer_run": "importersRun",
    "get_import_parts": "partsListParts",
    "get_import_part": "partsGetPart",
    "apply_held_removals": "partsApplyHeld",
    "discard_held_removals": "partsDiscardHeld",
    "get_sets": "setsListSets",
    "put_set": "setsPutSet",
    "get_set": "setsGetSet",
    "post_set_entity": "setsPostToSet",
    "delete_set": "setsDeleteSet",
    "get_set_revisions": "setsListRevisions",
    "restore_set_revision": "setsRestoreRevision",
    "get_pushed_entities": "setsListEntities",
    "post_pushed_entity": "setsPostEntity",
    "get_pushed_entity_by_ref": "setsGetEntityByRef",
    "get_pushed_entity": "setsGetEntity",
    "delete_pushed_entity": "setsDeleteEntity",
}
