"""Calls of the Python package backstage_catalog_client, printed as one JSON object.

    python catalog_client.py URL TOKEN

It runs in an environment of its own, as the package pins old versions of what it needs.
"""

import asyncio
import json
import sys
from dataclasses import asdict
from typing import Any

# Neither is installed where this project's checks run.
import httpx  # type: ignore[import-not-found,unused-ignore]
from backstage_catalog_client import HttpxClient  # type: ignore[import-not-found]
from backstage_catalog_client.catalog_api.util import (  # type: ignore[import-not-found]
    CATALOG_FILTER_EXISTS,
)

FIELDS = ["kind", "metadata.namespace", "metadata.name"]


async def pages(client: Any, **asked: Any) -> list[Any]:
    """Every page of a query."""
    found = [await client.query_entities(**asked, limit=100, fields=FIELDS)]
    while cursor := found[-1].page_info.nextCursor:
        found.append(await client.query_entities(cursor=cursor, limit=100, fields=FIELDS))
    return found


async def answers(client: Any) -> dict[str, Any]:
    """What the client gives, by the name of its method."""
    owned = [{"kind": ["domain", "System"], "spec.owner": CATALOG_FILTER_EXISTS}, {"kind": "api"}]
    order = [{"field": "kind", "order": "desc"}, {"field": "metadata.name", "order": "asc"}]
    listed = await client.get_entities(entity_filter=owned, fields=FIELDS, order=order)
    paged = await client.get_entities(limit=7, offset=5, fields=FIELDS)
    components = [{"kind": "component", "spec.type": "library"}]
    refs = ["component:other/svc-003", "component:none", "API:Api_0"]
    narrowed = await client.get_entities_by_refs(
        refs, entity_filter=[{"kind": "api"}], fields=FIELDS
    )
    return {
        "get_entities": [listed.items, paged.items],
        "query_entities": [asdict(one) for one in await pages(client, entity_filter=components)],
        "searched": [
            asdict(one)
            for one in await pages(client, search_term=" ÜBER ", search_fields=["metadata.title"])
        ],
        "ordered": [asdict(one) for one in await pages(client, order_fields=order)],
        "get_entities_by_refs": [(await client.get_entities_by_refs(refs)).items, narrowed.items],
        "get_entity_by_ref": [await client.get_entity_by_ref(one) for one in refs],
        "get_location_by_entity": await client.get_location_by_entity(refs[0]),
    }


async def main(url: str, token: str) -> None:
    """Print the answers."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
        sys.stdout.write(json.dumps(await answers(HttpxClient(client=http))))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
