"""Database interface used by the rooms above.

One SQL text serves SQLite and PostgreSQL. Parameters are written `?`; `IN LIST(?)` takes a list of
strings or integers as one parameter; `JSON_MEMBER(column, ?)` is the JSON text of a member. Reads
are single statements, each of which sees the latest commit. Writes are synchronous functions that
run in one transaction, off the event loop.

Searches and waits for locks are limited in time, so that no query monopolizes the database.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar, cast

from factbook.errors import UnavailableError

T = TypeVar("T")

Row = tuple[Any, ...]
Parameters = Sequence[Any]
Dialect = Literal["sqlite", "postgresql"]
# Rows that checks read, the most general word first: ("facts", "github").
Topic = tuple[str, ...]
# The ids that a transaction touched.
Touched = dict[Topic, set[int]]

# Seconds. What people ask for takes milliseconds, at a million entities too.
LONGEST_SEARCH = 30.0
# How long a read waits for a replica to show the latest commit, before the primary serves it.
LONGEST_LAG = 0.1
# How long a write to SQLite waits for the write of another process: a push of the largest set
# takes less.
BUSY_SECONDS: Final = 60.0


class RestartError(Exception):
    """Raised in a transaction to have it rolled back and its function run again at once.

    The function has to know by then what it lacked, so that it succeeds in the end.
    """


class Transaction(Protocol):
    """An open transaction, committed when the function that received it returns, or rolled back.

    `is_alone` if no other one writes meanwhile, so that locks do nothing. `touched` has the ids
    that it has touched, by topic, and `evaluation` evaluates the checks that read them; None if
    nothing is evaluated.
    """

    touched: Touched
    evaluation: "EvaluateChecks | None"

    @property
    def is_alone(self) -> bool: ...

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row, or None."""

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row."""

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """Run a statement; returns the number of affected rows."""

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        """Run a statement once for each row of parameters."""

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        """Insert many rows with the database's fastest method; presorted rows insert fastest."""

    def update(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        """Give many rows new values; the first column is their key, and stays."""

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        """Delete the rows with these values in these columns."""

    def lock(self, name: str, *, shared: bool = False) -> None:
        """Wait for the lock with this name and hold it until the end of the transaction.

        A shared lock keeps out only those who want it for themselves alone.
        """

    def lock_patiently(self, name: str) -> None:
        """Wait for the lock with this name alone, without holding up those who share it for long.

        It is tried for a moment at a time, and let go of between. To be taken before any other
        lock, as whoever holds one while it pauses holds up others after all.
        """

    def lock_each(self, names: Mapping[str, bool]) -> None:
        """Wait for several locks, in an order that is the same for everybody.

        The value of a name is true where the lock is shared. These are other locks than those of
        `lock`.
        """

    def try_lock_each(self, names: Mapping[str, bool]) -> bool:
        """Take several locks if nobody has to be waited for; returns false otherwise."""

    def outwait(self, names: Mapping[str, bool]) -> None:
        """Wait until these locks could be had, and take none of them."""

    def aside(self) -> AbstractContextManager["Transaction"]:
        """A short transaction that commits at the end of the block, whatever becomes of this one.

        Its rows are not locked until this one ends. SQLite has no such thing: there it is this one.
        What it touches is touched by this one.
        """

    def touch(self, topic: Topic, ids: Iterable[int]) -> None:
        """Note rows that checks read and that were written; `evaluate_checks` has to follow."""

    def evaluate_checks(self) -> None:
        """Evaluate the checks that read what was touched.

        Call it once, at the end of the function that runs in the transaction: the evaluation takes
        its locks in an order that suits all others, after those of the function's own writes.
        """

    def relax(self) -> None:
        """Let the commit return before it is durable, if the database supports that."""


# May raise RestartError; writes in the same transaction.
EvaluateChecks = Callable[[Transaction], object]


class ChecksPort:
    """The evaluation of checks for transactions of an open database; `checks` fills it in.

    So the rooms below `checks` call it. What is derived is part of their transaction: both are
    committed, or neither is.
    """

    evaluation: EvaluateChecks | None = None


class Touching:
    """The part of a transaction that notes what it touches, and has it evaluated."""

    def __init__(self, evaluation: EvaluateChecks | None) -> None:
        self.touched: Touched = {}
        self.evaluation = evaluation

    def touch(self, topic: Topic, ids: Iterable[int]) -> None:
        new = set(ids)
        if new:
            self.touched.setdefault(topic, set()).update(new)

    def evaluate_checks(self) -> None:
        if self.touched and self.evaluation is not None:
            self.evaluation(cast("Transaction", self))
            self.touched.clear()

    def verify_evaluated(self) -> None:
        """Raise RuntimeError if the function forgot to evaluate what it touched."""
        if self.touched and self.evaluation is not None:
            raise RuntimeError(f"evaluate_checks must follow touch: {sorted(self.touched)}")


class Write(Protocol):
    """Runner of functions in a transaction: `Database.write`, or one that adds its own writes."""

    def __call__(self, function: Callable[[Transaction], T], /) -> Awaitable[T]:
        """Run the function and return its result."""


class ReadSnapshot(Protocol):
    """A snapshot: several reads that see the same state of the database."""

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        """Values gathered by each `LIST_OF(expression)` of the statement, as one list for each.

        The fastest way to read many small rows: the database aggregates them.
        """


class Reads(NamedTuple):
    """Use of the read connections: `taken` of `most`, and the number of reads waiting for one."""

    taken: int
    waiting: int
    most: int


class ReplicaUse(NamedTuple):
    """Use of a read replica: the reads that it `served`, and those that the primary served instead.

    `reason` says why it serves none now; None while it does. `lag` measures the seconds by which it
    is behind at most, 0 if it shows every commit; raises UnavailableError if they are not known.
    """

    served: int
    refused: int
    reason: str | None
    lag: Callable[[], Awaitable[float]]


class Remembered:
    """Objects tied to an open database: one of each type, created on first use."""

    def __init__(self) -> None:
        self._objects: dict[type, Any] = {}

    def of(self, type_: type[T]) -> T:
        """The object of this type."""
        if type_ not in self._objects:
            self._objects[type_] = type_()
        found: T = self._objects[type_]
        return found


class Database(Protocol):
    """An open database."""

    dialect: Dialect
    remembered: Remembered

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row, or None."""

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row. For potentially large results use `pages`."""

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row of a statement that may scan many; other reads are served meanwhile.

        It may run on a read replica that shows every commit made until then.

        Raises UnavailableError if it exceeds the limit of searches.
        """

    def refresh(self) -> None:
        """Make later finds see every commit that any process made before this turn of the loop."""

    async def find(self, sql: str, key: str, *, small: bool = False) -> Row | None:
        """The row whose first column is `key`; `sql` holds one `IN LIST(?)` on that column.

        The cheapest read: SQLite runs it directly on the event loop, and on PostgreSQL the finds
        waiting at the same moment share one query. Rows are distinct by their first column. A small
        row may be cached in memory until a `refresh` detects a commit.
        """

    def pages(
        self, sql: str, parameters: Parameters = (), size: int = 1000
    ) -> AsyncIterator[list[Row]]:
        """The rows of one statement, from one snapshot, `size` at a time; see `search`."""

    def text(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[bytes]:
        """The columns of all rows, which are texts, concatenated as UTF-8, in chunks.

        From one snapshot. The fastest way to produce a long response that only needs concatenation.
        """

    def moment(self) -> AbstractAsyncContextManager[ReadSnapshot]:
        """A snapshot to read from, until the end of the block; see `search`."""

    async def write(self, function: Callable[[Transaction], T]) -> T:
        """Run `function` in a transaction of its own on a writer thread and return its result."""

    async def apart(self, lock: str, statements: Sequence[str], *, unless: str) -> bool:
        """Run statements outside a common transaction; returns true if they were run here.

        They are not run if another process holds the lock, or if `unless` finds a row by then. This
        way a slow statement does not block writes on PostgreSQL.
        """

    def reads(self) -> Reads:
        """Use of the read connections; on SQLite, of those for reads off the event loop."""

    def replica(self) -> ReplicaUse | None:
        """Use of the read replica; None without one."""

    async def check(self) -> None:
        """Return if the database responds; raise UnavailableError otherwise."""

    def trouble(self) -> str | None:
        """A sentence on the failure of the last write; None if it succeeded."""

    async def close(self) -> None:
        """Finish pending writes and close every connection."""


@asynccontextmanager
async def in_time(seconds: float) -> AsyncIterator[None]:
    """Cancel the work in the block after `seconds`; raises UnavailableError then."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise UnavailableError(
            f"The answer was not found within {seconds:.0f} seconds. Ask for less at a time.",
            retry_after=None,
        ) from error
