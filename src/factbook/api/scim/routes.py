"""The routes of SCIM, below /scim/v2. They describe themselves by its own means."""

from collections.abc import Sequence

from factbook.api.endpoint import NOTHING_STORED, Handler, Route
from factbook.api.scim import answers, descriptions, resources
from factbook.auth.permissions import SCIM_WRITE


def _route(method: str, path: str, handler: Handler) -> Route:
    return Route(
        method,
        f"{answers.PATH}{path}",
        handler,
        (SCIM_WRITE,),
        # Identity providers send parameters of their own.
        None,
        described=False,
        errors=answers.error,
        reading=None if method == "GET" else NOTHING_STORED,
    )


def _of(type_: str) -> list[Route]:
    one = f"/{type_}/{{id}}"
    return [
        _route("POST", f"/{type_}", resources.create),
        _route("GET", f"/{type_}", resources.list_all),
        _route("GET", one, resources.get),
        _route("PUT", one, resources.replace),
        _route("PATCH", one, resources.change),
        _route("DELETE", one, resources.delete),
    ]


SCIM_ROUTES: Sequence[Route] = (
    *_of("Users"),
    *_of("Groups"),
    _route("GET", "/ServiceProviderConfig", descriptions.config),
    _route("GET", "/ResourceTypes", descriptions.resource_types),
    _route("GET", "/ResourceTypes/{id}", descriptions.resource_type),
    _route("GET", "/Schemas", descriptions.schemas),
    _route("GET", "/Schemas/{id}", descriptions.schema),
    *(
        _route(method, "/{rest:path}", descriptions.nowhere)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    ),
)
