"""The files of `deploy/` name settings, commands and paths that there are; their checks work."""

import configparser
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from factbook.cli.commands import app
from factbook.settings import Settings
from factbook.settings.table import TABLE_DEPTHS
from tests.processes import free_port, serving

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = sorted(DEPLOY.glob("compose*.yml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
_VARIABLE = re.compile(r"\$\{(\w+)(?::[-?]([^}]*))?\}")
_SETTING = re.compile(r"FACTBOOK_(\w+)")


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    return found


def of_factbook(file: Path) -> dict[str, dict[str, Any]]:
    """The services that run this project's image."""
    services: dict[str, dict[str, Any]] = read(file)["services"]
    return {name: one for name, one in services.items() if one["image"].startswith("factbook")}


def unit(file: Path) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign] # keys in their own case
    found.read(file)
    return found


def is_setting(variable: str) -> bool:
    match = _SETTING.fullmatch(variable)
    name = match[1].lower() if match else ""
    return name in Settings.__struct_fields__ or name.partition("__")[0] in TABLE_DEPTHS


def check_command(words: list[str]) -> None:
    """Raise unless `factbook` takes these arguments."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    assert Path(words[0]).name == "factbook"
    command = group.commands[words[1]]
    command.make_context(words[1], words[2:])


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_a_compose_file_trusts_the_gateway_alone(file: Path) -> None:
    [network] = read(file)["networks"]["default"]["ipam"]["config"]
    for service in of_factbook(file).values():
        [default] = [
            match[2] for match in _VARIABLE.finditer(str(service)) if "PROXIES" in match[1]
        ]
        assert default == network["gateway"]


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_a_compose_file_names_settings_commands_and_volumes_that_there_are(file: Path) -> None:
    services = of_factbook(file)
    assert services
    for service in services.values():
        assert all(map(is_setting, service["environment"]))
        check_command(service["command"])
        assert set(service.get("depends_on", {})) <= set(read(file)["services"])
    named = {
        mount.partition(":")[0]
        for service in read(file)["services"].values()
        for mount in service.get("volumes", ())
        if not mount.startswith(".")
    }
    assert named == set(read(file).get("volumes", {}))


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_every_container_is_kept_small(file: Path) -> None:
    for name, service in of_factbook(file).items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["mem_limit"], name
        assert service["restart"] == "unless-stopped", name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name


def test_the_example_of_secrets_has_every_variable_that_is_needed() -> None:
    given = re.findall(r"^(\w+)=", (DEPLOY / ".env.example").read_text(), re.MULTILINE)
    needed = {
        match[1]
        for file in COMPOSE
        for match in _VARIABLE.finditer(file.read_text())
        if ":?" in match[0]
    }
    assert needed == set(given)


def test_the_database_is_where_the_image_keeps_it() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    server = of_factbook(DEPLOY / "compose.sqlite.yml")["server"]
    assert "VOLUME /data" in dockerfile
    assert "data:/data" in server["volumes"]
    assert server["environment"]["FACTBOOK_DATABASE_URL"] == "sqlite:////data/factbook.db"
    assert server["environment"]["FACTBOOK_DATABASE_URL"] in dockerfile


@pytest.mark.slow
@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_the_check_of_health_asks_a_server_that_has_these_settings(
    file: Path, tmp_path: Path
) -> None:
    server = of_factbook(file)["server"]
    kept = {
        name: value
        for name, value in server["environment"].items()
        if name not in {"FACTBOOK_DATABASE_URL", "FACTBOOK_TOKEN_KEY"}
    }
    wanted = {
        name: _VARIABLE.sub(lambda match: match[2] or "", value) for name, value in kept.items()
    }
    wanted["FACTBOOK_PUBLIC_URL"] = "https://factbook.example.com"
    program, *arguments = server["healthcheck"]["test"][1:]
    assert program == "python"
    options = [word for word in server["command"][2:] if word not in {"--port", "8000"}]
    with serving(f"sqlite:///{tmp_path}/f.db", tmp_path, *options, **wanted) as started:
        assert any(":8000/" in word for word in arguments)

        def ask(port: int) -> int:
            asked = [word.replace(":8000/", f":{port}/") for word in arguments]
            done = subprocess.run([sys.executable, *asked], check=False, capture_output=True)
            return done.returncode

        assert ask(started.port) == 0
        assert ask(free_port()) != 0


def test_a_unit_runs_a_command_that_there_is_with_settings_that_there_are(
    subtests: pytest.Subtests,
) -> None:
    assert UNITS
    for file in UNITS:
        with subtests.test(file.name):
            service = unit(file)["Service"]
            check_command(shlex.split(service["ExecStart"]))
            for line in file.read_text().splitlines():
                if line.startswith("Environment="):
                    assert is_setting(line.removeprefix("Environment=").partition("=")[0])
            folders = [f"/var/lib/{name}" for name in service["StateDirectory"].split()]
            assert service["WorkingDirectory"] in folders
            words = shlex.split(service["ExecStart"])[1:]
            assert all(word in folders for word in words if word.startswith("/"))


def test_a_unit_may_do_little(subtests: pytest.Subtests) -> None:
    assert UNITS
    for file in UNITS:
        with subtests.test(file.name):
            service = unit(file)["Service"]
            for key, value in {
                "DynamicUser": "yes",
                "NoNewPrivileges": "yes",
                "ProtectSystem": "strict",
                "UMask": "0077",
                "CapabilityBoundingSet": "",
            }.items():
                assert service[key] == value, key


def test_the_units_and_the_image_give_a_server_time_to_finish() -> None:
    assert int(unit(DEPLOY / "systemd" / "factbook.service")["Service"]["TimeoutStopSec"]) > 30
    for file in COMPOSE:
        for service in of_factbook(file).values():
            assert int(service["stop_grace_period"].removesuffix("s")) > 30


@pytest.mark.system
@pytest.mark.parametrize("file", sorted((DEPLOY / "systemd").iterdir()), ids=lambda file: file.name)
def test_systemd_takes_the_units_and_calls_them_safe(file: Path, tmp_path: Path) -> None:
    for other in (DEPLOY / "systemd").iterdir():
        text = other.read_text().replace("/opt/factbook/bin/factbook", "/bin/true")
        (tmp_path / other.name).write_text(text)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / file.name],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if file.suffix == ".service":
        judged = subprocess.run(
            [
                "systemd-analyze",
                "security",
                "--offline=true",
                "--threshold=20",
                tmp_path / file.name,
            ],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert judged.returncode == 0, judged.stdout[-300:]
