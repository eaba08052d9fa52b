"""What the made-up shop imports: its staff of a directory, and the infrastructure of a code host.

On the last day the directory has lost many people; a file of the code host is no YAML.
"""

from pathlib import Path
from typing import Any, Final

from factbook.clock import Clock
from factbook.importers import configuration
from factbook.importers.importer import Importer
from factbook.importers.runner import ImportRunner
from factbook.integrations.integration import Integration
from factbook.outbound import HttpClient
from factbook.settings import Settings
from tests.fakes.github.state import Repository
from tests.importers.directories import BASE, LdifFile, entry, unique
from tests.importers.organization import CATALOG
from tests.integrations.asking import Asking
from tests.integrations.github import asking as github
from tests.service import Service

OWNER: Final = "shop-infrastructure"
_STAFF: Final = (
    *("Aisha Khan", "Bruno Costa", "Carla Rossi", "Daniel Okafor", "Elena Petrova", "Farid Azizi"),
    *("Grace Lin", "Hugo Martin", "Ines Duarte", "Jonas Weber", "Kavya Nair", "Liam Murphy"),
    *("Mei Tanaka", "Nils Berg", "Olga Novak", "Paulo Reis", "Quinn Baker", "Rosa Vidal"),
    *("Stefan Kraus", "Tara Singh", "Umar Farouk", "Vera Lind", "Wanda Kowal", "Xavier Blanc"),
    *("Yusuf Demir", "Zoe Adams", "Anton Huber", "Bea Laurent", "Cem Arslan", "Dora Szabo"),
)
_LEAVING: Final = 12
# Name, type and owner of each.
_INFRASTRUCTURE: Final = (
    ("order-events", "topic", "team-checkout"),
    ("search-index", "index", "team-discovery"),
    ("image-store", "bucket", "team-discovery"),
    ("payment-vault", "secret-store", "team-payments"),
    ("warehouse-events", "topic", "team-logistics"),
    ("session-cache", "cache", "team-identity"),
    ("edge-network", "cdn", "team-identity"),
)
_ACCOUNTS: Final = {"github": {"default": {"token": github.TOKEN}}}


def _person(number: int, name: str) -> str:
    uid = name.lower().replace(" ", ".")
    values: dict[str, Any] = {"objectClass": ["top", "inetOrgPerson"], "uid": uid, "cn": name}
    values |= {"mail": f"{uid}@shop.example", "entryUUID": unique(number)}
    return entry(f"uid={uid},ou=people,{BASE}", **values)


def _repository(number: int, name: str, type_: str, owner: str) -> Repository:
    text = (
        "apiVersion: backstage.io/v1alpha1\nkind: Resource\n"
        f"metadata:\n  name: {name}\n  title: {name.replace('-', ' ').capitalize()}\n"
        f"spec:\n  type: {type_}\n  lifecycle: production\n  owner: {owner}\n"
    )
    return _with_file(number, name, text)


def _with_file(number: int, name: str, text: str) -> Repository:
    return Repository(
        f"{OWNER}/{name}",
        number=number,
        files=[CATALOG],
        texts={CATALOG: text.encode()},
    )


def repositories() -> list[Repository]:
    """The repositories of the infrastructure, one of them with a file that is no YAML."""
    broken = "kind: Resource\nmetadata:\n  name: mail-relay\n  tags: [smtp\nspec: {}\n"
    sound = [_repository(100 + number, *one) for number, one in enumerate(_INFRASTRUCTURE)]
    return [*sound, _with_file(99, "mail-relay", broken)]


class ShopImports:
    """The importers of the shop, and their runs in the time of a service."""

    def __init__(self, folder: Path, code: Asking) -> None:
        """`code` asks the code host."""
        self.directory = LdifFile(folder, *self._staff())
        self._code = code

    def _staff(self) -> list[str]:
        return [_person(number, name) for number, name in enumerate(_STAFF, 1)]

    def importers(self) -> tuple[Importer, ...]:
        """As the settings would configure them."""
        owner: dict[str, Any] = {"organizations": [OWNER], "people": False, "every": "6h"}
        people = {"path": str(self.directory.path), "groups": False, "every": "1d"}
        return (
            configuration.importer("github", "infrastructure", owner, _ACCOUNTS),
            configuration.importer("ldif", "staff", people, {}),
        )

    def lose_people(self) -> None:
        """Many leave the directory at once."""
        self.directory.write(*self._staff()[_LEAVING:])

    def runner(self, service: Service, clock: Clock) -> ImportRunner:
        """What runs them when they are due."""
        database, known = service.state.database, service.state.importers.current
        code, none = self._code.client, github.started()[1].client

        def client(integration: Integration) -> HttpClient:
            return code if "github" in integration.source.id else none

        return ImportRunner(database, Settings(), known, client, clock, "pictures")
