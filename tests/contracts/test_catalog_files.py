"""Real catalog files mean the same here as to Backstage: what it reads is what comes back.

FACTBOOK_CATALOG_FILES names a directory that `python -m tests.contracts.catalog_files` has filled:
every file of its manifest is compared, and has to be there. Without it, those of the test data are.
Differences that stay are in docs/decisions/catalog.md#yaml: files with a placeholder without quotes
are left out.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from factbook.importers.catalog_files import ReadingBudget, parse_documents
from tests.api.oracle import ref
from tests.contracts.catalog_files import differing, manifest
from tests.contracts.node import HERE, NODE
from tests.processes import serving
from tests.service import PUSH

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

Entity = dict[str, Any]

_OURS = ("uid", "etag")
_ADDED = ("metadata", "relations", "status")


class FileReading:
    """Catalog file as the npm packages and our reader have read it."""

    def __init__(self, file: Path, results: list[dict[str, Any]]) -> None:
        self.file = file
        self.content = parse_documents(file.read_bytes(), ReadingBudget())
        self.errors = [one["error"] for one in results if "error" in one]
        self.theirs = [one.get("entity") for one in results if "error" not in one]
        self.ours = [document.value for document in self.content.documents]

    @property
    def has_keys_that_are_none(self) -> bool:
        """True for a placeholder without quotes, which is a mapping as a key."""
        return any("unhashable key" in one.message for one in self.content.problems)

    @property
    def valid(self) -> list[tuple[Entity, Entity]]:
        """Each entity that Backstage accepts, as it is to us and to Backstage; a name once."""
        found: dict[str, tuple[Entity, Entity]] = {}
        for ours, theirs in zip(self.ours, self.theirs, strict=True):
            if theirs is not None:
                found.setdefault(ref(theirs), (ours, theirs))
        return list(found.values())


@pytest.fixture(scope="module")
def readings(test_data: Path) -> list[FileReading]:
    """Every file, read by both."""
    assert NODE.exists(), "tests/contracts has no node_modules: make contracts installs them"
    files = _files(test_data)
    texts = [json.dumps(file.read_bytes().decode(errors="replace")) for file in files]
    done = subprocess.run(
        [NODE, HERE / "catalog-file.mjs"],
        input="\n".join(texts),
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    results = map(json.loads, done.stdout.splitlines())
    found = [FileReading(file, one) for file, one in zip(files, results, strict=True)]
    return [one for one in found if not one.has_keys_that_are_none]


def _files(test_data: Path) -> list[Path]:
    """The files to compare; those of a manifest have to be what they were."""
    if named := os.environ.get("FACTBOOK_CATALOG_FILES"):
        listed = manifest()
        others = [str(one.within(Path(named))) for one in differing(Path(named), listed)]
        assert not others, f"missing or not those of the manifest: {others}"
        return [one.within(Path(named)) for one in listed]
    files = sorted((test_data / "catalogs").rglob("*.y*ml"))
    assert files, f"there are no catalog files in {test_data}"
    return files


def test_a_file_has_the_documents_and_the_mistakes_that_backstage_finds(
    readings: list[FileReading],
) -> None:
    for one in readings:
        assert len(one.ours) == len(one.theirs), one.file
        assert bool(one.content.problems) == bool(one.errors), (one.file, one.errors)


def test_what_backstage_accepts_is_pushed_and_read_back_equal(
    readings: list[FileReading], tmp_path: Path
) -> None:
    with (
        serving(f"sqlite:///{tmp_path / 'factbook.db'}", tmp_path) as server,
        server.client(server.token()) as http,
    ):
        for one in readings:
            items = [ours for ours, _ in one.valid]
            answer = http.put(f"{PUSH}/sets/file", json={"items": items})
            assert answer.status_code == 200, (one.file, answer.text)
            found = http.get("/api/catalog/entities").json()
            expected = [theirs for _, theirs in one.valid]
            assert _sorted(map(_as_pushed, found)) == _sorted(expected), one.file


def _as_pushed(entity: Entity) -> Entity:
    """An entity without what the catalog adds."""
    metadata = {key: value for key, value in entity["metadata"].items() if key not in _OURS}
    added = {"backstage.io/managed-by-location", "backstage.io/managed-by-origin-location"}
    given = {
        key: value
        for key, value in metadata.pop("annotations").items()
        if key not in added and not key.endswith("/entity-set")
    }
    return {"metadata": metadata | ({"annotations": given} if given else {})} | {
        key: value for key, value in entity.items() if key not in _ADDED
    }


def _sorted(entities: Iterator[Entity] | list[Entity]) -> list[str]:
    """The entities in an order of their own, in a form in which true differs from 1."""
    return sorted(json.dumps(_plain(entity), sort_keys=True) for entity in entities)


def _plain(entity: Entity) -> Entity:
    """An entity with its namespace, and without annotations that are there and empty."""
    metadata = {"namespace": "default", **entity["metadata"]}
    if not metadata.get("annotations", True):
        del metadata["annotations"]
    return entity | {"metadata": metadata}
