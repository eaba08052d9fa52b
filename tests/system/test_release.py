"""A release as the workflows make it, from a clean clone, without what reaches others."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.metadata import Metadata

from tests import tree
from tests.deploy.test_deploy import ROOT
from tests.deploy.workflow_steps import WORKFLOWS, Runs, every_step, names, publishes
from tests.processes import UV, clean_environment
from tests.system.test_chart import PACKAGES as HELM

pytestmark = [pytest.mark.system, pytest.mark.timeout(3000)]

# Of a step of a workflow, which may install packages and build the image.
STEP_SECONDS = 600
VERSION = "9.8.7"
PATCH = "9.8.6"
PLATFORMS = ("amd64", "arm64")
LINTERS = ("zizmor==1.32.0", "check-jsonschema==0.39.0")
COMMITTER = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")


def git(folder: Path, *words: str | Path) -> str:
    """What Git prints in a folder."""
    done = subprocess.run(
        ["git", *COMMITTER, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def environment(home: Path, *packages: str) -> Path:
    """The folder of the programs of a new environment with these packages."""
    install: list[str | Path] = ["pip", "install", "--python", home / "bin" / "python", *packages]
    for words in (["venv", home], install):
        subprocess.run([UV, "--quiet", *words], env=clean_environment(), check=True)
    return home / "bin"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `helm` and a `docker`, which GitHub's machines have."""
    folder = tmp_path_factory.mktemp("programs")
    python = environment(tmp_path_factory.mktemp("helm"), *HELM) / "python"
    given = {"helm": (python, "helm_package.py"), "docker": (sys.executable, "image_export.py")}
    for name, (interpreter, script) in given.items():
        words = shlex.join([str(interpreter), str(Path(__file__).with_name(script))])
        (folder / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files of this one, prepared for a release that is not tagged yet."""
    folder = tmp_path_factory.mktemp("origin")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for path in tree.files(ROOT):
        if path.is_file() or path.is_symlink():
            copy = folder / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy, follow_symlinks=False)
    prepare = [sys.executable, "scripts/release.py", "prepare", VERSION, "--date", "2026-12-01"]
    for words in (["add", "--all"], ["commit", "--quiet", "--message", "All files"]):
        git(folder, *words)
    subprocess.run(prepare, cwd=folder, check=True, capture_output=True)
    git(folder, "commit", "--quiet", "--all", "--message", f"Release {VERSION}")
    return folder


@pytest.fixture(scope="module")
def released(
    origin: Path, programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """Everything that can be run here of a push to main, and of a release behind it."""
    main = Runs(origin, tmp_path_factory.mktemp("main"), programs, seconds=STEP_SECONDS)
    main.run("docs", "main")
    git(origin, "tag", f"v{VERSION}")
    release = Runs(origin, tmp_path_factory.mktemp("release"), programs, seconds=STEP_SECONDS)
    release.run("release", f"v{VERSION}")
    release.done[:0] = main.done
    yield release
    shutil.rmtree(main.artifacts.parent)


@pytest.mark.spec("releases.dry-run")
def test_every_step_that_reaches_nobody_else_was_run_in_a_clean_clone(released: Runs) -> None:
    wanted = {
        (name, job, step["name"])
        for name, job, step in every_step()
        if "run" in step and name != "ci" and not publishes(step)
    }
    assert {(one.workflow, one.job, one.name) for one in released.done} == wanted
    assert {one.code for one in released.done} == {0}


def test_wheel_and_source_distribution_have_the_version_and_sound_metadata(
    released: Runs,
) -> None:
    packages = released.artifacts / "packages"
    wheel, source = (
        packages / f"factbook-{VERSION}{end}" for end in ("-py3-none-any.whl", ".tar.gz")
    )
    assert sorted(packages.iterdir()) == [wheel, source]
    with zipfile.ZipFile(wheel) as archive:
        written = archive.read(f"factbook-{VERSION}.dist-info/METADATA")
        code = archive.read("factbook/__init__.py").decode()
    with tarfile.open(source) as archive:
        member = archive.extractfile(f"factbook-{VERSION}/PKG-INFO")
        assert member is not None
        assert member.read() == written
    metadata = Metadata.from_email(written, validate=True)
    assert str(metadata.version) == VERSION
    assert metadata.description_content_type == "text/markdown"
    assert metadata.license_expression == "Apache-2.0"
    assert f'__version__ = "{VERSION}"' in code


def test_the_chart_runs_the_image_of_its_version(released: Runs) -> None:
    [chart] = (released.artifacts / "chart").iterdir()
    assert chart.name == f"factbook-{VERSION}.tgz"
    with tarfile.open(chart) as archive:
        member = archive.extractfile("factbook/Chart.yaml")
        alerts = archive.getmember("factbook/files/alerts.yml")
        assert member is not None
        told = yaml.safe_load(member.read())
    assert told["version"] == told["appVersion"] == VERSION
    assert alerts.isfile()
    assert alerts.size > 0


@pytest.mark.spec("releases.bill-of-materials")
def test_the_bill_of_each_platform_is_valid_and_of_the_image_for_it(released: Runs) -> None:
    bills = released.artifacts / "bills"
    names = {f"factbook-{VERSION}-{platform}.cdx.json": platform for platform in PLATFORMS}
    assert {path.name for path in bills.iterdir()} == names.keys()
    for name, platform in names.items():
        bill = (bills / name).read_text()
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
        read = json.loads(bill)
        assert read["metadata"]["component"]["name"] == "factbook"
        [git] = [one["purl"] for one in read["components"] if one["name"] == "git"]
        assert git == f"pkg:deb/debian/git@2.39.5?arch={platform}"


def test_the_notes_are_what_was_unreleased_with_links_to_the_tag(released: Runs) -> None:
    text = (released.artifacts / "notes" / "notes.md").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text().partition("## [Unreleased]\n")[2]
    assert len(text.splitlines()) == len(changelog.partition("\n## ")[0].strip().splitlines())
    assert f"(https://github.com/Acme/Factbook/blob/v{VERSION}/docs/" in text
    assert "](docs/" not in text


def test_what_is_published_lies_where_the_step_that_publishes_it_looks(released: Runs) -> None:
    named = {
        word.strip('"').replace("$VERSION", VERSION): one.place.workspace
        for one in released.left
        for word in one.run.split()
        if re.match(r'"?(artifacts|dist)/', word)
    }
    found = {path.name for pattern, workspace in named.items() for path in workspace.glob(pattern)}
    assert found == {
        "notes.md",
        f"factbook-{VERSION}-py3-none-any.whl",
        f"factbook-{VERSION}.tar.gz",
        f"factbook-{VERSION}.tgz",
        *(f"factbook-{VERSION}-{platform}.cdx.json" for platform in PLATFORMS),
    }
    assert all([*workspace.glob(pattern)] for pattern, workspace in named.items())
    assert len(named) == 5 + len(PLATFORMS)


def listed(folder: Path) -> list[dict[str, object]]:
    """The versions that the menu of the site has."""
    found: list[dict[str, object]] = json.loads(git(folder, "show", "gh-pages:versions.json"))
    return found


def test_the_site_has_a_folder_for_main_and_one_for_the_release(
    released: Runs, origin: Path
) -> None:
    assert [one.output for one in released.done if one.name == "Push the branch"]
    files = git(origin, "ls-tree", "-r", "--name-only", "gh-pages").splitlines()
    for folder in ("main", VERSION):
        assert f"{folder}/index.html" in files
        assert f"{folder}/how-to/deploy/index.html" in files
    assert [(one["version"], one["aliases"]) for one in listed(origin)] == [
        ("main", []),
        (VERSION, ["latest"]),
    ]
    told = git(origin, "log", "--reverse", "--format=%s", "gh-pages")
    assert re.findall("Set default version to (\\S+)", told) == ["main", "latest"]
    assert "url=latest/" in git(origin, "show", "gh-pages:index.html")


def test_the_documentation_of_an_older_release_does_not_become_the_latest(
    released: Runs,
) -> None:
    [clone] = released.artifacts.parent.glob("docs-build-*")
    subprocess.run(
        [".venv/bin/python", "scripts/versioned_site.py", PATCH],
        cwd=clone,
        env=clean_environment(),
        check=True,
    )
    assert [one["version"] for one in listed(clone)] == ["main", VERSION, PATCH]
    assert [one["version"] for one in listed(clone) if one["aliases"]] == [VERSION]
    assert "url=latest/" in git(clone, "show", "gh-pages:index.html")


def test_the_workflows_are_valid_and_have_no_known_weakness(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    programs = environment(tmp_path_factory.mktemp("linters"), *LINTERS)
    files = [WORKFLOWS / f"{name}.yml" for name in names()]
    commands: list[list[str | Path]] = [
        [programs / "check-jsonschema", "--builtin-schema", "vendor.github-workflows"],
        [programs / "zizmor", "--offline", "--no-config", "--min-severity", "medium"],
    ]
    for words in commands:
        done = subprocess.run([*words, *files], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
