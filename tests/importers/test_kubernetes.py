"""What the importer makes of a cluster, and of an API server that fails."""

from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.errors import ConfigurationError
from factbook.importers.kubernetes import KubernetesImportOptions
from factbook.storage import Database
from tests.fakes import faults
from tests.fakes.faults import Answer, Fault
from tests.fakes.kubernetes.app import TOKEN
from tests.fakes.kubernetes.objects import (
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACES,
    REVIEWS,
    STATEFUL_SETS,
)
from tests.importers.clusters import CLUSTER, ImportedCluster
from tests.importers.reading import Imports

ID = "backstage.io/kubernetes-id"
OWNER = "terasky.backstage.io/owner"


async def test_a_workload_is_a_component_of_its_namespace() -> None:
    cluster = ImportedCluster()
    labels = {
        "app.kubernetes.io/name": "web-shop",
        "app.kubernetes.io/instance": "web",
        "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/version": "1.2.3",
    }
    cluster.fake.add(DEPLOYMENTS, "web", "payments", labels, {OWNER: "core"})
    assert await cluster.entities() == {
        "payments/web": {
            "apiVersion": "backstage.io/v1alpha1",
            "kind": "Component",
            "metadata": {
                "name": "web",
                "namespace": "payments",
                "title": "web-shop",
                "labels": {"app.kubernetes.io/version": "1.2.3"},
                "annotations": {
                    "backstage.io/kubernetes-namespace": "payments",
                    "backstage.io/kubernetes-label-selector": (
                        "app.kubernetes.io/name=web-shop,app.kubernetes.io/instance=web"
                    ),
                    "backstage.io/kubernetes-cluster": CLUSTER,
                },
            },
            "spec": {
                "type": "service",
                "owner": "group:default/core",
                "system": "system:default/shop",
                "dependsOn": [f"resource:default/{CLUSTER}"],
            },
        }
    }


async def test_the_cluster_is_a_resource_with_the_id_that_it_has_for_good() -> None:
    cluster = ImportedCluster()
    [item] = (await cluster.part("cluster")).items
    assert item.entity["spec"] == {"type": "kubernetes-cluster"}
    system = cluster.fake.objects[NAMESPACES][1]
    assert (item.entity["metadata"]["name"], item.external_id) == (
        CLUSTER,
        f"kubernetes/{system['uid']}",
    )


async def test_a_cluster_whose_namespaces_cannot_be_read_is_not_certain() -> None:
    cluster = ImportedCluster()
    cluster.fake.fail(NAMESPACES, faults.unavailable, times=9)
    part = await cluster.part("cluster")
    [item] = part.items
    assert (part.complete, item.tentative, item.external_id) == (False, True, "")
    assert part.problems[0].message.startswith("namespaces: ")


async def test_a_workload_whose_namespace_is_not_listed_has_no_certain_owner() -> None:
    cluster = ImportedCluster()
    cluster.fake.add(NAMESPACES, "stock")
    cluster.fake.add(DEPLOYMENTS, "web", "payments")
    cluster.fake.add(DEPLOYMENTS, "till", "stock")
    part = await cluster.part()
    assert part.complete
    assert [(item.entity["metadata"]["name"], item.tentative) for item in part.items] == [
        ("web", True),
        ("till", False),
    ]


async def test_workloads_of_one_id_are_one_component() -> None:
    cluster = ImportedCluster()
    cluster.fake.add(DEPLOYMENTS, "web", "b", {ID: "shop", "app.kubernetes.io/version": "1"})
    cluster.fake.add(STATEFUL_SETS, "db", "a", {ID: "shop", "app.kubernetes.io/version": "2"})
    found = await cluster.entities()
    assert list(found) == ["shop"]
    assert found["shop"]["metadata"] == {
        "name": "shop",
        "annotations": {
            ID: "shop",
            "backstage.io/kubernetes-namespace": "a",
            "backstage.io/kubernetes-cluster": CLUSTER,
        },
    }


@pytest.mark.parametrize(
    ("own", "above", "owner"),
    [
        ({OWNER: "user:alice"}, {OWNER: "core"}, "user:default/alice"),
        ({}, {OWNER: "core"}, "group:default/core"),
        ({}, {}, None),
        ({OWNER: "a:b:c/"}, {}, None),
    ],
)
async def test_the_owner_is_that_of_the_workload_or_its_namespace_or_nobody(
    own: dict[str, str], above: dict[str, str], owner: str | None
) -> None:
    cluster = ImportedCluster()
    cluster.fake.add(NAMESPACES, "payments", annotations=above)
    cluster.fake.add(DEPLOYMENTS, "web", "payments", annotations=own)
    found = (await cluster.entities())["payments/web"]
    assert found["spec"].get("owner") == owner


async def test_an_annotation_that_is_no_reference_is_a_problem_of_its_component() -> None:
    cluster = ImportedCluster()
    cluster.fake.add(DEPLOYMENTS, "web", "payments", annotations={OWNER: "a:b:c/"})
    part = await cluster.part()
    assert (part.complete, [one.origin for one in part.problems]) == (
        True,
        [f"{CLUSTER} payments/web"],
    )


async def test_annotations_of_another_importer_are_understood() -> None:
    given = {
        "backstage-namespace": "shop",
        "component-type": "worker",
        "lifecycle": "production",
        "system": "shop/all",
        "subcomponent-of": "whole",
        "dependsOn": "resource:db, other\ncomponent:a/b",
        "providesApis": "orders",
        "consumesApis": "api:stock/v1",
        "kubernetes-label-selector": "app=web",
        "source-code-repo-url": "https://git.example.com/shop/web/",
        "source-branch": "main",
    }
    cluster = ImportedCluster()
    annotations = {f"terasky.backstage.io/{key}": value for key, value in given.items()}
    cluster.fake.add(DEPLOYMENTS, "web", "payments", annotations=annotations)
    found = (await cluster.entities())["shop/web"]
    assert found["spec"] == {
        "type": "worker",
        "lifecycle": "production",
        "system": "system:shop/all",
        "subcomponentOf": "component:default/whole",
        "dependsOn": [
            "resource:default/db",
            "component:default/other",
            "component:a/b",
            f"resource:default/{CLUSTER}",
        ],
        "providesApis": ["api:default/orders"],
        "consumesApis": ["api:stock/v1"],
    }
    annotations = found["metadata"]["annotations"]
    assert annotations["backstage.io/kubernetes-label-selector"] == "app=web"
    assert annotations["backstage.io/source-location"] == (
        "url:https://git.example.com/shop/web/tree/main/"
    )


async def test_only_what_is_chosen_is_imported() -> None:
    cluster = ImportedCluster(namespaces=("payments",), labels=(ID, "team=core"))
    add, terasky = cluster.fake.add, "terasky.backstage.io"
    add(DEPLOYMENTS, "in-namespace", "payments")
    add(DEPLOYMENTS, "with-id", "other", {ID: "with-id"})
    add(DEPLOYMENTS, "with-label", "other", {"team": "core"})
    add(DEPLOYMENTS, "with-another", "other", {"team": "shop"})
    add(DEPLOYMENTS, "added", "other", annotations={f"{terasky}/add-to-catalog": "true"})
    excluded = {f"{terasky}/exclude-from-catalog": "true"}
    add(DEPLOYMENTS, "excluded", "payments", annotations=excluded)
    snapshot = await cluster.read()
    assert sorted(await cluster.entities()) == [
        "other/added",
        "other/with-label",
        "payments/in-namespace",
        "with-id",
    ]
    assert snapshot.left_out == {"workloads that are not chosen": 2}


async def test_other_resources_are_read_as_workloads() -> None:
    cluster = ImportedCluster(resources=("argoproj.io/v1alpha1/rollouts",), namespace="eu")
    cluster.fake.objects["/apis/argoproj.io/v1alpha1/rollouts"] = []
    cluster.fake.add("/apis/argoproj.io/v1alpha1/rollouts", "web", "payments")
    assert list(await cluster.entities()) == ["eu/web"]
    assert cluster.fake.requests[DEPLOYMENTS] == 0


async def test_all_pages_are_read_and_every_object_once() -> None:
    cluster = ImportedCluster()
    for number in range(1_100):
        cluster.fake.add(DEPLOYMENTS, f"web-{number}", "payments")
    assert len(await cluster.entities()) == 1_100
    assert cluster.fake.requests == {
        NAMESPACES: 1,
        DEPLOYMENTS: 3,
        STATEFUL_SETS: 1,
        DAEMON_SETS: 1,
        REVIEWS: 3,
    }


async def test_a_list_that_was_forgotten_is_begun_again() -> None:
    cluster = ImportedCluster()
    for number in range(600):
        cluster.fake.add(DEPLOYMENTS, f"web-{number}", "payments")

    async def forgetting(request: Request, answer: Answer) -> Response:
        response = await answer(request)
        cluster.fake.forget()
        return response

    cluster.fake.fail(DEPLOYMENTS, forgetting)
    part = await cluster.part()
    assert (part.complete, len(part.items), cluster.fake.requests[DEPLOYMENTS]) == (True, 600, 4)
    cluster.fake.fail(DEPLOYMENTS, forgetting, times=9)
    part = await cluster.part()
    assert "the list expired" in part.problems[0].message
    assert not part.complete


async def same_token(request: Request, answer: Answer) -> Response:
    """A page whose token leads to itself."""
    body = bytes((await answer(request)).body)
    return Response(body.replace(b'"resourceVersion":"7"', b'"continue":"0.500"', 1))


async def test_a_token_that_leads_to_itself_ends_the_list() -> None:
    cluster = ImportedCluster()
    for number in range(600):
        cluster.fake.add(DEPLOYMENTS, f"web-{number}", "payments")
    cluster.fake.fail(DEPLOYMENTS, same_token, after=1, times=9)
    part = await cluster.part()
    assert (part.complete, len(part.items)) == (False, 600)


@pytest.mark.slow
async def test_a_page_that_fails_makes_the_cluster_incomplete_and_its_items_uncertain(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[Fault, str]] = [
        (faults.saying({"kind": "Status"}), "unknown format"),
        (faults.saying({"kind": "Status", "metadata": {}, "items": []}), "unknown format"),
        (
            faults.saying({"kind": "DeploymentList", "metadata": {}, "items": [{}]}),
            "unknown format",
        ),
        (faults.saying({"kind": "Status", "code": 403}, 403), "needs the verb list"),
        (faults.saying({"kind": "Status", "code": 429}, 429), "rate-limited"),
        (faults.saying({"kind": "Status", "code": 500}, 500), "upstream-error"),
        (faults.cut_off, "upstream-error"),
        (faults.not_json, "upstream-error"),
    ]
    for fault, word in cases:
        with subtests.test(fault=fault, word=word):
            cluster = ImportedCluster()
            for number in range(600):
                cluster.fake.add(DEPLOYMENTS, f"web-{number}", "payments")
            cluster.fake.fail(DEPLOYMENTS, fault, after=1, times=9)
            part = await cluster.part()
            assert (part.complete, len(part.items)) == (False, 500)
            assert {item.tentative for item in part.items} == {True}
            assert word in part.problems[0].message


async def test_what_may_not_be_listed_is_named_as_a_role_names_it() -> None:
    cluster = ImportedCluster()
    cluster.fake.forbidden = {NAMESPACES, STATEFUL_SETS}
    part = await cluster.part()
    assert [one.message for one in part.problems] == [
        "namespaces: forbidden: needs the verb list on namespaces",
        "apps/v1/statefulsets: forbidden: needs the verb list on statefulsets.apps",
    ]
    assert not part.complete


async def test_of_lists_that_may_leave_namespaces_out_each_namespace_is_a_right() -> None:
    cluster = ImportedCluster(resources=("apps/v1/deployments", "apps/v1/statefulsets"))
    cluster.fake.add(DEPLOYMENTS, "web", "payments")
    cluster.fake.add(DEPLOYMENTS, "till", "stock")
    part = await cluster.part()
    assert part.rights == {"namespaces", "apps/v1/deployments"}
    assert [item.rights for item in part.items] == [{"apps/v1/deployments"}] * 2
    cluster.fake.shown = {"payments"}
    part = await cluster.part()
    assert part.complete
    assert part.rights == {"apps/v1/deployments in payments"}
    cluster.fake.shown = None
    cluster.fake.fail(REVIEWS, faults.saying({"kind": "Status"}, 403), times=2)
    rights = {f"apps/v1/deployments in {name}" for name in ("payments", "stock")}
    assert (await cluster.part()).rights == {"namespaces", *rights}


async def test_a_review_that_fails_makes_the_cluster_incomplete() -> None:
    cluster = ImportedCluster()
    cluster.fake.add(DEPLOYMENTS, "web", "payments")
    cluster.fake.fail(REVIEWS, faults.unavailable, times=9)
    part = await cluster.part()
    assert (part.complete, [item.tentative for item in part.items]) == (False, [True])


async def test_a_resource_that_the_cluster_does_not_have_makes_it_incomplete() -> None:
    part = await ImportedCluster(resources=("argoproj.io/v1alpha1/rollouts",)).part()
    assert (part.complete, part.problems[0].message.split(":")[1].strip()) == (False, "not-found")


async def test_the_token_is_read_from_its_file_for_each_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    cluster = ImportedCluster(token="", token_file=str(file))
    assert "cannot be read" in (await cluster.part()).problems[0].message
    file.write_text(f"{TOKEN}\n")

    async def renewing(request: Request, answer: Answer) -> Response:
        response = await answer(request)
        file.write_text("another")
        cluster.fake.tokens = {"another"}
        return response

    cluster.fake.fail(NAMESPACES, renewing)
    assert (await cluster.part()).complete
    cluster.fake.tokens = {"a third"}
    assert not (await cluster.part()).complete


def test_the_api_server_is_that_of_the_cluster_it_runs_in() -> None:
    options = KubernetesImportOptions(cluster="a")
    assert options.base_url({}) == "https://kubernetes.default.svc:443"
    given = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT_HTTPS": "6443"}
    assert options.base_url(given) == "https://[fd00::1]:6443"


def test_a_mistake_in_the_options_is_told(subtests: pytest.Subtests) -> None:
    tables: list[dict[str, Any]] = [
        {"cluster": "Not one"},
        {"url": "kubernetes"},
        {"namespace": "A"},
        {"resources": ("pods",)},
        {"resources": ("a/../b",)},
        {"resources": ("apps/v1/../x",)},
    ]
    for table in tables:
        with subtests.test(table=table), pytest.raises(ConfigurationError):
            KubernetesImportOptions(**{"cluster": "a", **table})


async def test_a_workload_that_is_being_deleted_is_gone() -> None:
    cluster = ImportedCluster()
    cluster.fake.add(DEPLOYMENTS, "web", "payments")
    going = cluster.fake.add(DEPLOYMENTS, "old", "payments")
    going["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    assert list(await cluster.entities()) == ["payments/web"]
    assert (await cluster.read()).left_out == {"workloads that are being deleted": 1}


async def test_workloads_of_one_name_are_never_one_component(database: Database) -> None:
    cluster, imports = ImportedCluster(namespace="prod"), Imports(database)
    cluster.fake.add(DEPLOYMENTS, "api", "team-b", {}, {OWNER: "b"})
    cluster.fake.add(DEPLOYMENTS, "api", "team-a", {}, {OWNER: "a"})
    cluster.fake.add(STATEFUL_SETS, "api", "team-a", {}, {OWNER: "c"})
    cluster.fake.add(STATEFUL_SETS, "api-team-b-deployment", "team-a")
    result = await imports.write(await cluster.part())
    assert list(map(str, result.record.problems)) == []
    owners = {name: one["spec"].get("owner") for name, one in (await cluster.entities()).items()}
    assert owners == {
        "prod/api": "group:default/a",
        "prod/api-team-a-statefulset": "group:default/c",
        "prod/api-team-b-deployment": "group:default/b",
        "prod/api-team-b-deployment-team-a-statefulset": None,
    }
    ids = {item.external_id for item in (await cluster.part()).items}
    assert len(ids - {""}) == 4


async def test_the_name_of_a_workload_lasts_while_others_of_that_name_come_and_go() -> None:
    cluster = ImportedCluster()
    cluster.fake.add(STATEFUL_SETS, "shop", "web")
    cluster.fake.add(DEPLOYMENTS, "default-app", "default", {ID: "till"})
    cluster.fake.add(DEPLOYMENTS, "till", "default")
    assert sorted(await cluster.entities()) == ["till", "till-deployment", "web/shop"]
    cluster.fake.add(DEPLOYMENTS, "shop", "web")
    assert sorted(await cluster.entities()) == [
        "till",
        "till-deployment",
        "web/shop",
        "web/shop-deployment",
    ]
    cluster.fake.objects[STATEFUL_SETS].clear()
    assert sorted(await cluster.entities()) == ["till", "till-deployment", "web/shop-deployment"]
    # What could not be listed keeps its name.
    cluster.fake.add(STATEFUL_SETS, "shop", "web")
    await cluster.entities()
    cluster.fake.fail(STATEFUL_SETS, faults.unavailable, times=9)
    cluster.fake.add(DAEMON_SETS, "shop", "web")
    assert "web/shop-daemonset" in await cluster.entities()
