"""What the rooms above see of a database.

One SQL text serves SQLite and PostgreSQL. Parameters are written `?`; `IN LIST(?)` takes a list of
strings or integers as one parameter. Reads are single statements, each of which sees the latest
commit. Writes are synchronous functions that run in one transaction, off the event loop.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

Row = tuple[Any, ...]
Parameters = Sequence[Any]
Dialect = Literal["sqlite", "postgresql"]


class Transaction(Protocol):
    """One open transaction; committed when the function that got it returns, else rolled back."""

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row, or None."""

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row."""

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """Run a statement; the number of rows that it touched."""

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        """Run a statement once for each row of parameters."""

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        """Insert many rows the fastest way that the database has; sorted rows go in quickest."""

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        """Delete the rows that have these values in these columns."""

    def lock(self, name: str) -> None:
        """Wait until no other transaction holds this name; held until the end of this one."""

    def relax(self) -> None:
        """Let the commit return before it is on the disk, where that is possible."""


class Write(Protocol):
    """Runs a function in a transaction: `Database.write`, or what does more in the same one."""

    def __call__(self, function: Callable[[Transaction], T], /) -> Awaitable[T]:
        """What the function returns."""


class ReadSnapshot(Protocol):
    """Several reads that all see the database as it was at the first of them."""

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        """What each `LIST_OF(expression)` of the statement gathers, as one list for each.

        The quickest way to many small rows: the database puts them together.
        """


class Reads(NamedTuple):
    """How many of the `most` connections for reads are taken, and the reads that wait for one."""

    taken: int
    waiting: int
    most: int


class Remembered:
    """What is remembered of an open database: one object of each type, made when asked for."""

    def __init__(self) -> None:
        self._objects: dict[type, Any] = {}

    def of(self, type_: type[T]) -> T:
        """The one object of this type."""
        if type_ not in self._objects:
            self._objects[type_] = type_()
        found: T = self._objects[type_]
        return found


class Database(Protocol):
    """A database that is open."""

    dialect: Dialect
    remembered: Remembered

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row, or None."""

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row. For results that may be large, `pages`."""

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row of a statement that may have to look at many; others are answered meanwhile.

        Raises UnavailableError when it takes longer than a search may (storage/searching.py).
        """

    def refresh(self) -> None:
        """Let the finds that follow see every commit made until now, by whatever process."""

    async def find(self, sql: str, key: str, *, small: bool = False) -> Row | None:
        """The row whose first column is `key`; `sql` holds one `IN LIST(?)` on that column.

        The cheapest read there is: SQLite answers it on the spot, and on PostgreSQL the finds
        that wait at the same moment share one query. Rows are distinct by their first column.
        A small row may be kept in memory until a `refresh` finds that something was committed.
        """

    def pages(
        self, sql: str, parameters: Parameters = (), size: int = 1000
    ) -> AsyncIterator[list[Row]]:
        """The rows of one statement, all of one moment, `size` at a time."""

    def text(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[bytes]:
        """The columns of all rows, which are texts, one after another in UTF-8, in pieces.

        All of one moment. The quickest way to a long answer that only has to be put together.
        """

    def moment(self) -> AbstractAsyncContextManager[ReadSnapshot]:
        """A moment to read at, until the end of the block."""

    async def write(self, function: Callable[[Transaction], T]) -> T:
        """What `function` returns, run in a transaction of its own on a thread for writing."""

    async def apart(self, lock: str, statements: Sequence[str], *, unless: str) -> bool:
        """Run statements that are in no transaction together; whether it was done here.

        It is not when others hold the lock, or when `unless` finds a row by then. What takes long
        on PostgreSQL keeps no write waiting this way.
        """

    def reads(self) -> Reads:
        """How busy the connections for reads are; on SQLite those for reads off the event loop."""

    async def check(self) -> None:
        """Return when the database answers; raise UnavailableError when it does not."""

    def trouble(self) -> str | None:
        """Why the last write could not be done, in a sentence; None when it could."""

    async def close(self) -> None:
        """Finish the writes under way and let go of every connection."""
