"""A catalog that others wrote, which lies beside the other test data."""

from pathlib import Path

import yaml

from tests.service import Service


async def test_a_real_catalog_goes_in_and_its_facts_are_answered(
    service: Service, test_data: Path
) -> None:
    text = (test_data / "catalogs" / "plugins.yaml").read_text("utf-8")
    items = [document for document in yaml.safe_load_all(text) if document]
    pushed = await service.push("plugins", *items)
    assert pushed.json()["changes"]["added"] == 23
    found = await service.ask("get-all-entities-facts", dataSourceId="techdocs")
    documented = {one["entityRef"]: one["facts"] for one in found["structuredContent"]["entities"]}
    assert documented == {
        f"component:default/{item['metadata']['name']}": {
            "hasTechdocsRef": "backstage.io/techdocs-ref" in item["metadata"].get("annotations", {})
        }
        for item in items
        if item["kind"] == "Component"
    }
    assert len(documented) == 22
    assert sum(facts["hasTechdocsRef"] for facts in documented.values()) == 4
    auth = await service.ask("get-entity-compliance", name="backstage-plugin-aws-auth")
    assert auth["structuredContent"]["metadata"] == {
        "hasTitle": True,
        "hasDescription": True,
        "hasTags": True,
        "hasOwner": True,
    }
    location = await service.ask(
        "get-entity-compliance", name="roadie-backstage-plugins", kind="location"
    )
    compliance = location["structuredContent"]
    assert not any({**compliance["metadata"], **compliance["ownership"]}.values())
    again = await service.push("plugins", *items)
    assert again.json()["changes"] == {"added": 0, "updated": 0, "removed": 0, "unchanged": 23}
