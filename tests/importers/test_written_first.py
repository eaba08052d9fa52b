"""Entities that somebody wrote in a file, against those that another importer generates."""

from collections.abc import Mapping
from typing import Any

from factbook.importers.writer import PartResult, write_snapshot
from tests.fakes.kubernetes.objects import DEPLOYMENTS
from tests.importers.clusters import ImportedCluster
from tests.importers.organization import CATALOG, Organization, file, repository
from tests.importers.reading import Imports
from tests.service import Service

SHOP = "component:default/shop"
FILES, WORKLOADS = "import/github/acme.repositories", "import/kubernetes/eu-1.workloads"


class TwoImporters:
    """A cluster and an organization, imported into one catalog."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.imports = Imports(service.state.database)
        self.cluster = ImportedCluster(namespace="default")
        self.cluster.fake.add(DEPLOYMENTS, "shop", "web")
        self.cluster.fake.add(DEPLOYMENTS, "till", "web")
        self.files: dict[str, str] = {}

    async def read_cluster(self) -> PartResult:
        """An import of the cluster."""
        self.imports.now += 1_000
        snapshot = await self.cluster.read()
        [result, _] = await write_snapshot(
            self.imports.target, "kubernetes", snapshot, self.imports.now
        )
        return result

    async def read_files(self, *, dry_run: bool = False) -> PartResult:
        """An import of the organization."""
        self.imports.now += 1_000
        owner = Organization(
            *(repository(name, 1, texts={CATALOG: text}) for name, text in self.files.items())
        )
        snapshot = await owner.read()
        target = self.imports.target
        results = await write_snapshot(
            target, "github", snapshot, self.imports.now, dry_run=dry_run
        )
        return results[0]

    async def shop(self) -> tuple[str | None, Mapping[str, Any]]:
        """The set of the component, and its metadata."""
        entity = await self.service.catalog(SHOP)
        assert entity is not None
        return entity["metadata"]["annotations"].get("factbook/entity-set"), entity["metadata"]


async def test_a_file_takes_the_reference_of_what_another_importer_generated(
    service: Service,
) -> None:
    two = TwoImporters(service)
    await two.read_cluster()
    owner, generated = await two.shop()
    assert (owner, generated["annotations"]["factbook/import-generated"]) == (WORKLOADS, "true")
    two.files = {"shop": file("shop")}
    planned = await two.read_files(dry_run=True)
    assert (planned.changes["added"], planned.conflicts) == (1, [])
    assert (await two.shop())[0] == WORKLOADS
    read = await two.read_files()
    assert (read.record.state, read.changes["added"], read.conflicts) == ("complete", 1, [])
    owner, written = await two.shop()
    assert owner == FILES
    assert "factbook/import-generated" not in written["annotations"]
    # It is another thing than the workload.
    assert written["uid"] != generated["uid"]


async def test_what_is_left_out_is_a_problem_and_returns_when_the_file_goes(
    service: Service,
) -> None:
    two = TwoImporters(service)
    await two.read_cluster()
    two.files = {"shop": file("shop")}
    await two.read_files()
    for _ in range(2):
        result = await two.read_cluster()
        assert (result.record.state, result.record.held) == ("complete", [])
        assert [str(one) for one in result.record.problems] == [
            f"eu-1 web/shop: {SHOP} would be generated, and is left out: {FILES} has it"
        ]
        assert (await two.shop())[0] == FILES
    # Another file of the repository, so that not everything of the part goes.
    two.files = {"shop": file("store")}
    await two.read_files()
    result = await two.read_cluster()
    assert (await two.shop())[0] == WORKLOADS
    assert result.record.problems == []


async def test_of_two_that_are_written_or_generated_the_first_one_counts(
    service: Service,
) -> None:
    two = TwoImporters(service)
    two.files = {"other": file("shop")}
    await two.read_files()
    # A file at another place names the same component.
    found = (await Organization(repository("more", 9, texts={CATALOG: file("shop")})).read()).parts
    [result, *_] = await two.imports.write_as("github-more", *found)
    assert [one.message for one in result.record.problems] == [
        f"{SHOP} is owned by {FILES}, and stays as it is there"
    ]
    two.cluster.fake.objects[DEPLOYMENTS].pop()
    await two.read_cluster()
    # What the file itself says does not make it a generated one.
    text = file("till").replace("metadata:", "metadata:\n  annotations: {a/import-generated: x}")
    two.files = {"other": text.replace("a/", "factbook/")}
    await two.read_files()
    two.cluster.fake.add(DEPLOYMENTS, "till", "web")
    result = await two.read_cluster()
    assert len(result.conflicts) == 1
