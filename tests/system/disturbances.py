"""What befalls a service in the middle of its work, for tests that bring it about at random.

A disturbance is over when the database takes connections again, and every server process is up.
"""

import logging
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.postgresql_programs import Mode
from tests.processes import ServerProcess
from tests.system.postgresql_pair import Pair

log = logging.getLogger(__name__)

_SOON_SECONDS = 30
_MOST_ENDED = 6
# How long another program keeps a SQLite file to itself, at most: longer than a write waits for it.
LONGEST_HOLD_SECONDS = 1.5
BUSY = {"FACTBOOK_SQLITE_BUSY_TIMEOUT": "1"}

# Work that one process does for others, and for how long it does; taken away from whoever has it.
REMOVED = ("DELETE FROM leases",)
EXPIRED = (
    "UPDATE leases SET held_until = 1",
    "UPDATE batches SET held_until = 1 WHERE held_until > 1",
    "UPDATE webhooks SET held_until = 1 WHERE held_until > 1",
)

# Whoever holds a lock that the product takes by name, or has locked rows to change them.
_END_HOLDERS = """
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE application_name = 'factbook' AND granted
    AND (locktype = 'advisory' OR mode = 'RowExclusiveLock')
"""


class Stage(NamedTuple):
    """Where disturbances happen: the server processes, and the pair of PostgreSQL or the file."""

    servers: Sequence[ServerProcess]
    chance: random.Random
    pair: Pair | None
    file: Path | None

    @classmethod
    def at(
        cls, url: str, servers: Sequence[ServerProcess], chance: random.Random, pair: Pair | None
    ) -> "Stage":
        """The stage of a database with this address; `pair` where that is PostgreSQL."""
        file = Path(urlsplit(url).path) if pair is None else None
        return cls(servers, chance, pair, file)

    def run(self, statements: Sequence[str]) -> None:
        """Change the database by hand, all of the statements in one transaction."""
        if self.pair is not None:
            with self.pair.connect() as connection, connection.transaction():
                for statement in statements:
                    connection.execute(statement.encode())
            return
        assert self.file is not None
        with closing(sqlite3.connect(self.file, timeout=_SOON_SECONDS)) as other, other:
            other.execute("BEGIN IMMEDIATE")
            for statement in statements:
                other.execute(statement)


def stop_a_server(stage: Stage) -> None:
    """Stop a server process in good order, and start it again."""
    _start_again(stage, signal.SIGTERM)


def kill_a_server(stage: Stage) -> None:
    """Kill a server process, and start it again."""
    _start_again(stage, signal.SIGKILL)


def _start_again(stage: Stage, number: signal.Signals) -> None:
    server = stage.chance.choice(stage.servers)
    server.stop(number)
    server.start()


def remove_leases(stage: Stage) -> None:
    """Remove the rows that say who does the work for all, while they do it."""
    stage.run(REMOVED)


def expire_leases(stage: Stage) -> None:
    """Let every claim on work end, while its holder works."""
    stage.run(EXPIRED)


def hold_the_file(stage: Stage) -> None:
    """Keep a SQLite file to oneself for a while, as a program for backups may."""
    assert stage.file is not None
    with closing(sqlite3.connect(stage.file, timeout=_SOON_SECONDS)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(stage.chance.uniform(0.1, LONGEST_HOLD_SECONDS))  # while others wait for it
        other.rollback()


def restart_in_good_order(stage: Stage) -> None:
    """Restart PostgreSQL, which ends what is under way."""
    _restart(stage, "fast")


def restart_as_in_a_crash(stage: Stage) -> None:
    """Restart PostgreSQL, which recovers from its log."""
    _restart(stage, "immediate")


def _restart(stage: Stage, mode: Mode) -> None:
    assert stage.pair is not None
    stage.pair.primary.restart(mode)
    # What the crash cut off while the replica was to confirm it can be read, and may not be there.
    stage.pair.wait_for_replica()


def end_holders_of_locks(stage: Stage) -> None:
    """End the sessions of PostgreSQL that hold locks, a few times, as they come by."""
    assert stage.pair is not None
    ended, end = 0, time.monotonic() + LONGEST_HOLD_SECONDS
    with stage.pair.connect() as operator:
        while ended < _MOST_ENDED and time.monotonic() < end:
            ended += len(operator.execute(_END_HOLDERS).fetchall())
    log.info("%s sessions that held locks were ended", ended)
    stage.pair.wait_for_replica()


def fail_over(stage: Stage) -> None:
    """Kill the primary, and let the replica take its place."""
    assert stage.pair is not None
    stage.pair.fail_over()


def hold_the_replica(stage: Stage) -> None:
    """Let the replica receive the log for a while, and show nothing of it."""
    assert stage.pair is not None
    replica = stage.pair.replica
    replica.run("SELECT pg_wal_replay_pause()")
    time.sleep(stage.chance.uniform(0.1, LONGEST_HOLD_SECONDS))  # while reads wait for it
    replica.run("SELECT pg_wal_replay_resume()")


class Disturbance(NamedTuple):
    """A disturbance; `of_servers` when it stops server processes itself."""

    act: Callable[[Stage], None]
    of_servers: bool = False


ON_ANY = (
    Disturbance(stop_a_server, of_servers=True),
    Disturbance(kill_a_server, of_servers=True),
    Disturbance(remove_leases),
    Disturbance(expire_leases),
)
ON_SQLITE = (*ON_ANY, Disturbance(hold_the_file))
ON_POSTGRESQL = (
    *ON_ANY,
    Disturbance(restart_in_good_order),
    Disturbance(restart_as_in_a_crash),
    Disturbance(end_holders_of_locks),
    Disturbance(fail_over),
)


ON_REPLICA = Disturbance(hold_the_replica)


def dealt(chance: random.Random, pair: Pair | None, *more: Disturbance) -> Iterator[Disturbance]:
    """Disturbances in random order, each of them before one comes again."""
    deck = (*(ON_SQLITE if pair is None else ON_POSTGRESQL), *more)
    while True:
        yield from chance.sample(deck, len(deck))


@contextmanager
def database(kind: str, folder: Path) -> Iterator[tuple[str, Pair | None]]:
    """The address of a new database of a kind, and the pair of PostgreSQL that it is on."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'factbook.db'}", None
        return
    with Pair.running() as pair:
        yield pair.url, pair
