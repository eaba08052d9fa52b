"""The lock files, by which everything is installed."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
# What is installed to be tested against, in environments of its own; old versions, on purpose.
HOSTS = sorted((ROOT / "tests" / "contracts").glob("hosts-*.lock"))
_PIN = re.compile(r"^([a-z0-9-]+==[^ ;]+)", re.MULTILINE)


def pins(name: str) -> set[str]:
    return set(_PIN.findall((ROOT / "requirements" / f"{name}.lock").read_text()))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9-]", each)[0] for each in requirements}


def test_every_locked_package_has_a_hash_and_no_host(subtests: pytest.Subtests) -> None:
    assert LOCKS
    assert HOSTS
    for lock in LOCKS + HOSTS:
        with subtests.test(lock.stem):
            text = lock.read_text()
            packages = re.split(r"\n(?=\S)", re.sub(r"(?m)^\s*#.*\n?", "", text).strip())
            assert packages
            for package in packages:
                assert re.match(r"[a-z0-9-]+==", package), package
                assert re.search(r"--hash=sha256:[0-9a-f]{64}", package), package
            assert "://" not in text


@pytest.mark.spec("security.builds-are-pinned")
def test_what_is_tested_is_what_is_shipped() -> None:
    assert pins("runtime") < pins("workers") < pins("traces") <= pins("dev")
    assert pins("build") <= pins("dev")


@pytest.mark.spec("security.builds-are-pinned")
def test_the_runtime_holds_nothing_of_an_extra() -> None:
    extras = set().union(*map(names, project()["project"]["optional-dependencies"].values()))
    locked = {pin.partition("==")[0] for pin in pins("runtime")}
    assert names(project()["project"]["dependencies"]) <= locked
    assert not locked & extras
    assert not {name for name in locked if name.startswith(("opentelemetry", "sqlalchemy"))}


@pytest.mark.spec("security.builds-are-pinned")
def test_each_generation_of_hosts_is_locked() -> None:
    groups = project()["dependency-groups"]
    locked = {
        lock.stem: {pin.partition("==")[0] for pin in _PIN.findall(lock.read_text())}
        for lock in HOSTS
    }
    assert {name for name in groups if name.startswith("hosts-")} == locked.keys()
    for name, packages in locked.items():
        assert names(groups[name]) <= packages, name


@pytest.mark.spec("security.builds-are-pinned")
def test_what_builds_the_wheel_is_locked() -> None:
    locked = {pin.partition("==")[0] for pin in pins("build")}
    assert names(project()["build-system"]["requires"]) <= locked
