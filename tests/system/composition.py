"""A compose file of `deploy/`, started with podman-compose in a folder of its own.

The engine has no systemd here that would ask for the health of containers, so that it is asked when
it is waited for.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tests.postgresql_programs import packaged_programs
from tests.processes import free_port
from tests.system.containers import BASE, ROOT, USER, Image
from tests.waiting import until

_COMPOSE = Path(sys.executable).with_name("podman-compose")
# A container that creates its database on a loaded machine takes minutes.
_HEALTHY_SECONDS: Final = 500


class Composition:
    """The containers of a compose file."""

    def __init__(self, image: Image, file: Path) -> None:
        self._image = image
        self.folder = file.parent
        self._file = file
        self.name = yaml.safe_load(file.read_text())["name"]
        self.url = f"http://127.0.0.1:{free_port()}"

    @classmethod
    @contextmanager
    def started(cls, image: Image, name: str, folder: Path) -> "Iterator[Composition]":
        """The containers of a file, removed at the end of the block with what they stored."""
        shutil.copytree(ROOT / "deploy", folder / "deploy")
        found = cls(image, folder / "deploy" / name)
        found._prepare()
        try:
            # podman-compose starts what depends on the database without waiting for its health.
            if "  database:" in found._file.read_text():
                found.compose("up", "--no-build", "--detach", "database")
                found.wait_until_healthy("database")
            found.compose("up", "--no-build", "--detach")
            yield found
        finally:
            found.compose("down", "--volumes", "--timeout", "40")

    def compose(self, *arguments: str) -> str:
        """What a command of podman-compose prints."""
        done = subprocess.run(
            [_COMPOSE, "--file", self._file, "--file", self.folder / "own.yml", *arguments],
            cwd=self.folder,
            env=self._image.environment,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def factbook(self, *arguments: str, service: str = "server") -> str:
        """What a command in the container of a service prints."""
        return self.compose("exec", "-T", service, "factbook", *arguments)

    def wait_until_healthy(self, service: str) -> None:
        """Return when the check of the file succeeds."""
        name = f"{self.name}_{service}_1"
        until(
            lambda: self._image.succeeds("healthcheck", "run", name),
            _HEALTHY_SECONDS,
            told=lambda: self._image.run("logs", name, check=False),
            pause=2,
        )

    def _prepare(self) -> None:
        """Write the settings, and put a free port and the images that there are in their places."""
        settings = (self.folder / ".env.example").read_text()
        values = {"POSTGRES_PASSWORD": "0123456789abcdef", "FACTBOOK_TOKEN_KEY": "0123456789" * 4}
        for key, value in values.items():
            settings = settings.replace(f"\n{key}=\n", f"\n{key}={value}\n")
        (self.folder / ".env").write_text(settings)
        backups = self.folder / "backups"
        backups.mkdir()
        shutil.chown(backups, USER)
        port = self.url.rpartition(":")[2]
        text = self._file.read_text().replace("127.0.0.1:8000:8000", f"127.0.0.1:{port}:8000")
        self._file.write_text(text)
        services = {"database": _database()} if "  database:" in text else {}
        (self.folder / "own.yml").write_text(yaml.safe_dump({"services": services}))


def _database() -> dict[str, Any]:
    """A service with PostgreSQL from the Python package, which brings its own libraries."""
    programs = packaged_programs().folder
    packages = programs.parents[2]
    place = Path("/opt/postgresql")
    return {
        "image": BASE,
        "command": ["/start"],
        "environment": {"PATH": f"{place / programs.relative_to(packages)}:/usr/bin:/bin"},
        "volumes": [
            f"{packages}:{place}:ro",
            f"{ROOT / 'tests/system/start_database'}:/start:ro",
        ],
    }
