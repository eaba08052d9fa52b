"""The lock files, by which everything is installed."""

import re
from pathlib import Path

import pytest

LOCKS = Path(__file__).parents[2] / "requirements"
_PIN = re.compile(r"^([a-z0-9-]+==[^ ;]+)", re.MULTILINE)


@pytest.mark.parametrize("name", ["runtime.lock", "dev.lock"])
def test_every_locked_package_has_a_hash_and_no_host(name: str) -> None:
    text = (LOCKS / name).read_text()
    packages = re.split(r"\n(?=\S)", re.sub(r"(?m)^\s*#.*\n?", "", text).strip())
    assert len(packages) > 30
    for package in packages:
        assert re.match(r"[a-z0-9-]+==", package), package
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", package), package
    assert "://" not in text


def test_what_is_tested_is_what_is_shipped() -> None:
    runtime, dev = (
        set(_PIN.findall((LOCKS / f"{one}.lock").read_text())) for one in ("runtime", "dev")
    )
    assert runtime <= dev
