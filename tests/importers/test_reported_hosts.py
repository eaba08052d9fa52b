"""Organizations and groups as people reported them in public, read into a service."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gitlab.state import Account, Group
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.hosted_owner import HostedOwner
from tests.importers.organization import CATALOG, Organization, file, repository
from tests.importers.reading import Imports
from tests.service import Service

REPORTS = Path(__file__).parents[1] / "data" / "reports"


@pytest.fixture
def imports(service: Service) -> Imports:
    return Imports(service.state.database)


def scenario(report: str) -> dict[str, Any]:
    """The code host of a report."""
    found: dict[str, Any] = json.loads((REPORTS / report / "scenario.json").read_text())
    return found


def organization(report: str) -> Organization:
    """The organization of a report, at a fake GitHub."""
    made = [
        repository(one["name"], number, texts=one["files"], branch=one.get("branch", "main"))
        for number, one in enumerate(scenario(report)["repositories"], 1)
    ]
    return Organization(*made)


def group(report: str) -> GitlabGroup:
    """The group of a report, at a fake GitLab."""
    found, made = scenario(report), GitlabGroup()
    made.fake.projects = [
        project(one["path"].removeprefix("acme/"), one["id"], texts=one["files"])
        for one in found["projects"]
    ]
    people = [member for one in found["groups"] for member in one.get("members", ())]
    made.fake.accounts = [Account(one["username"], one["id"]) for one in people]
    paths = {one["id"]: one["path"] for one in found["groups"]}
    made.fake.groups = [
        Group(
            one["path"],
            one["id"],
            [member["username"] for member in one.get("members", ())],
            invited={
                paths[shared["group_id"]]: shared["group_access_level"]
                for shared in one.get("fields", {}).get("shared_with_groups", ())
            },
        )
        for one in found["groups"]
    ]
    return made


async def written(imports: Imports, owner: HostedOwner) -> dict[str, list[str]]:
    """The problems of each part, all of which are complete, after an import."""
    results = await imports.write_all(*(await owner.read()).parts)
    assert {result.record.state for result in results} == {"complete"}
    return {
        result.record.part.rpartition(".")[2]: [str(one) for one in result.record.problems]
        for result in results
    }


async def test_a_skeleton_brings_nothing_and_blocks_nothing(
    service: Service, imports: Imports
) -> None:
    owner = organization("14-skeletons-below-a-pattern")
    problems = [
        f"github.com/acme/templates {path}/skeleton/catalog-info.yaml:4: is a template and left "
        f"out: {sign}"
        for path, sign in (
            ("a", "metadata.name has ${{ values.name }}"),
            ("b", "it has {{cookiecutter.name}}"),
        )
    ]
    assert (await written(imports, owner))["repositories"] == problems
    listed = await service.http.get("/api/catalog/entities", params={"filter": "kind=component"})
    assert [one["metadata"]["name"] for one in listed.json()] == ["real"]
    [templates] = owner.fake.repositories
    templates.files.remove("svc/catalog-info.yaml")
    del templates.texts["svc/catalog-info.yaml"]
    templates.commits += 1
    assert (await written(imports, owner))["repositories"] == problems
    assert await service.catalog("component:default/real") is None


async def test_an_address_on_a_default_branch_with_a_slash_is_a_file_of_it(
    service: Service, imports: Imports
) -> None:
    owner = organization("15-default-branch-with-a-slash")
    assert (await written(imports, owner))["repositories"] == []
    assert await service.catalog("component:default/shop-api") is not None


async def test_an_address_as_gitlab_wrote_it_earlier_is_read(
    service: Service, imports: Imports
) -> None:
    assert (await written(imports, group("24-addresses-without-a-dash")))["projects"] == []
    assert await service.catalog("component:default/a") is not None


async def test_members_of_a_group_that_is_invited_are_members(
    service: Service, imports: Imports
) -> None:
    assert (await written(imports, group("25-group-invited-into-a-group")))["members"] == []
    user = await service.catalog("user:default/member-d")
    assert user is not None
    assert user["spec"]["memberOf"] == ["group:default/product", "group:default/team-a"]


async def test_an_invitation_that_has_ended_makes_nobody_a_member(
    service: Service, imports: Imports
) -> None:
    for until, groups in (
        ("2026-11-21", ["group:default/team-a"]),
        ("2026-11-22", ["group:default/product", "group:default/team-a"]),
    ):
        made = group("25-group-invited-into-a-group")
        made.fake.groups[1].invited_until = until
        assert (await written(imports, made))["members"] == []
        user = await service.catalog("user:default/member-d")
        assert user is not None
        assert user["spec"]["memberOf"] == groups


async def test_a_group_that_is_invited_from_elsewhere_is_a_problem(imports: Imports) -> None:
    made = group("25-group-invited-into-a-group")
    made.fake.groups.append(Group("partners", 9, ["kim"]))
    made.fake.groups[1].invited = {"partners": 30}
    [problem] = (await written(imports, made))["members"]
    assert problem.startswith(
        "gitlab.com/acme: members of partners, which is invited into acme/product, are left out"
    )


async def test_a_definition_at_a_raw_address_is_read_and_one_elsewhere_is_left_out(
    service: Service, imports: Imports
) -> None:
    owner = organization("30-definition-behind-a-raw-address")
    [problem] = (await written(imports, owner))["repositories"]
    assert problem.startswith(
        "github.com/acme/api catalog-info.yaml:12: https://petstore.example.com/openapi.yaml: "
    )
    for name, definition in [
        ("by-raw", "openapi: 3.0.0\n"),
        ("by-path", "openapi: 3.0.0\n"),
        ("by-host", None),
    ]:
        api = await service.catalog(f"api:default/{name}")
        assert api is not None
        assert api["spec"].get("definition") == definition


async def test_a_repository_whose_own_file_is_a_template_is_a_component(
    service: Service, imports: Imports
) -> None:
    owner = Organization(repository("starter", 1, texts={CATALOG: file("'{{ name }}'")}))
    assert (await written(imports, owner))["repositories"] == [
        "github.com/acme/starter catalog-info.yaml:4: is a template and left out: metadata.name "
        "has {{ name }}"
    ]
    assert await service.catalog("component:default/starter") is not None


async def test_items_that_are_no_references_are_problems_of_an_import(imports: Imports) -> None:
    text = (REPORTS / "01-depends-on-objects" / "entity.yaml").read_text()
    owner = Organization(repository("shop", 1, texts={CATALOG: text}))
    place = "github.com/acme/shop catalog-info.yaml:9: spec.dependsOn"
    problems = (await written(imports, owner))["repositories"]
    assert [one.partition(" is ")[0] for one in problems] == [f"{place}[{n}]:" for n in range(5)]
