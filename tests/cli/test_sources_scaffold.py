"""The package of `factbook sources new --integration`: it works as it is, and its test passes."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from factbook import integrations
from tests.cli.conftest import Command

FILES = (
    "factbook-acme/README.md",
    "factbook-acme/pyproject.toml",
    "factbook-acme/src/factbook_acme/__init__.py",
    "factbook-acme/tests/test_acme.py",
)


@pytest.mark.slow
def test_the_package_is_written_and_its_test_passes(factbook: Command) -> None:
    answer = factbook("sources", "new", "--integration", "acme")
    assert (answer.exit_code, tuple(answer.stdout.split())) == (0, FILES)
    assert not [path for path in FILES if "NAME" in Path(path).read_text()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd="factbook-acme",
        env=os.environ | {"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


def test_its_entry_point_is_the_vendor_that_is_configured(
    factbook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert factbook("sources", "new", "acme", "--integration").exit_code == 0
    package = Path("factbook-acme").absolute()
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    info = Path("factbook_acme-0.1.0.dist-info").absolute()
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    [(name, value)] = project["entry-points"]["factbook.integrations"].items()
    (info / "entry_points.txt").write_text(f"[factbook.integrations]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(info.parent)
    monkeypatch.syspath_prepend(package / "src")
    [integration] = integrations.configure_integrations(
        {"acme": {"work": {"token": "a_token_of_tests"}}}
    )
    assert (integration.source.id, integration.source.title) == ("acme-work", "Acme (work)")
    assert "a_token_of_tests" not in repr(integration)


def test_an_id_that_no_vendor_of_ones_own_can_have_writes_nothing(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    for name in ["github", "Acme", "a/b", "../up", "", "1st"]:
        with subtests.test(name=name):
            assert factbook("sources", "new", "--integration", name).exit_code == 2
            assert list(Path().iterdir()) == []


def test_a_package_that_is_there_is_kept(factbook: Command) -> None:
    Path("factbook-acme").mkdir()
    Path("factbook-acme/README.md").write_text("mine")
    answer = factbook("sources", "new", "--integration", "acme")
    message = "Error: factbook-acme/README.md exists already.\n"
    assert (answer.exit_code, answer.stderr) == (2, message)
    assert Path("factbook-acme/README.md").read_text() == "mine"
