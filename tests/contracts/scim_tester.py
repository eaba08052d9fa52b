"""Runs scim2-tester against a service, and prints what each check found, as JSON.

    python scim_tester.py URL TOKEN

It runs in an environment of its own, as the package brings many others.
"""

import json
import sys

import httpx2

# None of them is installed where this project's checks run.
from scim2_client.engines.httpx2 import (  # type: ignore[import-not-found]
    SyncSCIMClient,
)
from scim2_tester import check_server  # type: ignore[import-not-found]


def main(url: str, token: str) -> None:
    headers = {"authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{url}/scim/v2", headers=headers, timeout=30) as http:
        results = check_server(SyncSCIMClient(http))
    found = [
        {
            "check": result.title,
            "status": result.status.name,
            "resource": result.resource_type or "",
            "reason": result.reason or "",
        }
        for result in results
    ]
    sys.stdout.write(json.dumps(found, default=str))


main(*sys.argv[1:])
