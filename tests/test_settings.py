"""Settings: where they come from, which place wins, and what is refused."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from factbook.cli.commands import app
from factbook.datasources.custom import sources
from factbook.errors import ConfigurationError
from factbook.settings import Settings
from factbook.settings.table import load_settings, refuse_misspelled_variables, settings_environment


def written(folder: Path, text: str) -> Path:
    """A settings file with this content."""
    file = folder / "factbook.toml"
    file.write_text(text)
    return file


def test_without_anything_the_defaults_are_in_force(tmp_path: Path) -> None:
    assert load_settings({}, {}, tmp_path / "none.toml") == Settings()


def test_a_flag_outweighs_the_environment_and_that_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, 'port = 1\nhost = "file"\nworkers = 7\npush_word = "file"\n')
    environ = {"FACTBOOK_PORT": "2", "FACTBOOK_HOST": "environment", "FACTBOOK_WORKERS": "8"}
    found = load_settings({"port": 3, "host": None}, environ, file)
    assert (found.port, found.host, found.workers) == (3, "environment", 8)
    assert found.push_word == "file"
    assert found.token_rate == Settings().token_rate


def test_the_environment_can_name_another_file(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("port = 5\n")
    default = written(tmp_path, "port = 1\nworkers = 9\n")
    found = load_settings({}, {"FACTBOOK_CONFIG": str(other)}, default)
    assert (found.port, found.workers) == (5, 1)
    with pytest.raises(ConfigurationError, match=r"FACTBOOK_CONFIG names .*missing"):
        load_settings({}, {"FACTBOOK_CONFIG": str(tmp_path / "missing.toml")}, default)


def test_a_list_in_the_environment_is_parted_by_commas(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, list[str]]] = [
        ("", []),
        ("a", ["a"]),
        ("a, b ,,c", ["a", "b", "c"]),
        (" , ", []),
    ]
    for text, expected in cases:
        with subtests.test(text=text):
            assert (
                load_settings({}, {"FACTBOOK_ALLOWED_HOSTS": text}, Path("none")).allowed_hosts
                == expected
            )


def test_a_file_may_hold_a_value_of_every_setting(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "database_url": "postgresql://db/facts",
        "allowed_hosts": ["a", "b"],
        "token_rate": 5,
        "token_key": "k" * 32,
        "log_level": "debug",
        "port": 0,
    }
    lines = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in given.items()]
    found = load_settings({}, {}, written(tmp_path, "\n".join(lines)))
    assert {name: getattr(found, name) for name in given} == given


def test_an_unknown_name_in_the_file_is_refused_by_name(tmp_path: Path) -> None:
    file = written(tmp_path, "port = 1\nprot = 2\n[server]\nhost = 'x'\n")
    with pytest.raises(ConfigurationError, match=r"factbook.toml has unknown .*: prot, server\."):
        load_settings({}, {}, file)


def test_the_service_refuses_misspelled_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    # A folder that doesn't exist: whatever happens, no server starts.
    flag = f"--database-url=sqlite:///{tmp_path}/missing/factbook.db"
    meant = {
        "FACTBOOK_TRUSTED_PROXY": "FACTBOOK_TRUSTED_PROXIES",
        "FACTBOOK_PUBLIC_ULR": "FACTBOOK_PUBLIC_URL",
        "FACTBOOK_INTEGRATION__GIT__A__TOKEN": "FACTBOOK_INTEGRATIONS__GIT__A__TOKEN",
        "FACTBOOK_OAUTHS__REGISTRATION": "FACTBOOK_OAUTH__REGISTRATION",
    }
    for command in ("serve", "worker"):
        for variable, setting in meant.items():
            with subtests.test(command=command, variable=variable):
                monkeypatch.setenv(variable, "x")
                answer = CliRunner().invoke(app, [command, flag])
                monkeypatch.delenv(variable)
                assert answer.exit_code == 2
                assert f"{variable} ({setting}?)" in " ".join(answer.stderr.split())


def test_other_variables_only_cause_a_warning() -> None:
    names = {
        "FACTBOOK_BACKUP_FOLDER": True,
        "FACTBOOK_TRUSTED_PROXIES": False,
        "FACTBOOK_TOKEN": False,
        "FACTBOOK_OAUTH__REGISTRATION": False,
        # What Kubernetes sets for services.
        "FACTBOOK_SERVICE_HOST": False,
        "FACTBOOK_SERVICE_PORT_HTTP": False,
        "FACTBOOK_PORT_8000_TCP_ADDR": False,
        "FACTBOOK_SERVER_PORT": False,
        "HOME": False,
    }
    wanted = sorted(name for name, is_unknown in names.items() if is_unknown)
    assert refuse_misspelled_variables(dict.fromkeys(names, "x")) == wanted


def test_a_value_of_another_type_in_the_file_is_refused(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for text in [
        'port = "8000"',
        "port = 1.5",
        "port = true",
        "host = 7",
        "allowed_hosts = [1]",
        "allowed_hosts = 5",
        'log_level = "loud"',
        'token_rate = "fast"',
    ]:
        with (
            subtests.test(text=text),
            pytest.raises(
                ConfigurationError, match=rf"{text.partition(' ')[0]} from .*factbook.toml"
            ),
        ):
            load_settings({}, {}, written(tmp_path, text))


def test_a_value_of_another_type_in_the_environment_is_refused(subtests: pytest.Subtests) -> None:
    for name, text in [
        ("PORT", "http"),
        ("PORT", ""),
        ("PORT", "1.5"),
        ("TOKEN_RATE", "x"),
        ("LOG_LEVEL", "INFO"),
    ]:
        with (
            subtests.test(name=name),
            pytest.raises(ConfigurationError, match=f"{name.lower()} from FACTBOOK_{name}"),
        ):
            load_settings({}, {f"FACTBOOK_{name}": text}, Path("none"))


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    file = tmp_path / "factbook.toml"
    for content in [b"port = ", b"port = 1\nport = 2", b"\xff", b"port = " + b"9" * 5_000]:
        with subtests.test(content=content):
            file.write_bytes(content)
            with pytest.raises(ConfigurationError, match=r"factbook.toml is not valid TOML"):
                load_settings({}, {}, file)


def test_a_file_of_an_editor_on_windows_is_read(tmp_path: Path) -> None:
    file = tmp_path / "factbook.toml"
    for content in ("\ufeffport = 81".encode(), "port = 81".encode("utf-16")):
        file.write_bytes(content)
        assert load_settings({}, {}, file).port == 81


def test_a_value_that_no_service_can_run_with_is_refused_by_name(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, Any]] = [
        ("port", -1),
        ("workers", 0),
        ("postgres_connections", 0),
        ("token_rate", 0.0),
        ("token_rate", -1.0),
        ("token_rate", float("nan")),
        ("token_burst", 0),
        ("failed_logins", 0),
        ("max_body_bytes", -1),
        ("max_set_items", 0),
        ("max_json_depth", 0),
        ("max_entity_relations", 0),
        ("max_entity_labels", 0),
        ("max_entity_annotations", 0),
        ("max_entity_tags", 0),
        ("max_entity_links", 0),
        ("max_entity_values", 0),
        ("revisions_kept", -1),
        ("revision_days", -1),
        ("removed_days", -1),
        ("token_key", "k" * 31),
        ("public_url", "facts.example.com"),
    ]
    for name, value in cases:
        with subtests.test(name=name, value=value):
            with pytest.raises(ConfigurationError, match=name) as raised:
                Settings(**{name: value})
            assert "k" * 31 not in str(raised.value)


def test_server_processes_are_given_the_same_settings_through_the_environment() -> None:
    given = Settings(
        database_url="postgresql://u:p@h/d?x=1",
        allowed_hosts=["a", "b"],
        token_key="k, with = signs and spaces in it!",
        token_rate=0.25,
        public_url="https://x",
        integrations={"github": {"default": {"token": "a, b = c", "organizations": ["d"]}}},
        connections={"ci": {"base_url": "https://ci", "headers": {"a": "b"}}},
    )
    assert load_settings({}, settings_environment(given), Path("none")) == given
    assert load_settings({}, settings_environment(Settings()), Path("none")) == Settings()


def test_an_option_of_a_table_may_be_a_variable_beside_those_of_the_file(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '[connections.ci]\nbase_url = "https://ci.example.com"\n'
        '[integrations.github.default]\ntoken = "file"\norganizations = ["acme"]\n',
    )
    variables = {
        "FACTBOOK_CONNECTIONS__CI__HEADERS": '{"authorization": "Bearer x"}',
        "FACTBOOK_CONNECTIONS__OTHER__BASE_URL": "https://other.example.com",
        "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__TOKEN": "variable",
    }
    found = load_settings({}, variables, file)
    connections = sources.configured_connections(found.connections)
    assert connections["ci"].headers == {"authorization": "Bearer x"}
    assert connections["other"].base_url == "https://other.example.com"
    table = found.integrations["github"]["default"]
    assert table == {"token": "variable", "organizations": ["acme"]}


def test_a_variable_that_names_no_option_is_refused_with_the_form(
    subtests: pytest.Subtests,
) -> None:
    for variable, form in [
        ("FACTBOOK_CONNECTIONS__CI", "FACTBOOK_CONNECTIONS__NAME__OPTION"),
        ("FACTBOOK_CONNECTIONS__CI__A__B", "FACTBOOK_CONNECTIONS__NAME__OPTION"),
        ("FACTBOOK_INTEGRATIONS__GITHUB__TOKEN", "FACTBOOK_INTEGRATIONS__VENDOR__NAME__OPTION"),
        ("FACTBOOK_INTEGRATIONS__GITHUB____TOKEN", "FACTBOOK_INTEGRATIONS__VENDOR__NAME__OPTION"),
    ]:
        with subtests.test(variable=variable, form=form):
            with pytest.raises(ConfigurationError, match=form) as raised:
                load_settings({}, {variable: "a secret"}, Path("none"))
            assert "a secret" not in str(raised.value)


def test_a_connection_that_cannot_be_is_refused_by_its_name(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "connections.ci: Object missing required field `base_url`"),
        ({"base_url": "ci.example.com"}, "has to begin with https://"),
        ({"base_url": "https://ci", "headers": "Bearer x"}, "Expected an object"),
        ({"base_url": "https://ci", "methods": ["DELETE"]}, "GET and POST"),
        ({"base_url": "https://ci", "at_once": 0}, ">= 1"),
        ({"base_url": "https://ci", "tokn": "x"}, "unknown field"),
    ]
    for table, message in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError, match=message) as raised:
                sources.configured_connections({"ci": table})
            assert "Bearer" not in str(raised.value)
