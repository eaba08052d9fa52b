"""The workflows of this repository, read, and run in clean clones without what publishes."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.deploy.test_deploy import ROOT
from tests.processes import clean_environment

WORKFLOWS: Final = ROOT / ".github" / "workflows"
# What reaches others. A pushed branch does not: a clone pushes to what it was cloned from.
PUBLISHING: Final = ("cosign sign", "cosign attest", "helm push", "gh release create")
_EXPRESSION = re.compile(r"\$\{\{ *(.+?) *\}\}")
Step = dict[str, Any]
Job = dict[str, Any]


def workflow(name: str) -> dict[str, Any]:
    """A workflow by the name of its file; YAML 1.1 makes `on` a truth, which it is not here."""
    found: dict[Any, Any] = yaml.safe_load((WORKFLOWS / f"{name}.yml").read_text())
    return {"on" if key is True else str(key): value for key, value in found.items()}


def names() -> list[str]:
    """The names of all workflows."""
    return sorted(path.stem for path in WORKFLOWS.iterdir())


def every_job() -> list[tuple[str, str, Job]]:
    """Each job with the name of its workflow and its own."""
    return [
        (name, job, content) for name in names() for job, content in workflow(name)["jobs"].items()
    ]


def every_step() -> list[tuple[str, str, Step]]:
    """Each step with the names of its workflow and its job."""
    return [
        (name, job, step) for name, job, content in every_job() for step in content.get("steps", ())
    ]


def publishes(step: Step) -> bool:
    """Tell whether a step reaches others."""
    return any(words in step.get("run", "") for words in PUBLISHING)


class Done(NamedTuple):
    """A step that was run."""

    workflow: str
    job: str
    name: str
    code: int
    output: str


class Runs:
    """Runs of workflows on a repository: each job in a clone of its own, as far as it is local.

    Actions of others are left out, but for those that bring the repository or pass files on.
    """

    def __init__(self, origin: Path, folder: Path, programs: Path, *, seconds: float) -> None:
        """A step may take so many seconds."""
        self._origin, self._folder, self._programs = origin, folder, programs
        self._seconds = seconds
        folder.mkdir(exist_ok=True)
        self.artifacts = folder / "artifacts"
        self.outputs: dict[str, dict[str, str]] = {}
        self.done: list[Done] = []
        self.left: list[Left] = []

    def run(self, name: str, ref: str, **inputs: str) -> None:
        """Run a workflow on a branch or tag, until a step fails."""
        waiting = dict(workflow(name)["jobs"])
        ended: set[str] = set()
        while ready := [job for job, one in waiting.items() if ended >= set(one.get("needs", ()))]:
            for job in ready:
                self._run_job(name, job, waiting.pop(job), ref, inputs)
                ended.add(job)
        assert not waiting, f"{sorted(waiting)} wait for jobs that there are not"

    def _run_job(self, name: str, job: str, content: Job, ref: str, inputs: dict[str, str]) -> None:
        context = {f"inputs.{key}": value for key, value in inputs.items()} | {
            f"needs.{key}": value for key, value in self.outputs.items()
        }
        if called := content.get("uses"):
            below = Path(called).stem
            if below != "ci":  # which is what this is run by
                given = {key: self._filled(one, context) for key, one in content["with"].items()}
                self.run(below, ref, **given)
            return
        workspace = self._folder / f"{name}-{job}-{len(self.done)}"
        workspace.mkdir()
        for step in content["steps"]:
            self._take(Place(name, job, ref, workspace), step, context)
        given = content.get("outputs", {})
        self.outputs[job] = {key: self._filled(one, context) for key, one in given.items()}

    def _take(self, place: "Place", step: Step, context: dict[str, Any]) -> None:
        """Take one step of a job."""
        settings = {key: self._filled(one, context) for key, one in step.get("with", {}).items()}
        if "run" in step:
            if publishes(step):
                self.left.append(Left(place, step["run"]))
            else:
                self._run_step(place, step, context)
            return
        action = step["uses"].partition("@")[0]
        kept = self.artifacts / settings.get("name", "")
        if action == "actions/checkout":
            self._clone(place, whole=settings.get("fetch-depth") == "0")
        elif action == "actions/upload-artifact":
            kept.mkdir(parents=True)
            for path in _content(place.workspace / settings["path"]):
                shutil.copy(path, kept)
        elif action == "actions/download-artifact":
            target = place.workspace / settings.get("path", ".")
            shutil.copytree(kept, target, dirs_exist_ok=True)

    def _clone(self, place: "Place", *, whole: bool) -> None:
        extent = [] if whole else ["--depth", "1"]
        origin = f"file://{self._origin}"
        subprocess.run(
            ["git", "clone", "--quiet", *extent, "--branch", place.ref, origin, place.workspace],
            env=self._environment(place),
            capture_output=True,
            check=True,
        )

    def _run_step(self, place: "Place", step: Step, context: dict[str, Any]) -> None:
        written = self._folder / "output"
        written.write_text("")
        variables = {key: self._filled(one, context) for key, one in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=place.workspace,
            env=self._environment(place) | {"GITHUB_OUTPUT": str(written)} | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self._seconds,
            check=False,
        )
        name = str(step["name"])
        self.done.append(Done(place.workflow, place.job, name, done.returncode, done.stdout))
        assert done.returncode == 0, f"{place.workflow}, {name}: {done.stdout[-3000:]}"
        told = dict(line.split("=", 1) for line in written.read_text().splitlines())
        context[f"steps.{step.get('id', '')}"] = told

    def _environment(self, place: "Place") -> dict[str, str]:
        """Variables of a machine that has a Python and nothing of the one that tests this."""
        ours = ("PYTHON", "VIRTUAL_ENV", "PYTEST", "GIT_", "MAKE")
        kept = {key: one for key, one in clean_environment().items() if not key.startswith(ours)}
        path = [str(self._programs), str(Path(sys.base_prefix) / "bin"), os.environ["PATH"]]
        return kept | {
            "PATH": ":".join(path),
            "HOME": str(self._folder),
            "GITHUB_ACTIONS": "true",
            "GITHUB_REF_NAME": place.ref,
            "GITHUB_REPOSITORY": "Acme/Factbook",
            "GITHUB_SERVER_URL": "https://github.com",
            "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")),
        }

    def _filled(self, value: object, context: dict[str, Any]) -> str:
        """A value with its expressions replaced by what they name."""
        return _EXPRESSION.sub(lambda match: _meaning(match[1], context), str(value))


class Place(NamedTuple):
    """A job that is run, and where."""

    workflow: str
    job: str
    ref: str
    workspace: Path


class Left(NamedTuple):
    """A step that was left out, because it publishes."""

    place: Place
    run: str


def _meaning(expression: str, context: dict[str, Any]) -> str:
    """The first of several alternatives that says anything."""
    for term in expression.split(" || "):
        if term.startswith("'"):
            return term.strip("'")
        group, _, name = term.rpartition(".outputs.")
        found = context.get(group, {}).get(name) if group else context.get(term)
        if found:
            return str(found)
    return ""


def _content(path: Path) -> Iterator[Path]:
    """The files of a folder, or the one file."""
    yield from path.iterdir() if path.is_dir() else [path]
