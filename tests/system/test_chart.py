"""The chart, rendered by Helm and held against the published schemas of Kubernetes."""

import json
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart_values import CHART, Values, at, leaves, merged
from tests.deploy.test_deploy import DEPLOY, check_command, is_setting
from tests.processes import UV, clean_environment

pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]

PACKAGES = ("helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0")
PROGRAM = Path(__file__).with_name("chart_rendering.py")
DIGEST = f"sha256:{'a' * 64}"

# Everything that the chart can make, on PostgreSQL.
WHOLE: Values = {
    "image": {"repository": "images.example.com/factbook"},
    "imagePullSecrets": [{"name": "pull"}],
    "database": {"kind": "postgresql", "existingSecret": "factbook"},
    "tokenKey": {"existingSecret": "factbook"},
    "publicUrl": "https://factbook.example.com",
    "configFile": {"existingSecret": "factbook-config"},
    "server": {"replicas": 2, "autoscaling": {"enabled": False}},
    "worker": {"replicas": 2},
    "ingress": {"enabled": True, "host": "factbook.example.com", "tlsSecret": "factbook-tls"},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "kubernetesImport": {
        "enabled": True,
        "cluster": "eu-1",
        "token": {"existingSecret": "factbook-import"},
    },
}
SCALED: Values = merged(WHOLE, {"server": {"autoscaling": {"enabled": True}}})
SMALL: Values = {"image": {"repository": "images.example.com/factbook"}}
# On SQLite, with all that PostgreSQL needs.
READY: Values = merged(SMALL, {one: WHOLE[one] for one in ("tokenKey", "publicUrl")}) | {
    "database": {"existingSecret": "factbook"},
}
BASES = {"whole": WHOLE, "scaled": SCALED, "small": SMALL, "ready": READY}

_PEER = {"namespaceSelector": {"matchLabels": {"name": "ingress"}}}
# What a value is changed to, by the last part of its path; others follow from the schema.
SAMPLES: dict[str, Any] = {
    "digest": DIGEST,
    "imagePullSecrets": [{"name": "another"}],
    "size": "20Gi",
    "interval": "1m",
    "publicUrl": "https://another.example.com",
    "push": "https://another.example.com",
    "host": "another.example.com",
    "settings": {"trusted_proxies": "10.0.0.0/8", "token_rate": 50, "traces": True},
    "schedule": "9 3 * * *",
    "resources": {"limits": {"memory": "3Gi"}},
    "extraEnv": [{"name": "FACTBOOK_LOG_LEVEL", "value": "debug"}],
    "extraEnvFrom": [{"secretRef": {"name": "integrations"}}],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "tmp", "mountPath": "/ca"}],
    "extraContainers": [{"name": "proxy", "image": "proxy:1"}],
    "extraInitContainers": [{"name": "wait", "image": "wait:1"}],
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "from": [_PEER],
    "egress": [{"to": [_PEER], "ports": [{"port": 443}]}],
}


def others(path: str, part: Values) -> Iterator[Any]:
    """Values of which at least one differs from that of any base."""
    name = path.rpartition(".")[2]
    if name in SAMPLES:
        yield SAMPLES[name]
    elif "enum" in part:
        yield from part["enum"]
    elif part["type"] == "boolean":
        yield from (False, True)
    elif part["type"] == "integer":
        yield from (part["minimum"], part["maximum"])
    elif part["type"] == "object":
        yield {"example.com/team": "core"}
    else:
        yield "another"


class Rendered:
    """Helm's answer to values: documents, or a refusal."""

    def __init__(self, answer: Values) -> None:
        self.refused: str = answer.get("refused", "")
        self.documents: list[Values] = answer.get("documents", [])
        self.problems: list[str] = answer.get("problems", [])

    def all(self, kind: str) -> list[Values]:
        """The documents of a kind."""
        return [one for one in self.documents if one["kind"] == kind]

    def one(self, kind: str) -> Values:
        """The only document of a kind."""
        [found] = self.all(kind)
        return found

    @cached_property
    def pods(self) -> list[Values]:
        """The specifications of all pods."""
        return [*_pods(self.documents)]

    def containers(self) -> Iterator[Values]:
        """The containers of this product."""
        for pod in self.pods:
            yield from (one for one in pod["containers"] if "factbook" in one["image"])


def _pods(part: Any) -> Iterator[Values]:
    if isinstance(part, dict):
        if "containers" in part:
            yield part
        for below in part.values():
            yield from _pods(below)
    elif isinstance(part, list):
        for below in part:
            yield from _pods(below)


class Helm:
    """Helm and the schemas, in an environment that has both."""

    def __init__(self, python: Path) -> None:
        self._python = python

    def ask(self, values: list[Values]) -> Values:
        """The answers to values, the versions of the schemas, and advice of `helm lint`."""
        done = subprocess.run(
            [self._python, PROGRAM, CHART],
            input=json.dumps(values),
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: Values = json.loads(done.stdout)
        return found

    def render(self, *values: Values) -> list[Rendered]:
        """What the chart makes of each of the values."""
        return [Rendered(one) for one in self.ask([*values])["answers"]]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm."""
    home = tmp_path_factory.mktemp("helm")
    python = home / "bin" / "python"
    install: list[str | Path] = ["pip", "install", "--python", python, *PACKAGES]
    for arguments in (["venv", home], install):
        subprocess.run([UV, "--quiet", *arguments], env=clean_environment(), cwd=home, check=True)
    return Helm(python)


@pytest.fixture(scope="module")
def asked(helm: Helm) -> Values:
    """The answers to all bases."""
    return helm.ask([*BASES.values()])


@pytest.fixture(scope="module")
def bases(asked: Values) -> dict[str, Rendered]:
    """What the chart makes of values that have everything, and of almost none."""
    return dict(zip(BASES, map(Rendered, asked["answers"]), strict=True))


@pytest.mark.spec("deploy.chart-is-valid")
def test_the_chart_has_no_advice_against_it_and_is_valid_from_old_to_new(
    asked: Values, bases: dict[str, Rendered]
) -> None:
    assert asked["lint"] == []
    assert asked["versions"][0] == "1.27"
    assert asked["versions"][1] > "1.35"
    for answer in bases.values():
        assert answer.refused == ""
        assert answer.problems == []


def test_with_everything_on_there_is_an_object_of_each_kind(bases: dict[str, Rendered]) -> None:
    kinds = sorted(one["kind"] for one in bases["scaled"].documents)
    assert kinds == sorted(
        [
            *("ClusterRole", "ClusterRoleBinding", "CronJob", "Deployment", "Deployment"),
            *("HorizontalPodAutoscaler", "Ingress", "Job", "NetworkPolicy", "PodDisruptionBudget"),
            *("PrometheusRule", "Service", "ServiceAccount", "ServiceAccount", "ServiceMonitor"),
        ]
    )
    small = sorted(one["kind"] for one in bases["small"].documents)
    assert small == [
        *("Deployment", "NetworkPolicy", "PersistentVolumeClaim", "Service", "ServiceAccount"),
    ]


@pytest.mark.spec("deploy.chart-is-valid")
def test_every_value_changes_what_comes_out_and_it_stays_valid(
    helm: Helm, bases: dict[str, Rendered]
) -> None:
    cases = [
        (path, value, base)
        for path, part in leaves()
        for value in others(path, part)
        for base in BASES
    ]
    rendered = helm.render(*(merged(BASES[base], at(path, value)) for path, value, base in cases))
    changed = set()
    for (path, value, base), found in zip(cases, rendered, strict=True):
        assert found.problems == [], (path, value, base)
        if not found.refused and found.documents != bases[base].documents:
            changed.add(path)
    assert {path for path, _ in leaves()} - changed == set()


@pytest.mark.spec("deploy.chart-is-restrained")
def test_every_container_is_restrained(bases: dict[str, Rendered]) -> None:
    for found in bases.values():
        assert found.pods
        for pod in found.pods:
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        for one in found.containers():
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert one["resources"]["limits"]["memory"]


def test_no_pod_but_that_of_the_import_has_a_token_of_the_cluster(
    bases: dict[str, Rendered],
) -> None:
    for found in bases.values():
        for pod in found.pods:
            is_import = "kubernetes" in pod["containers"][0]["args"]
            assert pod.get("automountServiceAccountToken") is (None if is_import else False)


def test_every_command_is_taken_and_every_variable_is_a_setting(
    bases: dict[str, Rendered],
) -> None:
    commands = set()
    for found in bases.values():
        for one in found.containers():
            if one["args"][1] != "import":
                check_command(one["args"])
                names = {each["name"] for each in one["env"]} - {"FACTBOOK_CONFIG"}
                assert all(map(is_setting, names)), names
            commands.add(one["args"][1])
    assert commands == {"serve", "worker", "migrate", "import"}


def test_secrets_are_named_and_never_written(bases: dict[str, Rendered]) -> None:
    assert not any(found.all("Secret") for found in bases.values())
    for one in bases["whole"].containers():
        secret = {"FACTBOOK_DATABASE_URL", "FACTBOOK_TOKEN_KEY", "FACTBOOK_TOKEN"}
        for each in one["env"]:
            assert ("valueFrom" in each) is (each["name"] in secret)


def test_a_server_collects_where_no_worker_does(bases: dict[str, Rendered]) -> None:
    for base, collects in (("whole", "false"), ("small", "true")):
        server = next(one for one in bases[base].containers() if one["name"] == "server")
        assert {"name": "FACTBOOK_COLLECT", "value": collects} in server["env"]


def test_the_migration_runs_before_anything_that_needs_its_schema(
    bases: dict[str, Rendered],
) -> None:
    job = bases["whole"].one("Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert "serviceAccountName" not in job["spec"]["template"]["spec"]


def test_the_service_leads_to_the_server_and_to_nothing_else(bases: dict[str, Rendered]) -> None:
    found = bases["whole"]
    selector = found.one("Service")["spec"]["selector"].items()
    labels = {
        one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"].items()
        for one in (*found.all("Deployment"), found.one("Job"))
    }
    assert [name for name, given in labels.items() if selector <= given] == ["fb-factbook-server"]
    job = found.one("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    assert not selector <= job.items()


def test_the_import_is_that_of_the_manifest(bases: dict[str, Rendered]) -> None:
    manifest = {
        one["kind"]: one
        for one in yaml.safe_load_all((DEPLOY / "kubernetes" / "import.yml").read_text())
    }
    found = bases["whole"]
    assert found.one("ClusterRole")["rules"] == manifest["ClusterRole"]["rules"]
    ours, theirs = found.one("CronJob")["spec"], manifest["CronJob"]["spec"]
    [mine], [its] = (
        one["jobTemplate"]["spec"]["template"]["spec"]["containers"] for one in (ours, theirs)
    )
    for name in ("args", "env", "resources", "securityContext"):
        assert mine[name] == its[name]
    for one in (ours, theirs):
        pod = one["jobTemplate"]["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsUser"] == 10001
        assert (one["concurrencyPolicy"], pod["restartPolicy"]) == ("Forbid", "Never")
    [subject] = found.one("ClusterRoleBinding")["subjects"]
    accounts = {one["metadata"]["name"] for one in found.all("ServiceAccount")}
    assert subject["name"] in accounts - {"fb-factbook"}
    assert subject["namespace"] == "catalog"


def test_the_rules_of_prometheus_are_the_alerts_about_the_job_that_is_scraped(
    bases: dict[str, Rendered],
) -> None:
    alerts = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    assert bases["whole"].one("PrometheusRule")["spec"] == alerts
    [endpoint] = bases["whole"].one("ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "factbook"}]
    assert (endpoint["port"], endpoint["path"]) == ("http", "/metrics")


POSTGRESQL: Values = {"database": WHOLE["database"], "tokenKey": WHOLE["tokenKey"]}


# Values that do not go together, and the name that the refusal has.
REFUSED: list[tuple[Values, str]] = [
    ({"server": {"replicas": 2}}, "replicas"),
    ({"worker": {"replicas": 1}}, "replicas"),
    ({"server": {"autoscaling": {"enabled": True}}}, "enabled"),
    ({"database": {"kind": "postgresql"}}, "existingSecret"),
    ({"database": WHOLE["database"]}, "existingSecret"),
    ({"ingress": {"enabled": True}}, "host"),
    ({"ingress": {"enabled": True, "host": "factbook.example.com"}}, "publicUrl"),
    ({"kubernetesImport": {"enabled": True}}, "cluster"),
    ({"publicUrl": "factbook.example.com"}, "publicUrl"),
    ({"settings": {"token_key": None}}, "settings"),
    ({"server": {"terminationGracePeriodSeconds": 10}}, "terminationGracePeriodSeconds"),
    ({"replicas": 3}, "replicas"),
    ({"image": {"digest": "sha256:1"}}, "digest"),
    (merged(POSTGRESQL, {"server": {"replicas": "two"}}), "replicas"),
]


@pytest.fixture(scope="module")
def refusals(helm: Helm) -> list[Rendered]:
    """What Helm answers to each of them, by one process."""
    return helm.render(*(values for values, _ in REFUSED))


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_values_that_do_not_go_together_are_refused_with_their_names(
    refusals: list[Rendered], number: int
) -> None:
    assert REFUSED[number][1] in refusals[number].refused
    assert refusals[number].documents == []
