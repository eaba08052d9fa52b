"""Expressions of sources that take long or bring too much."""

import pytest

from factbook.datasources.custom import extraction
from tests.datasources.asking import definition
from tests.datasources.hostile import NAMES, Beside, everyone, evil, whole
from tests.outbound.conftest import Serve
from tests.outbound.talking import saying

# Extraction runs in processes of its own, which know no database, and each takes all of a bound.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

CATASTROPHE = {f"f{i}": ("string", "/(a|aa)+$/") for i in range(5)}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the time that an expression may take."""
    for name in ("PATTERN_SECONDS", "EXPRESSION_SECONDS"):
        monkeypatch.setattr(extraction, name, getattr(extraction, name) / 10)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
async def test_a_catastrophic_pattern_takes_no_time(beside: Beside, serve: Serve) -> None:
    port = await serve(saying(whole(b"a" * 5_000 + b"b")))
    source = evil(format="text", facts=CATASTROPHE)
    reasons = await beside.run(source, f"http://127.0.0.1:{port}")
    nothing = dict.fromkeys(CATASTROPHE, "not-applicable: the document has no such value")
    assert reasons == everyone(nothing)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
async def test_a_catastrophic_pattern_on_entities_holds_nobody_up(beside: Beside) -> None:
    members = {"timeout": {"seconds": 20}}
    reasons = await beside.run(definition("entity", "evil", CATASTROPHE, members=members))
    assert set(reasons) == set(NAMES)
    assert set(reasons["one"]) == set(CATASTROPHE)
    assert set(reasons["one"].values()) == {"not-applicable: the document has no such value"}


@pytest.mark.slow
@pytest.mark.usefixtures("short")
async def test_an_expression_that_takes_long_ends_with_its_bound(
    beside: Beside, serve: Serve
) -> None:
    port = await serve(saying(whole(b"[" + b"[]," * 300_000 + b"[]]")))
    source = evil(facts={"f": ("integer", "length(" + "[*]|" * 100 + "[*])")})
    reasons = await beside.run(source, f"http://127.0.0.1:{port}")
    slow = {"f": "upstream-error: the extraction took too long"}
    assert reasons == everyone(slow)


async def test_a_result_that_is_too_large_is_no_fact(beside: Beside, serve: Serve) -> None:
    port = await serve(saying(whole(b'"' + b"x" * 200_000 + b'"')))
    whole_ten_times = ", ".join(["@"] * 10)
    facts = {"one": ("string", "@"), "ten": ("object", f"[{whole_ten_times}]")}
    reasons = await beside.run(evil(facts=facts), f"http://127.0.0.1:{port}")
    large = {"ten": "too-large: what was extracted is too large for facts"}
    assert reasons == everyone(large)
