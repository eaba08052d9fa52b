"""The wheel installs and runs outside the checkout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from factbook.web import help
from tests import processes
from tests.processes import UV

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

ROOT = Path(__file__).parent.parent.parent


def test_the_wheel_serves_from_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    home = tmp_path / "environment"
    install = ["pip", "install", "--python", str(home)]
    lock = str(ROOT / "requirements" / "runtime.lock")
    for words in (
        ["venv", "--python", sys.executable, str(home)],
        [*install, "--require-hashes", "--requirement", lock],
        [*install, "--no-deps", str(wheel)],
    ):
        subprocess.run(
            [UV, "--quiet", *words], env=processes.clean_environment(), cwd=tmp_path, check=True
        )

    monkeypatch.setattr(processes, "FACTBOOK", home / "bin" / "factbook")
    assert "PYTHONPATH" not in os.environ
    with processes.serving(f"sqlite:///{tmp_path / 'factbook.db'}", tmp_path) as server:
        server.environment["FACTBOOK_TOKEN"] = server.token()
        entity = (
            '{"apiVersion": "backstage.io/v1alpha1", "kind": "Resource",'
            ' "metadata": {"name": "Master Account"}, "spec": {"type": "account", "owner": "ops"}}'
        )
        server.command("push", "cloud", "-", stdin=entity)
        assert "resource:default/master account" in server.command("entities")
    read = (
        "from factbook.web import help as d; "
        "print(len(d.list_help_names()), d.render_help('pages'))"
    )
    done = subprocess.run(
        [home / "bin" / "python", "-c", read],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(
        f"{len(help.list_help_names())} DocumentationPage(title='The web interface'"
    )
