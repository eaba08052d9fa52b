"""The audit in the database."""

import itertools
from functools import partial
from typing import Any, NoReturn

import msgspec
import pytest

from factbook.audit.trail import (
    ACTIONS,
    LONGEST,
    AuditEntry,
    AuditPosition,
    Caller,
    Record,
    append_record,
    append_records,
    audit_writes,
    delete_old_records,
    make_record,
    page_audit,
)
from factbook.auth import tokens, users
from factbook.auth.users import Erasure
from factbook.clock import DAY, MINUTE, Throttle
from factbook.storage import Database, Transaction
from tests.service import NOON

KIM, SAM = "user:default/kim", "user:default/sam"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def made(
    actor: str = KIM, action: str = "set.push", object: str = "a", at: int = NOON, **detail: Any
) -> Record:
    """A record of something done."""
    return make_record(Caller(actor, at, "192.0.2.1", "t1"), AuditEntry(action, object, detail))


async def add(database: Database, *records: Record) -> None:
    await database.write(partial(append_records, records=records))


async def all_of(database: Database, **wanted: Any) -> list[Record]:
    found, more = await page_audit(database, limit=1000, **wanted)
    assert not more
    return found


async def test_records_come_back_as_they_were_newest_first(database: Database) -> None:
    old, new = made(object="old", revision=3), made(SAM, "token.create", "new", NOON + 1)
    await add(database, new)
    await database.write(lambda transaction: append_record(transaction, old))
    assert await all_of(database) == [new, old]
    assert old[2:] == (KIM, "set.push", "old", "done", 0, "192.0.2.1", "t1", '{"revision":3}', "")


async def test_records_of_one_moment_stay_in_their_order_and_each_is_on_one_page(
    database: Database,
) -> None:
    records = [made(object=str(number), at=NOON + number // 5) for number in range(23)]
    await add(database, *records)
    found: list[Record] = []
    after, more = None, True
    while more:
        page, more = await page_audit(database, after=after, limit=4)
        assert len(page) == 4 or not more
        found += page
        after = AuditPosition(page[-1].at, page[-1].id)
    assert found == records[::-1]


async def test_every_combination_of_filters_finds_what_it_says(database: Database) -> None:
    values = {
        "actor": (KIM, SAM, ""),
        "action": ("set.push", "call.refused"),
        "object": ("a", "b"),
        "outcome": ("done", "refused"),
    }
    records = [
        made(actor, action, object, NOON + number * MINUTE)._replace(outcome=outcome)  # type: ignore[arg-type]
        for number, (actor, action, object, outcome) in enumerate(
            itertools.product(*values.values())
        )
    ]
    await add(database, *records)
    for chosen in itertools.product(*((None, *each) for each in values.values())):
        wanted = dict(zip(values, chosen, strict=True))
        expected = [
            record
            for record in reversed(records)
            if all(value in (None, getattr(record, name)) for name, value in wanted.items())
        ]
        assert await all_of(database, **wanted) == expected
        since, until = NOON + 5 * MINUTE, NOON + 9 * MINUTE
        assert await all_of(database, since=since, until=until, **wanted) == [
            record for record in expected if since <= record.at <= until
        ]


@pytest.mark.slow
@pytest.mark.parametrize("days", [0, 3])
async def test_what_is_too_old_is_forgotten_and_nothing_else(database: Database, days: int) -> None:
    records = [made(at=NOON + number // 3) for number in range(5_000)]
    newest = made(at=NOON + 4_000 + DAY)
    await add(database, *records, newest)
    assert await delete_old_records(database, NOON, Throttle()) == 0
    assert await delete_old_records(database, NOON + 1_650 + days, Throttle()) == 4_950 + 3 * days
    assert await all_of(database) == [*records[4_950 + 3 * days :], newest][::-1]


async def test_what_happened_within_a_day_of_the_newest_is_kept(database: Database) -> None:
    old, last_day, newest = made(at=NOON), made(at=NOON + 1), made(at=NOON + DAY)
    assert await delete_old_records(database, NOON, Throttle()) == 0
    await add(database, old, last_day, newest)
    assert await delete_old_records(database, NOON + 9 * DAY, Throttle()) == 1
    assert await all_of(database) == [newest, last_day]


async def test_the_database_itself_refuses_to_change_records_or_to_take_some_out(
    database: Database, subtests: pytest.Subtests
) -> None:
    records = [
        made(object=name, at=NOON + number * DAY) for number, name in enumerate(("a", "b", "c"))
    ]
    await add(database, *records)

    def run(transaction: Transaction, sql: str) -> int:
        return transaction.run(sql)

    for statement, reason in [
        ("UPDATE audit SET actor = 'user:default/sam'", "never changed"),
        ("UPDATE audit SET detail = '{}' WHERE object = 'b'", "never changed"),
        ("DELETE FROM audit", "Only the oldest"),
        ("DELETE FROM audit WHERE object = 'c'", "Only the oldest"),
        ("DELETE FROM audit WHERE object = 'b'", "Only the oldest"),
    ]:
        with subtests.test(statement=statement):
            with pytest.raises(Exception, match=reason):
                await database.write(partial(run, sql=statement))
            assert await all_of(database) == records[::-1]
    oldest = "DELETE FROM audit WHERE object IN ('a', 'b')"
    assert await database.write(lambda transaction: transaction.run(oldest)) == 2


async def test_records_are_changed_by_an_open_erasure_alone_and_to_its_pseudonym_alone(
    database: Database, subtests: pytest.Subtests
) -> None:
    record = made(object=KIM, at=NOON, owner=KIM)
    await add(database, record)
    erasure = Erasure("erased-1f3a9c0d", frozenset({KIM}))
    await database.write(lambda tx: users.save_erasure(tx, KIM, erasure, NOON))
    known = f"actor = '{erasure.ref}'"

    def update(transaction: Transaction, what: str) -> int:
        return transaction.run(f"UPDATE audit SET {what}")  # noqa: S608

    for what in (
        "actor = 'user:default/sam'",
        "actor = 'erased-1f3a9c0d'",
        "actor = 'user:default/erased-00000000'",
        "object = 'user:default/sam'",
        "detail = '{}'",
        "address = ''",
        f"{known}, address = '192.0.2.9'",
        f"{known}, action = 'set.delete'",
        f"{known}, outcome = 'refused'",
        f"{known}, status = 500",
        f"{known}, token = ''",
        f"{known}, granted = 'x'",
        f"{known}, at = at + 1",
        f"{known}, id = '1'",
        f"{known}, object = 'x'",
    ):
        with subtests.test(what=what):
            with pytest.raises(Exception, match="never changed"):
                await database.write(users.open_for_erasure(erasure, partial(update, what=what)))
            assert await all_of(database) == [record]
    with pytest.raises(Exception, match="never changed"):
        await database.write(partial(update, what=known))
    what = f"{known}, object = '{erasure.ref}', detail = '[\"{erasure.pseudonym}\"]', address = ''"
    assert await database.write(users.open_for_erasure(erasure, partial(update, what=what))) == 1
    with pytest.raises(Exception, match="never changed"):
        await database.write(partial(update, what=f"object = '{erasure.pseudonym}'"))


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_the_audit_cannot_be_emptied_at_once(database: Database) -> None:
    await add(database, made())
    with pytest.raises(Exception, match="never changed"):
        await database.write(lambda transaction: transaction.run("TRUNCATE audit"))


async def test_work_that_fails_leaves_no_record(database: Database) -> None:
    def fail(transaction: Transaction) -> NoReturn:
        raise RuntimeError

    caller, entry = Caller(KIM, NOON), AuditEntry("set.push", "a")
    with pytest.raises(RuntimeError):
        await audit_writes(database, caller, entry)(fail)
    assert await all_of(database) == []
    assert await audit_writes(database, caller, entry, 200)(lambda transaction: 7) == 7
    [record] = await all_of(database)
    assert (record.object, record.status) == ("a", 200)


async def test_a_write_that_tells_nothing_of_itself_leaves_no_record(database: Database) -> None:
    write = audit_writes(database, Caller(KIM, NOON), lambda result: None)
    assert await write(lambda transaction: "done") == "done"
    assert await all_of(database) == []


async def test_whatever_text_comes_is_stored_without_what_could_harm(
    database: Database, subtests: pytest.Subtests
) -> None:
    for text, kept in [
        ("a\0b\nc\x1b[31m\ud800", "a\ufffdb\ufffdc\ufffd[31m\ufffd"),
        ("𝄞" * 5_000, "𝄞" * LONGEST),
        ("été: a/b c", "été: a/b c"),
        ("postgresql://kim:hunter2@db/x", "postgresql://[redacted]@db/x"),
    ]:
        with subtests.test(text=text):
            await add(database, made(text, "call.refused", text, note=text, notes=[text]))
            [record] = await all_of(database, actor=text, object=text)
            assert (record.actor, record.object) == (kept, kept)
            if len(text) < LONGEST:
                assert msgspec.json.decode(record.detail) == {"note": kept, "notes": [kept]}


@ON_SQLITE
async def test_a_tokens_value_is_blotted_out_wherever_it_turns_up(database: Database) -> None:
    value = tokens.generate_token()
    text = "x" * (LONGEST - 20) + value
    await add(database, made(value, "call.refused", text, note=text, notes=[value, text]))
    [record] = await all_of(database)
    assert value[:12] not in str(record)
    assert record.actor == "[redacted]"


@ON_SQLITE
async def test_a_detail_that_is_too_large_is_left_out(database: Database) -> None:
    await add(database, made(notes=["x" * 600] * 4))
    [record] = await all_of(database)
    assert record.detail == '{"truncated":true}'


@ON_SQLITE
def test_every_action_has_a_title_of_its_own(database_url: str) -> None:
    assert len(set(ACTIONS.values())) == len(ACTIONS)
    with pytest.raises(AssertionError, match=r"set\.burn"):
        made(action="set.burn")
