"""Debian's Prometheus and Alertmanager on loopback, with a history that is made beforehand."""

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import yaml

from tests.processes import free_port
from tests.waiting import until

# "a password of tests", as Prometheus wants it: by bcrypt.
PASSWORD = "a password of tests"
_HASHED = "$2b$04$WtN3m0jX5dF4EO89G0Jh1.xAV4p9I8fBoQvVc1q5.DRyl6TySg4KG"


class Line(NamedTuple):
    """A series of a metric, and the moments, in seconds, at which it has a value."""

    metric: str
    labels: Mapping[str, str]
    samples: Iterable[tuple[int, float]]


def backfill(lines: Iterable[Line], folder: Path) -> None:
    """Make the blocks of a storage in a folder. Lines of one metric have to follow each other."""
    needed("promtool")
    text = folder.with_suffix(".txt")
    with text.open("w", encoding="utf-8") as file:
        declared = set()
        for metric, labels, samples in lines:
            if metric not in declared:
                declared.add(metric)
                file.write(f"# TYPE {metric} gauge\n")
            written = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
            file.writelines(f"{metric}{{{written}}} {value} {at}\n" for at, value in samples)
        file.write("# EOF\n")
    _run("promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=720h",
         text, folder)  # fmt: skip


@contextmanager
def prometheus(
    storage: Path, folder: Path, rules: list[dict[str, Any]], *, retention: str
) -> Iterator[str]:
    """The address of a Prometheus that has the storage and the rules, and a user `reader`."""
    folder.mkdir()
    documents = {
        "rules.yml": {"groups": [{"name": "all", "interval": "1s", "rules": rules}]},
        "web.yml": {"basic_auth_users": {"reader": _HASHED}},
        "prometheus.yml": {"rule_files": [str(folder / "rules.yml")]},
    }
    for name, document in documents.items():
        (folder / name).write_text(yaml.safe_dump(document))
    url = f"http://127.0.0.1:{free_port()}"
    arguments = (
        f"--config.file={folder / 'prometheus.yml'}",
        f"--web.config.file={folder / 'web.yml'}",
        f"--web.listen-address={url.removeprefix('http://')}",
        f"--storage.tsdb.path={storage}",
        f"--storage.tsdb.retention.time={retention}",
    )
    with _running("prometheus", *arguments, url=url, log=folder / "log"):
        yield url


@contextmanager
def alertmanager(folder: Path, configuration: dict[str, Any]) -> Iterator[str]:
    """The address of an Alertmanager with this configuration."""
    folder.mkdir()
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(configuration))
    url = f"http://127.0.0.1:{free_port()}"
    arguments = (
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--web.listen-address={url.removeprefix('http://')}",
        f"--storage.path={folder / 'data'}",
        "--cluster.listen-address=",
    )
    with _running("prometheus-alertmanager", *arguments, url=url, log=folder / "log"):
        yield url


def needed(program: str) -> None:
    """Fail when a program is not here."""
    assert shutil.which(program), f"{program} is missing; scripts/install-system installs it"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def _running(program: str, *arguments: str, url: str, log: Path) -> Iterator[None]:
    needed(program)
    with log.open("wb") as output:
        process = subprocess.Popen([program, *arguments], stdout=output, stderr=output)
    try:
        until(lambda: process.poll() is not None or _is_ready(url), told=log.read_text)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def _is_ready(url: str) -> bool:
    try:
        found = httpx2.get(f"{url}/-/ready", auth=("reader", PASSWORD), timeout=60)
    except httpx2.TransportError:
        return False
    return found.status_code == 200
