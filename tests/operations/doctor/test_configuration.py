"""Settings that cannot be read, are not known or do not go together."""

from pathlib import Path
from typing import Any

import pytest

from factbook.operations.doctor import examination
from factbook.settings import Settings

SAFE = {"public_url": "https://factbook.example.com", "trusted_proxies": ["10.0.0.1"]}


def test_settings_that_go_together_are_well() -> None:
    settings, found = examination.read_settings(
        SAFE, {"FACTBOOK_PORT": "8080", "FACTBOOK_TOKEN": "t"}
    )
    assert settings is not None
    assert [one.state for one in found] == ["ok"]


@pytest.mark.parametrize(
    ("environ", "told", "advice"),
    [
        ({"FACTBOOK_PORT": "many"}, "port from FACTBOOK_PORT", "does not start with it"),
        ({"FACTBOOK_CONFIG": "none.toml"}, "which does not exist", "does not start with it"),
        ({"FACTBOOK_TOKEN_KEY": "short"}, "at least 32 characters", "does not start with it"),
    ],
)
def test_settings_that_cannot_be_read_are_a_problem(
    environ: dict[str, str], told: str, advice: str
) -> None:
    settings, [found] = examination.read_settings({}, environ)
    assert settings is None
    assert (found.state, told in found.what, advice in found.advice) == ("problem", True, True)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("FACTBOOK_PUBLIC_ULR", "FACTBOOK_PUBLIC_URL"),
        ("FACTBOOK_WORKER", "FACTBOOK_WORKERS"),
        ("FACTBOOK_TRUSTED_PROXY", "FACTBOOK_TRUSTED_PROXIES"),
        ("FACTBOOK_INTEGRATION__GIT__A__TOKEN", "FACTBOOK_INTEGRATIONS__GIT__A__TOKEN"),
        ("FACTBOOK_SOMETHING_ELSE", ""),
    ],
)
def test_a_variable_that_is_no_setting_is_told_with_the_one_that_may_be_meant(
    variable: str, meant: str
) -> None:
    _, found = examination.read_settings(SAFE, {variable: "x"})
    [one] = [one for one in found if variable in one.what]
    assert one.state == ("problem" if meant else "warning")
    assert (meant or "Remove it") in one.advice


@pytest.mark.parametrize(
    ("flags", "state", "told"),
    [
        ({"host": "192.0.2.1"}, "warning", "answers for no host name"),
        ({"public_url": "http://factbook.example.com"}, "warning", "can be read on the way"),
        ({"public_url": "https://factbook.example.com"}, "warning", "No proxy is trusted"),
        (SAFE | {"trusted_proxies": ["0.0.0.0/0"]}, "problem", "anyone can claim"),
        ({"openid": {"issuer": "https://id.example.com"}}, "warning", "no public_url"),
    ],
)
def test_what_is_not_safe_together_is_told(flags: dict[str, Any], state: str, told: str) -> None:
    _, found = examination.read_settings(flags, {})
    [one] = found
    assert (one.state, told in one.what, bool(one.advice)) == (state, True, True)


@pytest.mark.parametrize(
    "flags",
    [{"host": "192.0.2.1", "allowed_hosts": ["a"]}, {"public_url": "http://localhost:8000"}],
)
def test_what_is_bound_to_names_or_to_loopback_is_safe(flags: dict[str, Any]) -> None:
    _, found = examination.read_settings(flags, {})
    assert [one.state for one in found] == ["ok"]


def test_a_file_with_secrets_is_to_be_private(tmp_path: Path) -> None:
    file = tmp_path / "factbook.toml"
    file.write_text(f'token_key = "{"k" * 32}"\n')
    file.chmod(0o644)
    environ = {"FACTBOOK_CONFIG": str(file)}
    _, [found] = examination.read_settings({}, environ)
    assert (found.state, "can be read by others" in found.what) == ("warning", True)
    assert found.advice.startswith("chmod 600")
    file.chmod(0o600)
    assert [one.state for one in examination.read_settings({}, environ)[1]] == ["ok"]
    file.write_text('outgoing_proxy = "http://kim:s3cret@proxy.example.com:3128"\n')
    file.chmod(0o644)
    [found] = examination.read_settings({}, environ)[1]
    assert (found.state, "outgoing_proxy" in found.what) == ("warning", True)
    assert "s3cret" not in str(found)
    file.write_text('outgoing_proxy = "http://proxy.example.com:3128"\n')
    assert [one.state for one in examination.read_settings({}, environ)[1]] == ["ok"]
    file.write_text("port = 8080\n")
    file.chmod(0o644)
    assert [one.state for one in examination.read_settings({}, environ)[1]] == ["ok"]


def test_a_key_file_has_to_be_there_private_and_long_enough(tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/factbook.db")
    file = tmp_path / "factbook.db.key"
    found = [examination.read_key(settings)]
    (tmp_path / "factbook.db").touch()
    found.append(examination.read_key(settings))
    file.write_text("k" * 64)
    file.chmod(0o640)
    found.append(examination.read_key(settings))
    file.chmod(0o600)
    found.append(examination.read_key(settings))
    file.write_text("short")
    found.append(examination.read_key(settings))
    assert [one.state for _, one in found] == ["ok", "problem", "problem", "ok", "problem"]
    assert [secret is not None for secret, _ in found] == [False, False, False, True, False]
    assert "chmod 600" in found[2][1].what
    assert not (tmp_path / "factbook.db.key.key").exists()


def test_postgresql_needs_a_key_in_the_settings() -> None:
    secret, found = examination.read_key(Settings(database_url="postgresql://h/d"))
    assert (secret, found.state) == (None, "problem")
    assert "token_key has to be set on PostgreSQL" in found.what
