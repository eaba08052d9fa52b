"""The manifest of an import from within a cluster: its rights, its command, its restraint."""

from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from factbook.cli.commands import app
from factbook.importers.kubernetes import DEFAULT_WORKLOADS, NAMESPACES_PATH, make_resource_path
from tests.deploy.test_deploy import DEPLOY

MANIFEST = DEPLOY / "kubernetes" / "import.yml"


def documents() -> dict[str, dict[str, Any]]:
    """The objects of the manifest by their kinds."""
    return {one["kind"]: one for one in yaml.safe_load_all(Path(MANIFEST).read_text())}


def test_a_service_account_may_list_what_is_read_and_do_nothing_else() -> None:
    found = documents()
    rules = found["ClusterRole"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list"}
    granted = {
        (group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    parts = [
        path.split("/") for path in (NAMESPACES_PATH, *map(make_resource_path, DEFAULT_WORKLOADS))
    ]
    wanted = {("", one[3]) if one[1] == "api" else (one[2], one[4]) for one in parts}
    assert granted == wanted


def test_the_role_is_bound_to_the_service_account_of_the_job() -> None:
    found = documents()
    account, binding = found["ServiceAccount"]["metadata"], found["ClusterRoleBinding"]
    [subject] = binding["subjects"]
    assert binding["roleRef"]["name"] == found["ClusterRole"]["metadata"]["name"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert pod()["serviceAccountName"] == account["name"]
    assert found["CronJob"]["metadata"]["namespace"] == account["namespace"]


def pod() -> dict[str, Any]:
    found: dict[str, Any] = documents()["CronJob"]["spec"]["jobTemplate"]["spec"]["template"][
        "spec"
    ]
    return found


def test_the_command_is_one_and_its_token_comes_from_a_secret() -> None:
    [container] = pod()["containers"]
    program, group, name, *arguments = container["args"]
    commands: Any = typer.main.get_command(app)
    assert program == "factbook"
    commands.commands[group].commands[name].make_context(name, arguments)
    [token] = container["env"]
    assert token["name"] == "FACTBOOK_TOKEN"
    assert "value" not in token
    assert token["valueFrom"]["secretKeyRef"]["key"] == "token"


@pytest.mark.parametrize("one", ["allowPrivilegeEscalation", "readOnlyRootFilesystem"])
def test_the_container_is_restrained(one: str) -> None:
    [container] = pod()["containers"]
    context = container["securityContext"]
    assert context[one] is (one == "readOnlyRootFilesystem")
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert pod()["securityContext"]["runAsNonRoot"] is True


def test_no_two_imports_run_at_once() -> None:
    assert documents()["CronJob"]["spec"]["concurrencyPolicy"] == "Forbid"
