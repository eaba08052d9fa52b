"""The steps of the action and the jobs of the template, run as a pipeline runs them."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from tests.deploy.test_deploy import DEPLOY
from tests.processes import FACTBOOK

ACTION: Final = DEPLOY / "pipelines" / "github" / "action.yml"
TEMPLATE: Final = DEPLOY / "pipelines" / "gitlab.yml"
_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
Finished = subprocess.CompletedProcess[str]


def action() -> dict[str, Any]:
    """The action."""
    found: dict[str, Any] = yaml.safe_load(ACTION.read_text())
    return found


def jobs() -> dict[str, Any]:
    """The jobs of the template, with what they extend."""
    found: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text())
    return {
        name: {**found.get(job.get("extends", ""), {}), **job}
        for name, job in found.items()
        if "script" in job
    }


def run_action(folder: Path, inputs: dict[str, str], variables: dict[str, str]) -> list[Finished]:
    """Run each step of the action in a folder, until one fails."""
    given = {name: one.get("default", "") for name, one in action()["inputs"].items()} | inputs
    known = {f"inputs.{name}": value for name, value in given.items()}
    known["github.token"] = variables.get("JOB_TOKEN", "")
    done = []
    for step in action()["runs"]["steps"]:
        assert not _EXPRESSION.search(step["run"])
        told = {
            name: _EXPRESSION.sub(lambda match: known[match[1]], value)
            for name, value in step.get("env", {}).items()
        }
        here = {"GITHUB_ACTION_PATH": str(ACTION.parent), **variables, **told}
        done.append(_run(folder, step["run"], here))
        if done[-1].returncode:
            break
    return done


def run_job(folder: Path, name: str, variables: dict[str, str]) -> Finished:
    """Run the lines of a job of the template in a folder."""
    job = jobs()[name]
    lines = [*job["before_script"], *job["script"]]
    given = {key: str(value) for key, value in job.get("variables", {}).items()}
    return _run(folder, "\n".join(lines), given | variables)


def _run(folder: Path, script: str, variables: dict[str, str]) -> Finished:
    """Run lines of bash, with `factbook` in reach and no other variables of this process."""
    path = f"{FACTBOOK.parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        env={"PATH": path, "HOME": str(folder), **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
