"""Findings of the doctor about published checks."""

from collections.abc import Mapping
from typing import Any

import msgspec

from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.operations.doctor.conftest import Look, of, only
from tests.service import Time

ON = leaf("on", "equal", value=True)


async def put_into_effect(database: Database, document: Mapping[str, Any]) -> None:
    """Write what another release let through."""
    text, id_ = msgspec.json.encode(document).decode(), document["id"]

    def work(tx: Any) -> None:
        tx.run("UPDATE checks SET published = ? WHERE id = ?", (text, id_))

    await database.write(work)


def reading(id_: str, other: str) -> dict[str, Any]:
    return a_check(id_, leaf(other, "equal", "pass", source="checks"))


async def test_checks_that_can_be_evaluated_are_well(database: Database, look: Look) -> None:
    assert of(await look(quick=True), "checks") == []
    catalog = CheckedCatalog(database, Time())
    await catalog.publish(a_check("a", ON), reading("b", "a"))
    told = of(await look(quick=True), "checks")
    assert told == [("ok", "All 2 published checks can be evaluated.")]


async def test_a_circle_of_checks_is_told_once_with_its_way(database: Database, look: Look) -> None:
    catalog = CheckedCatalog(database, Time())
    await catalog.publish(a_check("a", ON), reading("b", "a"), reading("c", "b"), a_check("d", ON))
    await put_into_effect(database, reading("a", "c"))
    found = only(await look(quick=True), "checks")
    assert found.what == "A check reads itself: a → c → b → a."
    assert "publish one of them" in found.advice


async def test_a_check_that_this_release_cannot_read_is_told(
    database: Database, look: Look
) -> None:
    catalog = CheckedCatalog(database, Time())
    await catalog.publish(a_check("a", ON))
    await put_into_effect(database, a_check("a", leaf("on", "resembles", value=True)))
    found = only(await look(quick=True), "checks")
    assert found.what.startswith("This release cannot evaluate a: ")


async def test_a_pattern_that_re2_refuses_or_reads_differently_is_told(
    database: Database, look: Look
) -> None:
    catalog = CheckedCatalog(database, Time())
    await catalog.publish(a_check("a", ON), a_check("b", ON))
    named = {"source": "entity"}
    old = leaf("metadata.name", "matches", value="^(?!test-)", **named)
    await put_into_effect(database, {**a_check("a", old), "owner": "group:default/red"})
    await put_into_effect(database, a_check("b", leaf("spec.type", "matches", r"\d", **named)))
    refused, differing = of(await look(quick=True), "checks")
    assert refused[0] == "problem"
    assert refused[1].startswith(
        "The check a, which belongs to group:default/red, is unknown in this release: the pattern "
        "at rule.value has (?!…), which looks around the match and RE2 doesn't take; write a second"
    )
    assert differing == (
        "warning",
        r"The check b reads text differently: in the pattern at rule.value \d knows ASCII only; "
        r"for other scripts write \p{Nd}.",
    )


async def test_such_patterns_are_told_before_the_upgrade(database: Database, look: Look) -> None:
    catalog = CheckedCatalog(database, Time())
    await catalog.publish(a_check("a", ON))
    old = leaf("metadata.name", "matches", value="a++", source="entity")
    await put_into_effect(database, a_check("a", old))
    newest = "DELETE FROM schema_migrations WHERE name LIKE '0042%'"
    await database.write(lambda tx: tx.run(newest))
    [(state, what)] = of(await look(quick=True), "checks")
    assert state == "problem"
    assert what.endswith("has ++, a possessive repeat that RE2 doesn't take; write +.")
