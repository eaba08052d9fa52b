"""The image of the Dockerfile, and programs that run from it as a container platform runs them.

Debian's packages stand in for the base image that is named there. Installers trust the certificates
that this machine trusts.
"""

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
USER = 10001
BASE = "localhost/base"
# The name that the compose files have for it.
_IMAGE = "localhost/factbook:local"
_PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"
# The Dockerfile's base image has none of these either.
_SLIM = 'cd "$1/usr/share" && rm -rf doc/* locale/* man/*'
_CERTIFICATES = "/etc/ssl/certs"
# What the compose files and the chart give each container.
_CONFINED = (
    *("--read-only", "--read-only-tmpfs=false", "--cap-drop", "all"),
    *("--security-opt", "no-new-privileges", "--network", "host"),
)
# The engine runs where there is no systemd; the limits are below what any machine allows.
_ENGINE = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{store}/images"
runroot = "{store}/run"
"""


class Image:
    """The image in a store of its own, and its containers."""

    def __init__(self, store: Path) -> None:
        self._store = store
        files = {
            "CONTAINERS_CONF": _ENGINE,
            "CONTAINERS_STORAGE_CONF": _STORAGE.format(store=store),
        }
        self.environment = dict(os.environ)
        for name, text in files.items():
            file = store / f"{name.lower()}.toml"
            file.write_text(text)
            self.environment[name] = str(file)

    @classmethod
    @contextmanager
    def built(cls) -> "Iterator[Image]":
        """A new image, removed at the end of the block with all its containers."""
        store = Path(tempfile.mkdtemp(prefix="factbook-image-"))
        image = cls(store)
        try:
            image._build()
            yield image
        finally:
            image.run("rm", "--all", "--force", "--time", "0")
            image.run("rmi", "--all", "--force")
            shutil.rmtree(store, ignore_errors=True)

    def run(self, *arguments: str | Path, check: bool = True) -> str:
        """What an action of the engine prints."""
        done = subprocess.run(
            ["podman", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def succeeds(self, *arguments: str) -> bool:
        """Run an action of the engine."""
        done = subprocess.run(
            ["podman", *arguments],
            env=self.environment,
            capture_output=True,
            timeout=100,
            check=False,
        )
        return done.returncode == 0

    def shell(self, script: str) -> str:
        """What a script prints in a container without a writable file system."""
        # A volume of the image would be writable, and is shown elsewhere.
        return self.run(
            "run", "--rm", "--image-volume=ignore", *_CONFINED, _IMAGE, "sh", "-c", script
        )

    def configuration(self) -> dict[str, Any]:
        """The user, command and addresses that the image states, and its size in bytes."""
        [found] = json.loads(self.run("image", "inspect", _IMAGE))
        return {"Size": found["Size"], **found["Config"]}

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """The files of the image."""
        place = self.run("image", "mount", _IMAGE).strip()
        try:
            yield Path(place)
        finally:
            self.run("image", "umount", _IMAGE)

    def program(self, folder: Path) -> Path:
        """A `factbook` that runs in a container, with its settings and a folder that it may write.

        Its signals are passed on to the process in the container, as those of Kubernetes are.
        """
        folder.chmod(0o777)
        mount = ("--volume", f"{folder}:{folder}", "--workdir", str(folder))
        confined = (*_CONFINED, "--env", "FACTBOOK_*", "--interactive")
        command = ["podman", "run", "--rm", *confined, *mount, _IMAGE, "factbook"]
        names = ("CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")
        settings = [f"{name}={self.environment[name]}" for name in names]
        file = self._store / "factbook"
        file.write_text(f'#!/bin/sh\nexec {shlex.join(["env", *settings, *command])} "$@"\n')
        file.chmod(0o755)
        return file

    def _build(self) -> None:
        base = self._store / "base.tar"
        _make_base(base)
        self.run("import", base, BASE)
        base.unlink()
        settings = self._store / "pip.conf"
        settings.write_text(f"[global]\ncert = {_CERTIFICATES}/ca-certificates.crt\n")
        self.build(
            ROOT,
            _IMAGE,
            *("--volume", f"{_CERTIFICATES}:{_CERTIFICATES}:ro"),
            *("--volume", f"{settings}:/etc/pip.conf:ro", "--build-arg", f"BASE={BASE}"),
        )

    def build(self, folder: Path, name: str, *options: str) -> None:
        """Build another image."""
        self.run(
            *("build", "--isolation", "chroot", "--network", "host", "--pull=never"),
            *("--layers=false", *options, "--tag", name, str(folder)),
        )


def _make_base(file: Path) -> None:
    """Make an archive of a small Debian with Python."""
    sources = sorted(Path("/etc/apt").glob("sources.list.d/*.sources"))
    listed = Path("/etc/apt/sources.list")
    known = [str(one) for one in (*sources, listed) if one.exists()]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PACKAGES}"]
    options = ["--dpkgopt=force-unsafe-io", f"--customize-hook={_SLIM}"]
    done = subprocess.run(
        [*command, *options, _release(), file, *known],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _release() -> str:
    """The code name of the Debian that this machine runs."""
    lines = Path("/etc/os-release").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"]
