"""Whether there are advisories about a locked package, asked with pip-audit."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.supply import audit_record, licences

SERVICES: Final = ("pypi", "osv")
_SECONDS: Final = 300

Ask = Callable[[str, Sequence[Path]], list[dict[str, Any]] | None]


class Audit(NamedTuple):
    """Findings of a service: a line for each advisory, and the packages that it does not know."""

    advisories: list[str]
    unknown: list[str]
    service: str


class Outcome(NamedTuple):
    """Lines to print, and whether the check has failed."""

    lines: list[str]
    failed: bool


def checked(
    locks: Sequence[Path],
    record: Path,
    *,
    required: bool = False,
    record_on: str | None = None,
    ask: "Ask | None" = None,
) -> Outcome:
    """Audit the locks; `record_on`: the date that is written to `record` when nothing is found.

    Findings fail the check wherever a service answers. Where none does, the last audit is told,
    and it fails when an answer is `required` or to be recorded.
    """
    found = audit(locks, ask)
    if found is None:
        last = audit_record.summary(audit_record.load(record), locks)
        line = f"packages were not audited: the advisory service does not answer; {last}"
        return Outcome([line], failed=required or record_on is not None)
    lines = found.advisories + [
        f"{found.service} does not know {package}" for package in found.unknown
    ]
    if record_on is not None and not lines:
        audit_record.write(record, record_on, found.service, locks)
    return Outcome(lines, failed=bool(lines))


def audit(locks: Sequence[Path], ask: "Ask | None" = None) -> Audit | None:
    """Findings of the first service that answers for all packages; None when none answers.

    One that answers for a single package and not for all is out of order, not out of reach: where
    no other answers, that is a finding.
    """
    ask = ask or asked
    partial: Audit | None = None
    for service in SERVICES:
        # A service that is out of reach may look like one that knows none of the packages: one
        # that is surely known tells them apart, and quickly.
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.txt")
            probe.write_text(_first(locks[0].read_text()))
            known = ask(service, [probe])
        if not known or all("skip_reason" in each for each in known):
            continue
        found = ask(service, locks)
        if found is not None:
            return _read(found, service)
        partial = Audit([f"{service} answers for one package and not for all"], [], service)
    return partial


def asked(service: str, files: Sequence[Path]) -> list[dict[str, Any]] | None:
    """The packages as pip-audit tells of them; None when it could not ask."""
    named = [part for file in files for part in ("--requirement", str(file))]
    options = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json")
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", "--vulnerability-service", service, *options, *named],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return None
    return packages


def _first(lock: str) -> str:
    """The first package of a lock that is for every system, with its hashes."""
    name = next(name for name, is_conditional in licences.pins(lock).items() if not is_conditional)
    begin = lock.index(f"{name}==")
    lines = lock[begin:].splitlines()
    end = next(i for i, line in enumerate(lines) if not line.endswith("\\"))
    return "\n".join(lines[: end + 1]) + "\n"


def _read(packages: Sequence[dict[str, Any]], service: str) -> Audit:
    advisories, unknown = [], []
    for package in packages:
        if "skip_reason" in package:
            unknown.append(str(package["name"]))
        for one in package.get("vulns", []):
            mended = ", ".join(one["fix_versions"]) or "no version yet"
            advisories.append(
                f"{package['name']} {package['version']}: {one['id']}, mended in {mended}"
            )
    return Audit(sorted(set(advisories)), sorted(set(unknown)), service)
