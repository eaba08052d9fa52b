"""A primary of PostgreSQL and a replica that confirms its commits, for tests of a failover."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from tests.processes import free_port
from tests.system.postgresql_server import Cluster
from tests.waiting import until


class Pair:
    """Two servers on two fixed ports of loopback; a failover makes them change places.

    `url` names both. A commit is acknowledged when both have it, but for the time from a failover
    until the dead server has come back as a replica.
    """

    def __init__(self, stack: ExitStack, primary: Cluster) -> None:
        self.primary = primary
        self.url = ""
        self._stack = stack
        self._add_replica(free_port())
        ports = (primary.port, self.replica.port)
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.url = f"postgresql://postgres@{hosts}/factbook"

    @classmethod
    @contextmanager
    def running(cls) -> "Iterator[Pair]":
        """A new pair, removed at the end of the block."""
        with ExitStack() as stack:
            yield cls(stack, stack.enter_context(Cluster.running()))

    def fail_over(self) -> None:
        """Kill the primary, promote the replica, and bring the dead server back as a replica."""
        dead = self.primary
        dead.kill()
        self.replica.promote()
        self.primary = self.replica
        self._add_replica(dead.port)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, run on the primary in a session of its own."""
        return self.primary.run(sql)

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """A session on the primary, which commits every statement."""
        return self.primary.connect()

    def wait_for_replica(self) -> None:
        """Return when the replica has all that was written until now, and confirms commits."""
        [(written,)] = self.run("SELECT pg_current_wal_flush_lsn()")
        confirmed = "SELECT flush_lsn >= '{}' FROM pg_stat_replication WHERE sync_state = 'sync'"
        has_it = confirmed.format(written)
        until(lambda: (True,) in self.run(has_it), told=self._read_logs)

    def _add_replica(self, port: int) -> None:
        """Create a replica of the primary, which from then on waits for it with every commit."""
        # A copy of a server that waits for a replica would do so as well, once it is promoted.
        self._let_primary_wait_for("''")
        self.replica = self._stack.enter_context(self.primary.replica(port))
        self._let_primary_wait_for("'*'")
        self.wait_for_replica()

    def _read_logs(self) -> str:
        servers = {"primary": self.primary, "replica": self.replica}
        return "\n".join(
            f"Log of the {name}:\n{(server.home / 'log').read_text(errors='replace')[-3000:]}"
            for name, server in servers.items()
        )

    def _let_primary_wait_for(self, names: str) -> None:
        self.run(f"ALTER SYSTEM SET synchronous_standby_names = {names}")
        self.run("SELECT pg_reload_conf()")
