"""The wire types: exact in the descriptions, lenient where a client reads them."""

from typing import Any, get_args

import msgspec

from factbook.api import openapi
from factbook.api.endpoint import Route
from factbook.api.routes import list_routes
from factbook.events.store import TYPES
from factbook.schemas import catalog, events
from factbook.settings import Settings
from factbook.webhooks import sender

EVENT = {"id": "1-0", "type": "team.added", "at": "now", "subject": "a", "data": {}, "more": 1}


def described(name: str) -> dict[str, Any]:
    """The members of a type, as the OpenAPI documents describe them."""
    routes: list[Route] = list_routes(Settings())
    document = openapi.build_document(routes, title="", description="", public_url=None)
    members: dict[str, Any] = document["components"]["schemas"][name]["properties"]
    return members


def test_the_values_of_the_schemas_are_those_of_the_service() -> None:
    assert set(get_args(events.EventType)) == TYPES.keys()
    assert events.LONGEST_URL == sender.LONGEST_URL


def test_a_member_that_is_left_out_is_none_for_a_client_and_never_null_in_the_description() -> None:
    summary = {"revision": 1, "createdBy": "a", "createdAt": "b"}
    changes = {"added": 0, "updated": 0, "removed": 0, "unchanged": 0}
    revision = msgspec.convert({**summary, "changes": changes}, catalog.Revision)
    assert revision.restored is None
    assert msgspec.to_builtins(revision).keys() == {*summary, "changes"}
    assert described("Revision")["restored"] == {
        "description": "The revision that it put back.",
        "type": "integer",
    }
    assert described("LatestFacts")["draft"] == {
        "description": "The source was never published.",
        "type": "boolean",
    }


def test_a_document_that_there_is_not_is_described_as_null() -> None:
    either = [{"type": "object"}, {"type": "null"}]
    assert described("Definition")["published"] == {"anyOf": either}
    assert described("Definition")["draft"]["anyOf"] == either


def test_a_client_reads_values_and_members_that_the_description_does_not_have() -> None:
    assert msgspec.convert(EVENT, events.Event).type == "team.added"
    assert described("Event")["type"] == {"enum": sorted(TYPES)}


def test_a_body_keeps_its_defaults_in_the_description() -> None:
    assert described("NewConnection")["atOnce"]["default"] == 4
    assert {"type": "null"} in described("NewFacts")["timestamp"]["anyOf"]


def test_entities_are_dictionaries_for_a_client_and_described_by_their_type() -> None:
    assert described("Ancestor")["entity"] == {"$ref": "#/components/schemas/Entity"}
    page = described("EntityPage")["items"]["items"]
    assert page == {"$ref": "#/components/schemas/EntityParts"}
