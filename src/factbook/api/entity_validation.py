"""Validation of an entity by the catalog API's own rules, without writing.

Apart from the other routes below /api/catalog, because it asks the integrations about annotations.
"""

import json
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from factbook.api.endpoint import Route
from factbook.api.parameters import AnswerHeader
from factbook.auth.permissions import CATALOG_READ
from factbook.catalog import filters, validation
from factbook.errors import InputError
from factbook.http.context import SourceContext
from factbook.http.requests import Reply, Request, reply, run_offloaded
from factbook.integrations.integration import Integration
from factbook.outbound.outcomes import Missing, Outcome
from factbook.telemetry.logs import redact_text

_MOST_PROBLEMS = 1000

WARNINGS: Final = AnswerHeader(
    name="Factbook-Warnings",
    description="Sentences about a valid entity, as a JSON array of ASCII characters.",
)


class EntityToValidate(msgspec.Struct, forbid_unknown_fields=True):
    """The body of validate-entity: any JSON, and where it is said to come from."""

    entity: Any
    location: str


class EntityProblem(msgspec.Struct, frozen=True):
    """One reason why an entity is not valid; `path` begins at the body's member."""

    name: str
    message: str
    path: str


class EntityProblems(msgspec.Struct, frozen=True):
    """The answer for an entity that is not valid, which is no error of the usual form."""

    errors: list[EntityProblem]


async def validate_entity(request: Request, state: SourceContext) -> Reply:
    """200 without a body for a valid entity, else 400 with every problem (the first 1000).

    The rules are the strict ones of the catalog API. A push accepts more: it keeps entities whose
    kind or apiVersion isn't well known, which are invalid here. For a valid entity, a header has
    warnings about its annotations.
    """
    asked: EntityToValidate = await request.json(EntityToValidate)
    if validation.deeper_than(asked.entity, state.rules.max_depth):
        raise InputError(f"{validation.too_deep(state.rules.max_depth)}.")
    errors: list[EntityProblem] = await run_offloaded(_list_entity_problems, asked)
    if errors:
        return reply(EntityProblems(errors), 400)
    known = await state.registry.current()
    warnings = await run_offloaded(
        _list_annotation_warnings, list(known.integrations.values()), asked.entity
    )
    return Reply(headers={WARNINGS.name: json.dumps(warnings)} if warnings else {})


def _list_annotation_warnings(
    integrations: Sequence[Integration], entity: dict[str, Any]
) -> list[str]:
    """Warn about vendor annotations that no integration can read."""
    targets_by_vendor: dict[str, list[str | Missing]] = {}
    for integration in integrations:
        source = integration.source
        vendor = source.handler and source.handler.builtin_id
        if vendor and filters.matches_filter(source.entity_filter, entity):
            targets_by_vendor.setdefault(vendor, []).append(integration.target(entity))
    warnings = []
    for vendor, targets in targets_by_vendor.items():
        missing = [target for target in targets if isinstance(target, Missing)]
        bad = [target for target in missing if target.outcome is Outcome.BAD_ANNOTATION]
        # One readable target is enough.
        if bad and len(missing) == len(targets):
            warnings.append(
                f"metadata.annotations: no integration with {vendor} can read them: {bad[0].detail}"
            )
    return warnings


def _list_entity_problems(asked: EntityToValidate) -> list[EntityProblem]:
    found = _list_location_problems(asked.location)
    for path, message in islice(validation.find_strict_problems(asked.entity), _MOST_PROBLEMS):
        whole = f"entity.{path}" if path else "entity"
        found.append(_build_problem(whole, f"{path or 'the entity'}: {message}"))
    return found


def _list_location_problems(text: str) -> list[EntityProblem]:
    try:
        type_ = validation.parse_location(text).type
    except InputError as error:
        message = error.message
    else:
        if type_ == "url":
            return []
        message = f'the location "{text[:100]}" has to be url:<target>'
    return [_build_problem("location", message)]


def _build_problem(path: str, message: str) -> EntityProblem:
    return EntityProblem(InputError.name, redact_text(message), redact_text(path))


# Below /api/catalog.
VALIDATION_ROUTES: Sequence[Route] = (
    Route(
        "POST",
        "/validate-entity",
        validate_entity,
        (CATALOG_READ,),
        body=EntityToValidate,
        other_answers={400: EntityProblems},
        headers=(WARNINGS,),
    ),
)
