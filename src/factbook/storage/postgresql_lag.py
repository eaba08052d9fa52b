"""Lag of a replica in seconds, of which the positions in the log alone say nothing.

The time of the last commit that it replayed would be a lag of hours where nobody writes. So it has
none while its position is that of the primary, and what it lacks otherwise was committed after both
that commit and the last look at which it had everything.
"""

import time
from typing import Final

from factbook.errors import UnavailableError
from factbook.storage.postgresql_connections import ReadConnection

NO_STANDBY: Final = "it is no standby: it was promoted, or replica_url names a primary"
_NO_COMMIT: Final = "it has replayed no commit since it was started"


class ShownCommits:
    """The last time at which a replica was seen to show every commit."""

    def __init__(self) -> None:
        self._current_at: float | None = None

    def current(self, at: float) -> None:
        """Note that all commits made until then are shown."""
        self._current_at = at

    async def lag(self, connection: ReadConnection, place: str, asked_at: float) -> float:
        """Seconds by which the replica is behind at most; `place` is where the primary was then.

        Raises UnavailableError if it is no replica, or if nothing is known of its commits.
        """
        row = await (await connection.execute(_LAG, (place,))).fetchone()
        standby, reached, replayed = row or (False, False, None)
        if not standby:
            raise UnavailableError(NO_STANDBY)
        if reached:
            self.current(asked_at)
            return 0.0
        shown = None if self._current_at is None else time.monotonic() - self._current_at
        known = [seconds for seconds in (shown, replayed) if seconds is not None]
        if not known:
            raise UnavailableError(_NO_COMMIT)
        return max(0.0, min(known))


_LAG: Final = """
SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= %s::pg_lsn,
    extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::double precision
"""
