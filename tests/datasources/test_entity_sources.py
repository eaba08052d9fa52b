"""Sources that need no host: of the entities themselves, and pushed ones."""

from factbook.datasources.custom import definition as source_definition
from factbook.datasources.custom import sources
from tests.datasources.asking import (
    KEY,
    Custom,
    Hosts,
    NoFiles,
    built,
    connecting,
    definition,
    integration,
)
from tests.service import Service


async def test_the_entity_itself_is_the_document(service: Service) -> None:
    facts = {
        "owned": ("boolean", "spec.owner == 'team-a'"),
        "build": ("string", f'metadata.annotations."{KEY}"'),
        "relations": ("integer", "length(relations)"),
        "named": ("boolean", '/"name":"we.?"/'),
    }
    world = Custom(
        service,
        connecting(service, Hosts()),
        integration(definition("entity", facts=facts)),
        integration(definition("entity", "narrow", {"kind": ("string", "kind")})),
    )
    await world.run(built("web", "b1"), built("shop"))
    web, shop = await world.latest("web"), await world.latest("shop")
    assert web.facts == {"owned": True, "build": "b1", "relations": 1, "named": True}
    assert shop.facts == {"owned": True, "relations": 1, "named": False}
    assert shop.reasons == {"build": "not-applicable: the document has no such value"}
    assert (await world.latest("web", "narrow")).facts == {"kind": "Component"}


def test_a_source_that_is_pushed_is_not_collected() -> None:
    source = source_definition.parse_source_definition(
        {
            "id": "pushed",
            "title": "Pushed",
            "handlerDefinition": {"type": "push", "config": {"id": "pushed"}},
            "schema": {"ok": {"type": "boolean"}},
        }
    )
    assert sources.build_integration(source, {}, NoFiles()) is None
