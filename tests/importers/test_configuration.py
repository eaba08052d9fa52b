"""Importers of the settings: what a table gives, and how a mistake in one is told."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import factbook
from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import ConfigurationError
from factbook.importers import registry
from factbook.importers.importer import Importer
from factbook.importers.registry import KINDS
from factbook.settings import table

TOKEN = "ghp_secret_of_tests"
ACCOUNTS = {"github": {"default": {"token": TOKEN}, "ghe": {"token": TOKEN, "host": "ghe.test"}}}

ROW = '    KindSummary("acme", "Acme", "Everything of Acme."),\n'
FOLDER = """
from factbook.importers.importer import ImporterKind, ImporterOptions
from factbook.importers.snapshot import Snapshot


async def read(reading, options, show):
    return Snapshot(())


IMPORTER = ImporterKind(id="acme", title="Acme", options=ImporterOptions, read=read)
"""
USE = """
from factbook.importers import registry
[one] = registry.configure_importers({"acme": {"default": {"every": "never"}}}, {})
print(one.id, one.title, one.every)
"""


def made(**values: Any) -> Importer:
    return registry.configure_importer(
        "github", "default", {"organizations": ["acme"]} | values, ACCOUNTS
    )


def test_a_table_is_an_importer_whose_id_names_its_sets() -> None:
    tables = {"github": {"default": {"organizations": ["a"]}, "ghe": {"organizations": ["b"]}}}
    first, second = registry.configure_importers(tables, ACCOUNTS)
    assert (first.id, first.title, first.every) == ("github", "GitHub", HOUR)
    assert (second.id, second.title) == ("github-ghe", "GitHub (ghe)")


def test_an_importer_shares_the_limits_of_the_account_that_it_reads_with() -> None:
    assert made().integration.credential == "github"
    assert made(integration="ghe").integration.credential == "github-ghe"
    assert made(integration="ghe").integration.base_url == "https://ghe.test"
    assert made(account={"token": TOKEN}).integration.credential == "importers.github.default"


def test_the_time_between_two_imports_is_a_number_and_a_unit() -> None:
    expected: dict[str, int | None] = {
        "30m": 30 * MINUTE,
        "6h": 6 * HOUR,
        "1d": DAY,
        "30d": 30 * DAY,
        "never": None,
    }
    assert {every: made(every=every).every for every in expected} == expected


def test_a_mistake_names_the_table_and_never_a_secret(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"every": "soon"}, "every has to be between 1m and 30d"),
        ({"every": "0m"}, "every has to be between 1m and 30d"),
        ({"every": "31d"}, "every has to be between 1m and 30d"),
        ({"every": "\u0663h"}, "every has to be between 1m and 30d"),
        ({"organisations": ["acme"]}, "organisations"),
        ({"organizations": []}, "organizations has to name at least one"),
        ({"archived": "perhaps"}, "archived"),
        ({"integration": "other"}, "[integrations.github.other]"),
        ({"account": {"token": TOKEN, "host": "no host"}}, "host has to be"),
    ]
    for values, said in cases:
        with subtests.test(values=values):
            with pytest.raises(ConfigurationError) as caught:
                made(**values)
            assert said in caught.value.message
            assert "github.default" in caught.value.message
            assert TOKEN not in caught.value.message


def test_an_unknown_kind_is_told_with_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="There is no importer 'gitbub'"):
        registry.configure_importers({"gitbub": {"default": {}}}, {})


def test_options_are_variables_too(tmp_path: Path) -> None:
    environ = {
        "FACTBOOK_IMPORTERS__GITHUB__DEFAULT__ORGANIZATIONS": "acme,umbrella",
        "FACTBOOK_IMPORTERS__GITHUB__DEFAULT__EVERY": "6h",
        "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__TOKEN": TOKEN,
    }
    settings = table.load_settings(environ=environ, path=tmp_path / "none.toml")
    [one] = registry.configure_importers(settings.importers, settings.integrations)
    assert (one.id, one.every) == ("github", 6 * HOUR)
    with pytest.raises(ConfigurationError, match="KIND__NAME__OPTION"):
        table.load_settings(
            environ={"FACTBOOK_IMPORTERS__GITHUB": "x"}, path=tmp_path / "none.toml"
        )


def test_every_kind_has_a_folder_and_describes_each_of_its_options(
    subtests: pytest.Subtests,
) -> None:
    for id_ in [one.id for one in KINDS]:
        with subtests.test(id=id_):
            found = registry.get_kind(id_)
            assert (found.id, found.title) == next((k.id, k.title) for k in KINDS if k.id == id_)
            hints = get_type_hints(found.options, include_extras=True)
            assert all(
                hints[name].__metadata__[0].description for name in found.options.__struct_fields__
            )


@pytest.mark.slow
def test_a_folder_and_one_line_outside_it_are_a_kind(tmp_path: Path) -> None:
    package = tmp_path / "factbook"
    shutil.copytree(
        Path(factbook.__file__).parent, package, ignore=shutil.ignore_patterns("documentation")
    )
    folder = package / "importers" / "acme"
    folder.mkdir()
    (folder / "__init__.py").write_text(FOLDER)
    kinds = package / "importers" / "registry.py"
    before, head, rows = kinds.read_text().partition("KINDS: Final = (\n")
    kinds.write_text(f"{before}{head}{ROW}{rows}")
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout == "acme Acme None\n", done.stderr


def test_options_that_can_match_nothing_are_refused(subtests: pytest.Subtests) -> None:
    mapping = {"Componnt": {"spec.owner": "item.name"}}
    cluster = {"cluster": "eu-1"}
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("github", {"files": ["/catalog-info.yaml"]}, "files has a path that matches nothing"),
        ("github", {"files": ["./catalog-info.yaml"]}, "files has a path"),
        ("github", {"files": ["services/*/catalog-info.yaml"]}, "targets of a Location"),
        ("github", {"files": []}, "files has to have between one and 4"),
        ("github", {"files": list("abcde")}, "files has to have between one and 4"),
        ("github", {"organizations": ["https://github.com/acme"]}, "organizations has to be names"),
        ("github", {"organizations": ["acme/shop"]}, "organizations has to be names"),
        ("github", {"people_from": ["people"]}, "like acme/people"),
        ("github", {"people_from": ["other/people"]}, "other/people matches nothing"),
        ("github", {"mapping": mapping}, "mapping.Componnt matches nothing of: component, group"),
        ("kubernetes", cluster | {"namespaces": ["Payments"]}, "names of namespaces"),
        ("kubernetes", cluster | {"labels": ["=yes"]}, "like key or key=value"),
        ("kubernetes", cluster | {"mapping": {"User": {}}}, "mapping.User matches nothing of"),
        ("ldif", {"path": "x", "mapping": {"Component": {}}}, "nothing of: group, user"),
    ]
    for kind, values, message in cases:
        table = {"organizations": ["acme"]} | values if kind == "github" else values
        with subtests.test(kind, values=values), pytest.raises(ConfigurationError, match=message):
            registry.configure_importer(kind, "default", table, ACCOUNTS)
    for patterns in (["acme/people"], ["Acme/team-*"], ["acme/*"], ["ac*"], ["*"]):
        assert made(people_from=patterns).id == "github"
