"""What images are built from and with: nothing that could be exchanged without being noticed."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.supply.test_locks import LOCKS

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
SYSTEM = ROOT / "scripts" / "install-system"
_PINNED = re.compile(r"[a-z]+:[0-9][\w.-]+@sha256:[0-9a-f]{64}")


def instructions(file: Path) -> list[str]:
    """The commands of a Dockerfile or a Makefile, each on one line."""
    text = re.sub(r"(?m)^\s*#.*\n", "", file.read_text())
    return [" ".join(line.split()) for line in re.sub(r"\\\n", " ", text).splitlines()]


def commands(file: Path, word: str) -> list[str]:
    """The single commands that run pip, or what is called so, with this word."""
    found = [
        part
        for line in instructions(file)
        for part in line.removeprefix("RUN ").split(" && ")
        if re.search(rf"\bpip {word}\b", part)
    ]
    assert found
    return found


@pytest.mark.spec("security.builds-are-pinned")
def test_every_stage_begins_with_the_one_base_whose_digest_is_given() -> None:
    lines = instructions(DOCKERFILE)
    [base] = [line.removeprefix("ARG BASE=") for line in lines if line.startswith("ARG BASE=")]
    assert _PINNED.fullmatch(base)
    stages = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert stages == ["${BASE}", "${BASE}"]


def test_the_image_has_a_python_that_the_service_runs_on() -> None:
    match = re.search(r"ARG BASE=python:3\.(\d+)\.\d+-", DOCKERFILE.read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert match
    assert int(match[1]) >= 13
    assert project["requires-python"] == ">=3.11"


@pytest.mark.spec("deploy.platforms")
def test_nothing_of_the_image_is_for_one_processor_alone() -> None:
    locks = [lock for lock in LOCKS if lock.stem not in {"dev", "installer"}]
    manifests = sorted((ROOT / "deploy").rglob("*.y*ml"))
    assert locks
    assert manifests
    # That each locked package has wheels for both is shown in tests/system/test_platforms.py.
    named = r"--platform|platform_machine|x86_64|aarch64|amd64|arm64|kubernetes\.io/arch"
    files = [DOCKERFILE, *locks, *manifests]
    assert {file: found for file in files if (found := re.findall(named, file.read_text()))} == {}


@pytest.mark.spec("security.builds-are-pinned")
@pytest.mark.parametrize(
    "file", [DOCKERFILE, ROOT / "Makefile", SYSTEM], ids=lambda path: path.name
)
def test_whatever_is_installed_has_a_hash_or_was_built_here(file: Path) -> None:
    for command in commands(file, "(?:install|sync)"):
        own = "dist/*.whl" in command or command.endswith("--editable .")
        assert ("--no-deps" in command) if own else ("--require-hashes" in command), command
        assert ".lock" in command or '"$lock"' in command or own, command


@pytest.mark.spec("security.builds-are-pinned")
def test_wheels_are_built_with_what_is_locked() -> None:
    for command in commands(DOCKERFILE, "wheel"):
        assert "--no-build-isolation" in command
        assert command.startswith("/opt/build/bin/pip")
    makefile = (ROOT / "Makefile").read_text()
    assert re.findall(r"-m build .*", makefile) == ["-m build --no-isolation"]
    assert "--no-build-isolation --editable ." in makefile


def test_packages_of_others_are_never_built() -> None:
    assert "PIP_ONLY_BINARY=:all:" in DOCKERFILE.read_text()
    for line in instructions(ROOT / "Makefile") + instructions(SYSTEM):
        assert "--require-hashes" not in line or "--only-binary :all:" in line


def test_the_image_can_be_built_with_each_lock_that_it_copies() -> None:
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    for name in ("build", "runtime", "workers", "traces"):
        assert f"!requirements/{name}.lock" in kept
        assert name in {lock.stem for lock in LOCKS}


@pytest.mark.spec("security.builds-are-pinned")
@pytest.mark.parametrize(
    "file", sorted((ROOT / "deploy").glob("compose*.yml")), ids=lambda p: p.name
)
def test_images_of_others_are_given_by_digest(file: Path) -> None:
    for service in yaml.safe_load(file.read_text())["services"].values():
        assert "build" in service or _PINNED.fullmatch(service["image"]), service["image"]
