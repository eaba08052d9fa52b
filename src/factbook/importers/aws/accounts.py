"""Entities made of what AWS Organizations says: resources and systems.

What is not known is absent: no owner is made up.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

import msgspec

from factbook.catalog import ref

_VERSION: Final = "backstage.io/v1alpha1"
_PREFIX: Final = "amazonaws.com"
ACCOUNT_ID: Final = f"{_PREFIX}/account-id"
ARN: Final = f"{_PREFIX}/arn"
ORGANIZATION_ID: Final = f"{_PREFIX}/organization-id"
UNIT_ID: Final = f"{_PREFIX}/organizational-unit-id"
UNIT_PATH: Final = f"{_PREFIX}/organizational-unit-path"
STATE: Final = f"{_PREFIX}/state"

CLOSED: Final = frozenset({"SUSPENDED", "PENDING_CLOSURE", "CLOSED"})

Entity = dict[str, Any]
_Id = Annotated[str, msgspec.Meta(pattern=r"^\d{12}$")]


class AwsAccount(msgspec.Struct, rename="pascal", frozen=True):
    """Account in a listing; `paths` lead to it from the root of its organization."""

    id: _Id
    arn: str
    name: str = ""
    state: str = ""
    paths: tuple[str, ...] = ()

    @property
    def organization(self) -> str:
        """The id of its organization; empty in an ARN of another form."""
        parts = self.arn.rpartition(":")[2].split("/")
        return parts[1] if len(parts) == 3 and parts[0] == "account" else ""

    @property
    def units(self) -> tuple[str, ...]:
        """The ids of the root and the organizational units that it is in, the root first."""
        parts = self.paths[0].split("/") if self.paths else ()
        return tuple(part for part in parts if part.startswith(("r-", "ou-")))


class AwsTag(msgspec.Struct, rename="pascal", frozen=True):
    """Tag of an account."""

    key: str
    value: str


class AwsUnit(msgspec.Struct, rename="pascal", frozen=True):
    """Organizational unit, or the root of the organization."""

    id: str
    arn: str
    name: str = ""


def resource(account: AwsAccount, name: str, owner: str | None, system: str | None) -> Entity:
    """The resource of an account."""
    given = {ACCOUNT_ID: account.id, ARN: account.arn, ORGANIZATION_ID: account.organization}
    given[UNIT_PATH] = "/".join(account.units)
    metadata: Entity = {"name": name}
    if account.name.strip() not in {"", name}:
        metadata["title"] = account.name.strip()
    metadata["annotations"] = {key: value for key, value in given.items() if value}
    if account.state:
        metadata["labels"] = {STATE: account.state}
    spec = {"type": "cloud-account"}
    spec |= {"owner": owner} if owner else {}
    spec |= {"system": system} if system else {}
    return {"apiVersion": _VERSION, "kind": "Resource", "metadata": metadata, "spec": spec}


def system(unit: AwsUnit, name: str, path: Sequence[str]) -> Entity:
    """The system of an organizational unit; `path` are the names of those that it is in."""
    metadata: Entity = {"name": name, "description": " / ".join([*path, unit.name])}
    metadata["annotations"] = {UNIT_ID: unit.id, ARN: unit.arn}
    return {"apiVersion": _VERSION, "kind": "System", "metadata": metadata, "spec": {}}


def owner_of(tags: Iterable[AwsTag], keys: Sequence[str]) -> str | None:
    """The owner that the first of these tags names, whatever its case: a group, unless it says.

    None if there is no such tag. Raises InputError for one that is no reference.
    """
    values = {tag.key.lower(): tag.value.strip() for tag in tags}
    value = next(filter(None, (values.get(key.lower()) for key in keys)), None)
    if value is None:
        return None
    return ref.target(value, kind="group")
