"""The check of an entity by the catalog API's own rules, which writes nothing."""

from itertools import islice
from typing import Any

import msgspec

from factbook.catalog import location, strict, validation
from factbook.errors import InputError
from factbook.http.context import State
from factbook.http.requests import Reply, Request, offloaded, reply
from factbook.telemetry.logs import without_secrets

_MOST = 1000


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


async def validate_entity(request: Request, state: State) -> Reply:
    """200 without a body for a valid entity, else 400 with every problem (the first 1000).

    These are the strict rules of the catalog API, not the wider ones of a push: an entity whose
    kind or apiVersion is not a well-known one is not valid here, though a push keeps it.
    """
    asked: EntityToValidate = await request.json(EntityToValidate)
    if validation.deeper_than(asked.entity, state.rules.max_depth):
        raise InputError(f"{validation.too_deep(state.rules.max_depth)}.")
    errors: list[EntityProblem] = await offloaded(_problems, asked)
    return reply(EntityProblems(errors), 400) if errors else Reply()


def _problems(asked: EntityToValidate) -> list[EntityProblem]:
    found = _location_problems(asked.location)
    for path, message in islice(strict.problems(asked.entity), _MOST):
        whole = f"entity.{path}" if path else "entity"
        found.append(_problem(whole, f"{path or 'the entity'}: {message}"))
    return found


def _location_problems(text: str) -> list[EntityProblem]:
    try:
        type_ = location.parse(text).type
    except InputError as error:
        message = error.message
    else:
        if type_ == "url":
            return []
        message = f'the location "{text[:100]}" has to be url:<target>'
    return [_problem("location", message)]


def _problem(path: str, message: str) -> EntityProblem:
    return EntityProblem(InputError.name, without_secrets(message), without_secrets(path))
