"""Where the key of token hashes comes from."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from factbook.app import Application
from factbook.auth import encryption
from factbook.auth.encryption import find_token_key
from factbook.errors import ConfigurationError
from factbook.settings import Settings

SETTING = "a key that is long enough to be one"
POSTGRESQL = "postgresql://factbook:secret@127.0.0.1:1/factbook"


@pytest.mark.spec("token.key-from-setting")
def test_a_key_that_is_set_is_used_and_no_file_is_made(tmp_path: Path) -> None:
    file = tmp_path / "key"
    assert encryption.make_token_key(SETTING, file) == encryption.make_token_key(SETTING, None)
    assert encryption.make_token_key(SETTING, file) != encryption.make_token_key(
        SETTING.upper(), file
    )
    assert not file.exists()


@pytest.mark.spec("token.key-file-is-private")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_key_is_made_once_in_a_file_that_nobody_else_may_read(tmp_path: Path, umask: int) -> None:
    file, before = tmp_path / "new" / "deep" / "key", os.umask(umask)
    try:
        key = encryption.make_token_key(None, file)
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_text()) == 64
    assert encryption.make_token_key(None, file) == key
    assert [item.name for item in file.parent.iterdir()] == ["key"]
    assert encryption.make_token_key(None, tmp_path / "other") != key


@pytest.mark.spec("token.key-file-is-private")
def test_a_key_file_that_others_may_read_is_refused(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    file = tmp_path / "key"
    encryption.make_token_key(None, file)
    content = file.read_text()
    for mode in [0o640, 0o604, 0o660, 0o644, 0o610]:
        with subtests.test(mode=mode):
            file.chmod(mode)
            with pytest.raises(ConfigurationError, match="chmod 600") as raised:
                encryption.make_token_key(None, file)
            assert content not in str(raised.value)


def test_a_key_file_without_a_key_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    file = tmp_path / "key"
    file.touch(mode=0o600)
    for content in ["", "short", "\n" * 40]:
        with subtests.test(content=content):
            file.write_text(content)
            with pytest.raises(ConfigurationError, match="at least 32 characters"):
                encryption.make_token_key(None, file)


def test_a_key_file_that_cannot_be_used_is_a_mistake_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be used"):
        encryption.make_token_key(None, tmp_path / "file" / "key")


def test_the_key_file_stands_beside_the_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/facts.db"
    key = find_token_key(Settings(database_url=url))
    assert (tmp_path / "facts.db.key").is_file()
    assert find_token_key(Settings(database_url=url)) == key
    assert find_token_key(Settings(database_url=url, token_key=SETTING)) != key


@pytest.mark.slow
@pytest.mark.spec("token.key-file-is-private")
def test_processes_that_start_at_the_same_moment_share_one_key(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from factbook.auth import encryption; "
        "sys.stdin.read(1); print(encryption.make_token_key(None, Path(sys.argv[1])).hex())"
    )
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", script, tmp_path / "key"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write(b"!")
        starter.stdin.flush()
    found = {starter.communicate(timeout=60)[0] for starter in starters}
    assert len(found) == 1
    assert found != {b""}
    assert [item.name for item in tmp_path.iterdir()] == ["key"]


@pytest.mark.spec("token.key-mandatory-on-postgresql")
def test_on_postgresql_there_is_no_key_without_the_setting() -> None:
    with pytest.raises(ConfigurationError, match="token_key has to be set on PostgreSQL") as raised:
        find_token_key(Settings(database_url=POSTGRESQL))
    assert "FACTBOOK_TOKEN_KEY" in str(raised.value)
    assert "secret" not in str(raised.value)
    assert find_token_key(Settings(database_url=POSTGRESQL, token_key=SETTING))


@pytest.mark.spec("token.key-mandatory-on-postgresql")
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_the_service_does_not_start_on_postgresql_without_the_setting(
    database_url: str,
) -> None:
    with pytest.raises(ConfigurationError, match="token_key has to be set"):
        async with Application(Settings(database_url=database_url)).running():
            raise AssertionError("it started")
