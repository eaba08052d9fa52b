"""Adding an integration to the package: its folder, and one line outside it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import factbook
from factbook.cli.source_plans import integration_scaffold

ROW = '    VendorSummary("acme", "Acme", "Open items of projects.", ("token",)),\n'
USE = """
from factbook.integrations import configure_integrations, find_vendor
from factbook.web import data_sources as page

[integration] = configure_integrations({"acme": {"default": {"token": "a_token_of_tests"}}})
print(find_vendor("acme").title, integration.source.id, [one.brings for one in page.VENDORS][-1])
"""


@pytest.mark.slow
def test_a_folder_and_one_line_outside_it_are_an_integration(tmp_path: Path) -> None:
    package = tmp_path / "factbook"
    shutil.copytree(
        Path(factbook.__file__).parent, package, ignore=shutil.ignore_patterns("documentation")
    )
    folder = package / "integrations" / "acme"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        integration_scaffold("acme")["src/factbook_acme/__init__.py"]
    )
    vendors = package / "integrations" / "vendors.py"
    text = vendors.read_text()
    assert text.endswith(")\n")
    vendors.write_text(text[:-2] + ROW + ")\n")
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout == "Acme acme Open items of projects.\n", done.stderr
