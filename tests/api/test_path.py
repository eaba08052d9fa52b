"""From a push to an answer."""

import pytest

from tests.service import Service, component


@pytest.mark.spec("push.visible-immediately")
async def test_a_pushed_entity_is_in_the_catalog_and_answers_at_once(service: Service) -> None:
    answer = await service.push("first", component("payments"))
    assert answer.status_code == 200, answer.text
    entity = await service.catalog("component:default/payments")
    assert entity is not None
    assert entity["metadata"]["uid"] == answer.json()["items"][0]["id"]
    result = await service.facts("get-entity-compliance", name="payments")
    assert result["metadata"]["hasOwner"] is True
