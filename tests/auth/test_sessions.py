"""Sessions in the database."""

from typing import Any

from factbook.auth import permissions, sessions, users
from factbook.auth.sessions import Session, SessionSummary
from factbook.clock import DAY, MINUTE
from factbook.settings import Settings
from factbook.storage import Database
from factbook.worker import sweep
from tests.service import NOON

KIM = "user:default/kim"
LOU = "user:default/lou"


async def add_person(database: Database, ref: str = KIM, role: str = "administrator") -> None:
    await database.write(
        lambda tx: users.create_user(
            tx, ref=ref, display_name="Kim K.", role=role, created_by="test", now=NOON
        )
    )


async def start(database: Database, hash_: str, **given: Any) -> None:
    """A session of Kim's."""
    wanted = {
        "ref": KIM,
        "now": NOON,
        "lifetime": sessions.SESSION_LIFETIME,
        "address": "192.0.2.7",
        "agent": "a browser",
        **given,
    }
    await database.write(lambda tx: sessions.start_session(tx, hash=hash_, **wanted))


async def found(database: Database, hash_: str) -> Session | None:
    database.refresh()
    return await sessions.find_session(database, hash_)


async def ids(database: Database, ref: str = KIM) -> list[str]:
    return [one.id for one in await sessions.list_sessions(database, ref)]


def test_values_differ_and_their_hashes_depend_on_the_key() -> None:
    one, two = sessions.generate_cookie(), sessions.generate_cookie()
    assert one != two
    assert len(one) >= 43
    assert len({sessions.hash_cookie(v, key) for v in (one, two) for key in (b"k", b"K")}) == 4
    assert one not in sessions.hash_cookie(one, b"k")


async def test_a_session_is_found_by_its_hash_alone_with_the_person(database: Database) -> None:
    await add_person(database)
    await start(database, "d1" * 32)
    await start(database, "d2" * 32)
    session = await found(database, "d1" * 32)
    assert session == Session(
        "d1" * 32, KIM, "Kim K.", "administrator", NOON, NOON, NOON + 14 * DAY, None
    )
    assert session.permissions == permissions.PERMISSION_NAMES
    for hash_ in ("d3", "", "D1" * 32, session.id):
        assert await found(database, hash_) is None


async def test_a_session_counts_for_14_days_and_3_days_after_its_last_use(
    database: Database,
) -> None:
    await add_person(database)
    await start(database, "d1")
    session = await found(database, "d1")
    assert session is not None
    assert session.counts(NOON + 3 * DAY - 1)
    assert not session.counts(NOON + 3 * DAY)
    used = session._replace(used_at=NOON + 13 * DAY)
    assert used.counts(NOON + 14 * DAY - 1)
    assert not used.counts(NOON + 14 * DAY)
    assert session.counts(NOON - DAY), "a clock that is set back puts nobody out"


async def test_a_change_of_the_person_shows_in_the_session_at_once(database: Database) -> None:
    await add_person(database)
    await add_person(database, LOU)
    await start(database, "d1")
    await found(database, "d1")
    await database.write(lambda tx: users.change_user_role(tx, KIM, permissions.VIEWER, NOON))
    session = await found(database, "d1")
    assert session is not None
    assert session.permissions == permissions.ROLES[permissions.VIEWER]
    await database.write(lambda tx: users.rename_user(tx, KIM, "Kim L."))
    session = await found(database, "d1")
    assert session is not None
    assert session.display_name == "Kim L."


async def test_sessions_are_listed_by_an_id_that_opens_nothing_last_used_first(
    database: Database,
) -> None:
    await add_person(database)
    await start(database, "d1" * 32)
    await start(database, "d2" * 32, now=NOON + 1, lifetime=5, agent="x" * 500)
    await start(database, "d3" * 32, ref=LOU)
    assert await sessions.list_sessions(database, KIM) == [
        SessionSummary("d2" * 8, NOON + 1, NOON + 1, NOON + 6, "192.0.2.7", "x" * 200),
        SessionSummary("d1" * 8, NOON, NOON, NOON + 14 * DAY, "192.0.2.7", "a browser"),
    ]
    session = await found(database, "d2" * 32)
    assert session is not None
    assert session.id == "d2" * 8
    assert await found(database, "d2" * 8) is None


async def test_a_session_that_is_ended_is_not_found_any_more(database: Database) -> None:
    await add_person(database)
    await start(database, "d1")
    await start(database, "d2")
    assert await found(database, "d1")
    await database.write(lambda tx: sessions.end_session(tx, "d1"))
    assert await found(database, "d1") is None
    assert await found(database, "d2")


async def test_a_person_ends_a_session_by_its_id_and_nobody_elses(database: Database) -> None:
    await start(database, "d1" * 32)
    await start(database, "d2" * 32, ref=LOU)
    assert await database.write(lambda tx: sessions.end_session_by_id(tx, KIM, "d1" * 8))
    assert not await database.write(lambda tx: sessions.end_session_by_id(tx, KIM, "d2" * 8))
    assert not await database.write(lambda tx: sessions.end_session_by_id(tx, KIM, ""))
    assert await ids(database) == []
    assert await ids(database, LOU) == ["d2" * 8]


async def test_a_person_ends_every_session_but_the_own_one(database: Database) -> None:
    for hash_ in ("d1", "d2", "d3"):
        await start(database, hash_)
    await start(database, "d4", ref=LOU)
    assert await database.write(lambda tx: sessions.end_other_sessions(tx, KIM, "d2")) == 2
    assert await ids(database) == ["d2"]
    assert await ids(database, LOU) == ["d4"]


async def test_a_use_is_noted_once_a_minute(database: Database) -> None:
    await add_person(database)
    await start(database, "d1")
    for later, noted in ((MINUTE - 1, 0), (MINUTE, MINUTE), (MINUTE + 5, MINUTE)):
        now = NOON + later
        await database.write(lambda tx, now=now: sessions.record_session_use(tx, "d1", now))  # type: ignore[misc]
        session = await found(database, "d1")
        assert session is not None
        assert session.used_at == NOON + noted


async def test_housekeeping_forgets_what_has_ended_or_lies_idle(database: Database) -> None:
    later = NOON + 3 * DAY
    await start(database, "idle")
    await start(database, "ended", now=later - 5, lifetime=5)
    await start(database, "kept", now=later - 5, lifetime=6)
    await sweep(database, Settings(), (), later)
    assert await ids(database) == ["kept"]
