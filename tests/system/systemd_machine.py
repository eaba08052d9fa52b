"""A container that systemd boots with the units of `deploy/systemd`, without any network."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.containers import ROOT, Image
from tests.waiting import until

_NAME = "factbook-units"
_IMAGE = "localhost/units"
_PROGRAM = "/opt/factbook/bin/factbook"
_DATABASE = "FACTBOOK_DATABASE_URL=sqlite:////var/lib/factbook/factbook.db"


class SystemdMachine:
    """The machine, with what an administrator does on it as root."""

    def __init__(self, image: Image) -> None:
        self._image = image

    @classmethod
    @contextmanager
    def booted(cls, image: Image) -> "Iterator[SystemdMachine]":
        """A machine with the service enabled, shut down at the end of the block."""
        recipe = ROOT / "tests/system/units_image/Dockerfile"
        image.build(ROOT / "deploy/systemd", _IMAGE, "--file", str(recipe))
        # systemd sets up the confinement of the units by itself.
        boots = ("--systemd=always", "--privileged", "--network=none", "--image-volume=ignore")
        image.run("run", "--detach", "--name", _NAME, *boots, _IMAGE)
        machine = cls(image)
        try:
            yield machine
        finally:
            image.run("rm", "--force", "--time", "20", _NAME)

    def run(self, *command: str, check: bool = True) -> str:
        """What a command prints."""
        return self._image.run("exec", _NAME, *command, check=check).strip()

    def factbook(self, *arguments: str, token: str = "") -> str:
        """What a command on the database of the service, or with a token, prints."""
        return self.run("env", _DATABASE, f"FACTBOOK_TOKEN={token}", _PROGRAM, *arguments)

    def is_active(self, unit: str) -> bool:
        return self.run("systemctl", "is-active", unit, check=False) == "active"

    def wait_until_ready(self) -> None:
        """Return when the server says that it can answer."""
        ask = "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"
        python = _PROGRAM.replace("bin/factbook", "bin/python")
        until(
            lambda: self._image.succeeds("exec", _NAME, python, "-c", ask),
            told=lambda: self.run("journalctl", "--no-pager", check=False),
            pause=2,
        )

    def confinement(self, unit: str) -> dict[str, str]:
        """Fields of the main process of a unit, as the kernel tells them."""
        script = f"cat /proc/$(systemctl show -P MainPID {unit})/status"
        lines = self.run("sh", "-c", script).splitlines()
        return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}
