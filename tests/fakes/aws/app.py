"""A fake AWS Organizations with its STS, as far as it is asked to list."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import Clock, now
from tests.fakes.aws.faults import error
from tests.fakes.fake import Fake

ORGANIZATION = "o-exampleorgid"
ROOT = "r-examplerootid111"
MANAGEMENT = "111111111111"
KEY_ID = "AKIDEXAMPLE"
ASSUMED_ID = "ASIAEXAMPLE"
_LONGEST_AGE = 5 * 60


@dataclass
class Account:
    """An account; `units` are the ids of those that it is in."""

    name: str
    number: int
    units: tuple[str, ...] = ()
    state: str = "ACTIVE"
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.number:012}"

    def listed(self) -> dict[str, Any]:
        """As `ListAccounts` has it."""
        path = "/".join([ORGANIZATION, ROOT, *self.units, self.id])
        return {
            "Id": self.id,
            "Arn": f"arn:aws:organizations::{MANAGEMENT}:account/{ORGANIZATION}/{self.id}",
            "Email": f"{self.number}@example.com",
            "Name": self.name,
            "State": self.state,
            "Paths": [f"{path}/"],
            "JoinedMethod": "CREATED",
            "JoinedTimestamp": 1481835795.536,
        }


@dataclass
class Unit:
    """An organizational unit; its parent is the root unless it says."""

    id: str
    name: str
    parent: str = ROOT

    def listed(self) -> dict[str, Any]:
        """As `ListOrganizationalUnitsForParent` has it."""
        arn = f"arn:aws:organizations::{MANAGEMENT}:ou/{ORGANIZATION}/{self.id}"
        return {"Id": self.id, "Arn": arn, "Name": self.name}


class FakeAws(Fake):
    """An organization; pages hold `size` things. Its kinds of requests are the actions."""

    def __init__(
        self,
        *accounts: Account,
        clock: Clock = now,
        units: tuple[Unit, ...] = (),
        size: int = 20,
    ) -> None:
        super().__init__()
        self.clock = clock
        self.accounts = list(accounts)
        self.units = list(units)
        self.size = size
        self.key_ids = {KEY_ID}
        self.queries: list[Mapping[str, str]] = []

    def kind(self, request: Request) -> str:
        """The action that is asked for."""
        target = request.headers.get("x-amz-target", "")
        return target.rpartition(".")[2] or request.query_params.get("Action", "")

    async def answer(self, request: Request) -> Response:
        """What AWS says to keys that it knows."""
        action = self.kind(request)
        if action.startswith("AssumeRole"):
            self.queries.append(request.query_params)
            return self._assumed(action)
        if not any(
            f"Credential={id_}/" in request.headers["authorization"] for id_ in self.key_ids
        ):
            return error("UnrecognizedClientException")
        if self._age(request) > _LONGEST_AGE:
            return error("InvalidSignatureException")
        arguments = msgspec.json.decode(await request.body())
        member, every = self._listed(action, arguments)
        start = int(arguments.get("NextToken", 0))
        end = start + self.size
        more = {"NextToken": str(end)} if end < len(every) else {}
        return _json({member: every[start:end], **more})

    def _age(self, request: Request) -> float:
        """The seconds since the request was signed."""
        signed = datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%S%z")
        return self.clock() / 1_000 - signed.timestamp()

    def _listed(self, action: str, arguments: Mapping[str, Any]) -> tuple[str, list[Any]]:
        if action == "ListAccounts":
            return "Accounts", [one.listed() for one in self.accounts]
        if action == "ListRoots":
            arn = f"arn:aws:organizations::{MANAGEMENT}:root/{ORGANIZATION}/{ROOT}"
            return "Roots", [{"Id": ROOT, "Arn": arn, "Name": "Root", "PolicyTypes": []}]
        if action == "ListOrganizationalUnitsForParent":
            below = [one for one in self.units if one.parent == arguments["ParentId"]]
            return "OrganizationalUnits", [one.listed() for one in below]
        assert action == "ListTagsForResource", action
        [account] = [one for one in self.accounts if one.id == arguments["ResourceId"]]
        return "Tags", [{"Key": key, "Value": value} for key, value in account.tags.items()]

    def _assumed(self, action: str) -> Response:
        self.key_ids = {ASSUMED_ID}
        credentials = {
            "AccessKeyId": ASSUMED_ID,
            "SecretAccessKey": "a secret",
            "SessionToken": "a token",
            "Expiration": 1.6e9,
        }
        result = {"Credentials": credentials, "AssumedRoleUser": {}}
        return _json({f"{action}Response": {f"{action}Result": result, "ResponseMetadata": {}}})


def _json(body: Any) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/x-amz-json-1.1")
