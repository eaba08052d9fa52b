"""Opening and migrating the database at a URL."""

from pathlib import Path
from typing import Final

from factbook.errors import ConfigurationError, UnavailableError
from factbook.settings.table import check_database_url
from factbook.storage.database import BUSY_SECONDS, LONGEST_LAG, LONGEST_SEARCH, Database

_SERVERS: Final = ("postgresql://", "postgres://")
_NO_REPLICA: Final = "replica_url has to start with postgresql://, and database_url as well."


async def open_database(
    url: str,
    *,
    connections: int = 8,
    longest_search: float = LONGEST_SEARCH,
    busy_seconds: float = BUSY_SECONDS,
    replica_url: str | None = None,
    longest_lag: float = LONGEST_LAG,
) -> Database:
    """Open the database at `url`: `sqlite:///relative`, `sqlite:////absolute`, `postgresql://…`.

    Times are in seconds: `longest_search` limits a search, `busy_seconds` is how long a write to
    SQLite waits for another process's write, and `longest_lag` how long a read waits for the
    replica at `replica_url` before the primary serves it. Raises ConfigurationError for any other
    URL, UnavailableError if the database cannot be reached.
    """
    check_database_url(url)
    if replica_url is not None and not all(one.startswith(_SERVERS) for one in (url, replica_url)):
        raise ConfigurationError(_NO_REPLICA)
    if url.startswith("sqlite:///"):
        return _open_sqlite(sqlite_path(url), longest_search, busy_seconds)
    # The driver is slow to import, and a service on SQLite doesn't need it.
    from factbook.storage.postgresql import PostgreSQL  # noqa: PLC0415

    return await PostgreSQL.open(
        url,
        connections,
        longest_search=longest_search,
        replica_url=replica_url,
        longest_lag=longest_lag,
    )


def _open_sqlite(path: Path, longest_search: float, busy_seconds: float) -> Database:
    # Not needed on PostgreSQL, or by code that only uses the protocol.
    from factbook.storage.sqlite import SQLite  # noqa: PLC0415

    try:
        return SQLite(path, longest_search=longest_search, busy_seconds=busy_seconds)
    except (UnavailableError, OSError) as error:
        reason = error.__cause__ or error
        told = UnavailableError(f"The database {path} cannot be opened: {reason}.")
        for note in getattr(error, "__notes__", ()):
            told.add_note(note)
        raise told from error


def is_there(url: str) -> bool:
    """Return false if the SQLite file is missing; opening it would create it."""
    return not url.startswith("sqlite:///") or sqlite_path(url).exists()


def sqlite_path(url: str) -> Path:
    """The path of the file in a `sqlite:///` URL."""
    path = url.removeprefix("sqlite:///")
    if not path or path == ":memory:":
        raise ConfigurationError("database_url has to name a file: sqlite:///PATH.")
    return Path(path)
