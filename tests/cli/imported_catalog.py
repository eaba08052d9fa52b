"""A catalog in a file, and `factbook import` into it from fakes of other systems."""

import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from factbook.catalog.store.stored_entities import DOCUMENT
from tests.cli.conftest import Command
from tests.fakes.fake import Fake
from tests.fakes.serving import served
from tests.integrations.gitea.asking import HOST
from tests.integrations.gitea.asking import TOKEN as GITEA_TOKEN
from tests.integrations.github.asking import TOKEN as GITHUB_TOKEN
from tests.integrations.gitlab.asking import TOKEN as GITLAB_TOKEN

# The table of the account, the address of the API behind that of the host, and the arguments.
HOSTS: Mapping[str, tuple[Mapping[str, str], str, list[str]]] = {
    "github": ({"TOKEN": GITHUB_TOKEN}, "", ["--org", "acme"]),
    "gitlab": ({"TOKEN": GITLAB_TOKEN}, "/api/v4", ["--group", "acme"]),
    "gitea": ({"TOKEN": GITEA_TOKEN, "HOST": HOST}, "/api/v1", ["--org", "acme"]),
}

_DOCUMENTS = f"SELECT ref, {DOCUMENT} FROM entities e ORDER BY ref"  # noqa: S608


class Catalog:
    """A catalog in a file, and `factbook import` into it."""

    def __init__(self, factbook: Command, path: Path, patch: pytest.MonkeyPatch) -> None:
        self._factbook = factbook
        self._path = path
        self._patch = patch

    def take(self, host: str, fake: Fake, *arguments: str, code: int = 0) -> Any:
        """One import of everything at a fake, of acme unless others are named; the report."""
        table, below, owner = HOSTS[host]
        owner = [] if {"--org", "--group"} & {*arguments} else owner
        with served(fake) as url:
            for name, value in {**table, "API_URL": f"{url}{below}"}.items():
                variable = f"FACTBOOK_INTEGRATIONS__{host.upper()}__DEFAULT__{name}"
                self._patch.setenv(variable, value)
            return self.run(host, *owner, *arguments, code=code)

    def run(self, *arguments: str, code: int = 0) -> Any:
        """One import."""
        answer = self.answer(*arguments, "--json")
        assert answer.exit_code == code, answer.stderr
        return json.loads(answer.stdout)

    def answer(self, *arguments: str) -> Result:
        """Result of `factbook import` with these arguments."""
        self._patch.setenv("FACTBOOK_OUTGOING_NETWORKS", "127.0.0.0/8")
        database = f"--database-url=sqlite:///{self._path}"
        return self._factbook("import", *arguments, database)

    def forget(self) -> None:
        """Leave what importers remember as an earlier release had it, which kept no names."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.execute("DELETE FROM memories WHERE source_id LIKE 'import/%'")

    @property
    def entities(self) -> dict[str, Any]:
        """The entities in the catalog by reference."""
        with closing(sqlite3.connect(self._path)) as connection:
            rows = connection.execute(_DOCUMENTS)
            return {ref: json.loads(document) for ref, document in rows}

    def owners(self) -> dict[str, str | None]:
        """The owner of each component by its name."""
        return {
            ref.partition("/")[2]: entity["spec"].get("owner")
            for ref, entity in self.entities.items()
            if ref.startswith("component:")
        }


@pytest.fixture
def catalog(
    factbook: Command, migrated_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Catalog:
    return Catalog(factbook, Path(shutil.copy(migrated_file, tmp_path)), monkeypatch)
