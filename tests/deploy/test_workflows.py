"""The workflows may do little, run what others cannot change, and give nothing to forks."""

import os
import re

import pytest

from tests.deploy.test_deploy import ROOT
from tests.deploy.workflow_steps import (
    WORKFLOWS,
    every_job,
    every_step,
    names,
    publishes,
    workflow,
)

_PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
# Whatever may be written, by the jobs that publish it.
WRITES = {
    ("docs", "publish"): {"contents"},
    ("release", "image"): {"packages", "id-token"},
    ("release", "attestation"): {"packages", "id-token"},
    ("release", "chart"): {"packages", "id-token"},
    ("release", "pypi"): {"id-token"},
    ("release", "release"): {"contents"},
    ("release", "documentation"): {"contents"},
}
THIN = ("python3 scripts/", "make ", "git ", ".ci/run", "cosign ", "helm push ", "gh release ")
JOBS = list(every_job())
RUNS = {f"{name}-{job}-{step['name']}": step for name, job, step in every_step() if "run" in step}


def test_each_job_states_its_permissions_and_writes_only_what_it_publishes(
    subtests: pytest.Subtests,
) -> None:
    assert JOBS
    for name, job, content in JOBS:
        with subtests.test(name=name, job=job):
            granted = content["permissions"]
            assert isinstance(granted, dict)
            assert set(granted.values()) <= {"read", "write"}
            written = {scope for scope, right in granted.items() if right == "write"}
            assert written == WRITES.get((name, job), set())


def test_a_job_that_states_nothing_would_have_no_permission(subtests: pytest.Subtests) -> None:
    assert names()
    for name in names():
        with subtests.test(name=name):
            assert workflow(name)["permissions"] == {}


def test_a_job_that_may_write_installs_no_package(subtests: pytest.Subtests) -> None:
    assert JOBS
    for name, job, content in JOBS:
        with subtests.test(name=name, job=job):
            if (name, job) in WRITES:
                ran = [step.get("run", "") for step in content.get("steps", ())]
                assert not [
                    one for one in ran if re.search(r"\bmake (?!chart\b)|\bpip\b|\bnpm\b", one)
                ]


def test_every_action_of_others_is_given_by_commit_with_its_version(
    subtests: pytest.Subtests,
) -> None:
    assert names()
    for name in names():
        with subtests.test(name=name):
            lines = [line.strip() for line in (WORKFLOWS / f"{name}.yml").read_text().splitlines()]
            used = [line.removeprefix("- ") for line in lines if re.match(r"(- )?uses:", line)]
            assert used
            for line in used:
                assert _PINNED.match(line) or line.startswith("uses: ./.github/workflows/"), line


@pytest.mark.spec("releases.no-stored-secret")
def test_no_workflow_has_a_secret_or_gives_a_fork_more_than_reading(
    subtests: pytest.Subtests,
) -> None:
    assert names()
    for name in names():
        with subtests.test(name=name):
            text = (WORKFLOWS / f"{name}.yml").read_text()
            assert "secrets" not in re.sub(r"(?m)#.*$", "", text)
            triggers = set(workflow(name)["on"])
            assert triggers <= {"push", "pull_request", "workflow_call"}
            if "pull_request" in triggers:
                for job, content in workflow(name)["jobs"].items():
                    assert content["permissions"] == {"contents": "read"}, job


def test_a_step_is_a_short_call_without_expressions_in_it(subtests: pytest.Subtests) -> None:
    assert RUNS
    for label, step in RUNS.items():
        with subtests.test(label):
            assert "${{" not in step["run"]
            assert step["run"].startswith(THIN)
            assert len(step["run"].splitlines()) <= 2
            assert publishes(step) == step["run"].startswith(("cosign", "helm", "gh"))


def test_only_a_job_that_pushes_keeps_the_token_of_its_checkout(subtests: pytest.Subtests) -> None:
    assert JOBS
    for name, job, content in JOBS:
        with subtests.test(name=name, job=job):
            steps = content.get("steps", [])
            pushes = any("git push" in step.get("run", "") for step in steps)
            for step in steps:
                if step.get("uses", "").startswith("actions/checkout@"):
                    keeps = step.get("with", {}).get("persist-credentials", True)
                    assert keeps is pushes, (name, job)


def test_main_runs_every_test_and_a_pull_request_those_of_its_change() -> None:
    found = workflow("ci")
    assert found["on"]["push"] == {"branches": ["main"]}
    assert found["on"]["pull_request"] is None
    [job] = found["jobs"].values()
    assert {step["run"]: step["if"] for step in job["steps"] if "run" in step} == {
        ".ci/run": "github.event_name == 'pull_request'",
        ".ci/run full": "github.event_name != 'pull_request'",
    }
    # Without the history nothing is known about the last full run.
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_a_release_is_tested_before_anything_is_published_and_pypi_comes_late() -> None:
    found = workflow("release")
    assert found["on"] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
    jobs = found["jobs"]
    assert jobs["test"]["uses"] == "./.github/workflows/ci.yml"
    assert {"check", "test", "build"} <= set(jobs["image"]["needs"])
    assert {"image", "chart", "attestation"} <= set(jobs["pypi"]["needs"])
    assert "pypi" in jobs["release"]["needs"]


def test_what_is_published_can_be_traced_to_this_workflow() -> None:
    jobs = workflow("release")["jobs"]
    [image] = [step["with"] for step in jobs["image"]["steps"] if step.get("id") == "image"]
    assert (image["sbom"], image["provenance"]) == (True, "mode=max")
    assert image["platforms"] == "linux/amd64,linux/arm64"
    for job in ("image", "chart"):
        signed = [step["run"] for step in jobs[job]["steps"] if "cosign" in step.get("run", "")]
        assert len(signed) == 1
        assert "@$DIGEST" in signed[0]
    [*_, upload] = jobs["pypi"]["steps"]
    assert upload["with"] == {"attestations": True}
    assert jobs["pypi"]["environment"]["name"] == "pypi"


@pytest.mark.spec("releases.bill-of-materials")
def test_the_bill_of_each_platform_is_of_the_image_and_attested_for_its_digest() -> None:
    jobs = workflow("release")["jobs"]
    assert jobs["image"]["outputs"] == {"digest": "${{ steps.image.outputs.digest }}"}
    [image] = [one["with"] for one in jobs["image"]["steps"] if one.get("id") == "image"]
    platforms = [one.removeprefix("linux/") for one in image["platforms"].split(",")]
    assert f"PLATFORMS := {' '.join(platforms)}\n" in (ROOT / "Makefile").read_text()
    read, *attested = [
        step for job in ("bills", "attestation") for step in jobs[job]["steps"] if "run" in step
    ]
    assert [step["run"].split()[-1] for step in (read, *attested)] == [
        'IMAGE="$IMAGE@$DIGEST"',
        *['"$IMAGE@$DIGEST"' for _ in platforms],
    ]
    for step, platform in zip(attested, platforms, strict=True):
        bill = f'"dist/factbook-$VERSION-{platform}.cdx.json"'
        assert f"cosign attest --yes --type cyclonedx --predicate {bill} " in step["run"]
    for step in (read, *attested):
        assert step["env"]["IMAGE"] == "${{ needs.check.outputs.image }}"
        assert step["env"]["DIGEST"] == "${{ needs.image.outputs.digest }}"


def test_all_that_is_published_has_the_version_that_was_checked() -> None:
    jobs = workflow("release")["jobs"]
    assert jobs["check"]["outputs"]["version"] == "${{ steps.release.outputs.version }}"
    [image] = [one["with"] for one in jobs["image"]["steps"] if one.get("id") == "image"]
    version = "${{ needs.check.outputs.version }}"
    assert image["tags"] == f"${{{{ needs.check.outputs.image }}}}:{version}"
    assert f"org.opencontainers.image.version={version}" in image["labels"].splitlines()
    assert jobs["documentation"]["with"]["version"] == version
    for name in ("attestation", "chart", "release"):
        told = {
            one["env"]["VERSION"] for one in jobs[name]["steps"] if "VERSION" in one.get("env", ())
        }
        assert told == {version}, name
    for name in jobs.keys() - {"check", "test"}:
        assert "check" in jobs[name]["needs"], name
