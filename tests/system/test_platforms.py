"""The locked packages on each platform of the image: all as wheels, none to be compiled."""

import re
import subprocess
from email import message_from_string
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.test_deploy import ROOT
from tests.deploy.workflow_steps import workflow
from tests.processes import UV, clean_environment

pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]

# A platform of images: what uv calls it, and the processor in the tags of wheels.
PLATFORMS = {
    "linux/amd64": ("x86_64-unknown-linux-gnu", "x86_64"),
    "linux/arm64": ("aarch64-unknown-linux-gnu", "aarch64"),
}


def python_of_the_image() -> str:
    found = re.search(r"ARG BASE=python:(\d+\.\d+)\.", (ROOT / "Dockerfile").read_text())
    assert found
    return found[1]


def locked(name: str) -> set[str]:
    """The packages of a lock file that Linux takes."""
    lines = (ROOT / "requirements" / f"{name}.lock").read_text().splitlines()
    pins = [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"[a-z0-9]", line)]
    environment = {
        "sys_platform": "linux",
        "python_version": python_of_the_image(),
        "python_full_version": f"{python_of_the_image()}.0",
    }
    return {one.name for one in pins if not one.marker or one.marker.evaluate(environment)}


def told(folder: Path, file: str, field: str) -> set[str]:
    """The values of a field in the metadata of all packages in a folder."""
    files = [message_from_string(path.read_text()) for path in folder.glob(f"*.dist-info/{file}")]
    return {value for metadata in files for value in metadata.get_all(field, [])}


def test_these_are_the_platforms_of_a_release() -> None:
    steps = workflow("release")["jobs"]["image"]["steps"]
    [image] = [step["with"] for step in steps if step.get("id") == "image"]
    assert image["platforms"].split(",") == [*PLATFORMS]


@pytest.mark.spec("deploy.platforms")
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("lock", ["traces", "build"])
def test_every_locked_package_has_a_wheel_for_the_platform(
    tmp_path: Path, platform: str, lock: str
) -> None:
    # The other locks of the image are parts of that with traces (tests/supply/test_locks.py).
    target, processor = PLATFORMS[platform]
    given = ["--python-platform", target, "--python-version", python_of_the_image()]
    strict = ["--only-binary", ":all:", "--require-hashes", "--no-deps"]
    requirements = ["--requirement", str(ROOT / "requirements" / f"{lock}.lock")]
    done = subprocess.run(
        [UV, "--quiet", "pip", "install", "--target", tmp_path, *given, *strict, *requirements],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {canonicalize_name(one) for one in told(tmp_path, "METADATA", "Name")} == locked(lock)
    binary = {tag for tag in told(tmp_path, "WHEEL", "Tag") if not tag.endswith("-any")}
    assert all(tag.endswith(processor) for tag in binary), binary
    assert binary or lock == "build"
