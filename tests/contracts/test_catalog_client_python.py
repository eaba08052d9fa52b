"""The Python package backstage_catalog_client finds in the service what was pushed."""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.contracts.sample_catalog import Entity, Sample, plain, short
from tests.processes import UV, clean_environment

pytestmark = pytest.mark.system

PACKAGE = "backstage_catalog_client==0.1.0"
PROGRAM = Path(__file__).with_name("catalog_client.py")


class Read(NamedTuple):
    """What the client gave, and what it has to find."""

    answers: dict[str, Any]
    sample: Sample

    def pages(self, name: str) -> list[Entity]:
        return [item for page in self.answers[name] for item in page["items"]]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the package."""
    home = tmp_path_factory.mktemp("environment")
    python = home / "bin" / "python"
    environment = clean_environment()
    install: list[str | Path] = ["pip", "install", "--python", python, PACKAGE]
    for arguments in (["venv", home], install):
        subprocess.run([UV, "--quiet", *arguments], env=environment, cwd=home, check=True)
    return python


@pytest.fixture(scope="module")
def read(client: Path, sample: Sample) -> Read:
    done = subprocess.run(
        [client, PROGRAM, sample.server.url, sample.token],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Read(json.loads(done.stdout), sample)


@pytest.mark.spec("catalog.list-entities", "catalog.list-fields", "catalog.list-filter")
def test_lists_are_filtered_cut_and_ordered(read: Read) -> None:
    apis, paged = read.answers["get_entities"]
    filters = ("kind=domain,kind=system,spec.owner", "kind=api")
    assert apis == short(read.sample.found(filters, ("desc:kind", "asc:metadata.name")))
    assert paged == short(read.sample.entities[5:12])


@pytest.mark.spec("catalog.by-query")
def test_queries_are_read_by_cursor_to_their_end(read: Read) -> None:
    wanted = short(read.sample.found(["kind=component,spec.type=library"]))
    assert read.pages("query_entities") == wanted
    assert {page["total_items"] for page in read.answers["query_entities"]} == {len(wanted)}
    titled = [
        one for one in read.sample.entities if "über" in one["metadata"].get("title", "").lower()
    ]
    assert read.pages("searched") == short(titled)


@pytest.mark.spec("catalog.by-query")
def test_an_order_in_the_words_of_lists_leaves_a_query_as_it_is(read: Read) -> None:
    # The package writes asc:kind where a query has kind,asc; no entity has such a field.
    assert read.pages("ordered") == short(read.sample.entities)


@pytest.mark.spec("catalog.by-refs-trailing-slash", "catalog.by-refs", "catalog.by-name")
def test_references_are_found_in_their_order(read: Read) -> None:
    everything, narrowed = (answer["items"] for answer in read.answers["get_entities_by_refs"])
    service = read.sample.by_ref["component:other/svc-003"]
    api = read.sample.by_ref["api:default/api_0"]
    assert [one and plain(one) for one in everything] == [service, None, api]
    assert narrowed == [None, None, short([api])[0]]
    named = read.answers["get_entity_by_ref"]
    assert [one and plain(one) for one in named] == [service, None, api]


@pytest.mark.spec("catalog.locations-are-empty")
def test_an_entity_has_no_location(read: Read) -> None:
    assert read.answers["get_location_by_entity"] is None
