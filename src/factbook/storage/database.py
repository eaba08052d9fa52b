"""The database interface for the packages above, and code that both databases share.

One SQL text serves SQLite and PostgreSQL. Parameters are written `?`; `IN LIST(?)` takes a list of
strings or integers as one parameter; `JSON_MEMBER(column, ?)` is the JSON text of a member. Reads
are single statements, each of which sees the latest commit. Writes are synchronous functions that
run in one transaction, off the event loop. Searches and waits for locks are limited in time, so
that no query monopolizes the database.

Below the interface: the translation of SQL, counters that all processes share, and the one hook for
statements and transactions, which counting and tracing use. The hook is free when unused.
"""

import asyncio
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import lru_cache
from textwrap import dedent
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

# Seconds. Interactive searches take milliseconds, even with a million entities.
LONGEST_SEARCH = 30.0
# How long a read waits for a replica to show the latest commit, before the primary serves it.
LONGEST_LAG = 0.1
# How long a write to SQLite waits for another process's write; pushing the largest set takes less.
BUSY_SECONDS: Final = 60.0


class RestartError(Exception):
    """Raised in a transaction to roll it back and rerun its function immediately.

    The function must remember what it was missing; otherwise it restarts forever.
    """


class Transaction(Protocol):
    """An open transaction, committed when the function that received it returns, or rolled back.

    `is_alone` is true if no other transaction can write at the same time; locks then do nothing.
    `touched` holds the touched ids by topic, and `evaluation` evaluates the checks that read them;
    None if nothing is evaluated.
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
        """Update many rows; the first column is the key and is not changed."""

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        """Delete the rows with these values in these columns."""

    def lock(self, name: str, *, shared: bool = False) -> None:
        """Wait for the lock with this name and hold it until the end of the transaction.

        A shared lock excludes only exclusive holders.
        """

    def lock_patiently(self, name: str) -> None:
        """Wait for this lock exclusively without blocking its sharers for long.

        Each attempt is short, with a pause between attempts. Take it before any other lock: a lock
        held during the pauses would block other transactions.
        """

    def lock_each(self, names: Mapping[str, bool]) -> None:
        """Wait for several locks, always in the same order.

        A name maps to true if its lock is shared. These locks are separate from those of `lock`.
        """

    def try_lock_each(self, names: Mapping[str, bool]) -> bool:
        """Take several locks if all are free; returns false otherwise."""

    def outwait(self, names: Mapping[str, bool]) -> None:
        """Wait until these locks are free, without taking them."""

    def aside(self) -> AbstractContextManager["Transaction"]:
        """A short transaction that commits at the end of the block, even if this one rolls back.

        Its row locks are released at that commit. SQLite has no equivalent, so this transaction is
        used there. Rows touched by the short transaction count as touched by this one.
        """

    def touch(self, topic: Topic, ids: Iterable[int]) -> None:
        """Note written rows that checks read; call `evaluate_checks` afterwards."""

    def evaluate_checks(self) -> None:
        """Evaluate the checks that read touched rows.

        Call it once, at the end of the function that runs in the transaction: to prevent deadlocks,
        the evaluation takes its locks after those of the function's own writes.
        """

    def relax(self) -> None:
        """Let the commit return before it is durable, if the database supports that."""


# May raise RestartError; writes in the same transaction.
EvaluateChecks = Callable[[Transaction], object]


class ChecksPort:
    """The evaluation of checks for transactions of an open database; `checks` fills it in.

    Packages below `checks` call it through this port. Results are written in the caller's
    transaction, so the change and its results commit together or not at all.
    """

    evaluation: EvaluateChecks | None = None


class Touching:
    """The part of a transaction that records touched rows and evaluates their checks."""

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
        """One list of values for each `LIST_OF(expression)` in the statement.

        The fastest way to read many small rows: the database aggregates them.
        """


class Reads(NamedTuple):
    """Use of the read connections: `taken` of `most`, and the number of reads waiting for one."""

    taken: int
    waiting: int
    most: int


class ReplicaUse(NamedTuple):
    """Use of a read replica: reads that it `served`, and reads that the primary served instead.

    `reason` is why the replica currently serves no reads, None if it does. `lag` measures its
    maximum lag in seconds, 0 if it shows every commit; raises UnavailableError if unknown.
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

        It may run on a read replica that shows every commit made so far.

        Raises UnavailableError if it exceeds the time limit for searches.
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
        """The text columns of all rows, from one snapshot, concatenated as UTF-8, in chunks.

        The fastest way to produce a long response that only needs concatenation.
        """

    def moment(self) -> AbstractAsyncContextManager[ReadSnapshot]:
        """A read snapshot for the duration of the block; see `search`."""

    async def write(self, function: Callable[[Transaction], T]) -> T:
        """Run `function` in a transaction of its own on a writer thread and return its result."""

    async def apart(self, lock: str, statements: Sequence[str], *, unless: str) -> bool:
        """Run statements outside a common transaction; returns true if they were run here.

        They are skipped if another process holds the lock, or if `unless` finds a row. A slow
        statement run this way does not block writes on PostgreSQL.
        """

    def reads(self) -> Reads:
        """Use of the read connections; on SQLite, of those for reads off the event loop."""

    def replica(self) -> ReplicaUse | None:
        """Use of the read replica; None without one."""

    async def check(self) -> None:
        """Return if the database responds; raise UnavailableError otherwise."""

    def trouble(self) -> str | None:
        """A sentence on why the last write failed; None if it succeeded."""

    async def close(self) -> None:
        """Finish pending writes and close every connection."""


@asynccontextmanager
async def limit_time(seconds: float) -> AsyncIterator[None]:
    """Cancel the block after `seconds` and raise UnavailableError."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise UnavailableError(
            f"The answer was not found within {seconds:.0f} seconds. Ask for less at a time.",
            retry_after=None,
        ) from error


# An early 0001 created other indexes; a migration that drops one must also work on its databases.
_DROP_INDEX = r"DROP INDEX(?! IF EXISTS)"
_SCHEMA_WORDS = {
    "sqlite": {
        "SERIAL_KEY": "INTEGER PRIMARY KEY",
        "SORTED_TEXT": "TEXT",
        "POSITION": "instr",
        "CONCURRENTLY ": "",
        "WITHOUT ROWID": "WITHOUT ROWID",
        _DROP_INDEX: "DROP INDEX IF EXISTS",
    },
    # A linguistic collation would order the same references differently from SQLite.
    "postgresql": {
        "SORTED_TEXT": 'TEXT COLLATE "C"',
        "INTEGER": "BIGINT",
        "BLOB": "BYTEA",
        # A key that the database assigns in insertion order.
        "SERIAL_KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "POSITION": "strpos",
        "WITHOUT ROWID": "",
        _DROP_INDEX: "DROP INDEX IF EXISTS",
    },
}

# Statements nested in another one, as in a trigger, are on indented lines.
_STATEMENT_END = re.compile(r";\s*(?:\n(?=\S)|$)")


def translate_schema(sql: str, dialect: str) -> list[str]:
    """The statements of a migration, translated for one database."""
    for word, translation in _SCHEMA_WORDS[dialect].items():
        sql = re.sub(rf"\b{word}\b", translation, sql)
    sql = re.sub(r"--.*", "", _select_dialect_lines(dedent(sql), dialect))
    return [statement.strip() for statement in _STATEMENT_END.split(sql) if statement.strip()]


def _select_dialect_lines(sql: str, dialect: str) -> str:
    """The lines for this database; PostgreSQL skips those after `-- On sqlite:`."""
    kept, mine = [], True
    for line in sql.splitlines():
        if heading := re.fullmatch(r"-- On (sqlite|postgresql|both):", line):
            mine = heading[1] in (dialect, "both")
        elif mine:
            kept.append(line)
    return "\n".join(kept)


def builds_concurrently(sql: str) -> bool:
    """Return true if a migration creates indexes concurrently with writes."""
    return "INDEX CONCURRENTLY" in sql


def translate_for_transaction(sql: str, dialect: str) -> list[str]:
    """The statements for a transaction, which cannot create indexes concurrently."""
    statements = translate_schema(sql.replace("INDEX CONCURRENTLY ", "INDEX "), dialect)
    if not builds_concurrently(sql):
        return statements
    # On a new database an earlier migration may have created an index with the same name.
    return [each for one in statements for each in (render_drop_index(one), one)]


def render_drop_index(statement: str) -> str:
    """The statement that drops the index created by `statement`, if it exists."""
    found = re.match(r"CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(\w+)", statement)
    assert found, statement
    return f"DROP INDEX {found[1] or ''}IF EXISTS {found[2]}"


_FOR_UPDATE = re.compile(r"\sFOR UPDATE( OF \w+ SKIP LOCKED)?")

# Milliseconds since the epoch, by the clock of the database server.
_SQLITE_TIME = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
_POSTGRESQL_TIME = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"

# A member of a JSON object as JSON text, in byte order; NULL if missing. SQLite doesn't accept
# names with a quote, a backslash or a control character.
_MEMBER = re.compile(r"JSON_MEMBER\(([\w.]+), \?\)")
_SQLITE_MEMBER = r"""(\1 -> ('$."' || ? || '"'))"""
_POSTGRESQL_MEMBER = r"""(CAST(CAST(\1 AS JSON) -> ? AS TEXT) COLLATE "C")"""


@lru_cache(maxsize=1024)
def translate_to_sqlite(sql: str) -> tuple[str, bool]:
    """The statement for SQLite, and true if lists among its parameters must become JSON."""
    listed = "IN LIST(?)" in sql
    sql = sql.replace("LIST_OF(", "json_group_array(")
    # SQLite has one writer at a time.
    sql = _FOR_UPDATE.sub("", sql).replace("DATABASE_TIME()", _SQLITE_TIME)
    sql = _MEMBER.sub(_SQLITE_MEMBER, sql)
    return sql.replace("IN LIST(?)", "IN (SELECT value FROM json_each(?))"), listed


@lru_cache(maxsize=1024)
def translate_find(sql: str) -> str:
    """The statement of a `find`, for a single key."""
    return sql.replace("IN LIST(?)", "= ?")


@lru_cache(maxsize=1024)
def translate_to_postgresql(sql: str) -> str:
    """The statement for psycopg."""
    sql = sql.replace("%", "%%").replace("LIST_OF(", "array_agg(").replace(" BLOB)", " BYTEA)")
    sql = _MEMBER.sub(_POSTGRESQL_MEMBER, sql.replace("DATABASE_TIME()", _POSTGRESQL_TIME))
    return sql.replace("IN LIST(?)", "= ANY(?)").replace("?", "%s")


COUNTER_VALUE: Final = "SELECT value FROM counters WHERE name = ?"


def render_counter(name: str) -> str:
    """The value of a counter as an expression of SQL, for statements that compare with it."""
    return f"({COUNTER_VALUE.replace('?', repr(name))})"


async def fetch_counter(database: Database, name: str) -> int:
    """The value of a counter; 0 if it doesn't exist."""
    row = await database.one(COUNTER_VALUE, (name,))
    return int(row[0]) if row else 0


async def fetch_counter_cached(database: Database, name: str) -> int:
    """The value of a counter as of the last `refresh`; nearly free."""
    row = await database.find(_COUNTER_FOUND, name, small=True)
    return int(row[1]) if row else 0


def select_counter(transaction: Transaction, name: str) -> int:
    """The value of a counter within a transaction; 0 if it doesn't exist."""
    row = transaction.one(COUNTER_VALUE, (name,))
    return int(row[0]) if row else 0


def put_counter(transaction: Transaction, name: str, number: int) -> None:
    """Set a counter; no other transaction may increment it at the same time."""
    transaction.run("UPDATE counters SET value = ? WHERE name = ?", (number, name))


def lift_counter(transaction: Transaction, name: str, number: int) -> None:
    """Raise a counter to at least this number."""
    transaction.run(
        "UPDATE counters SET value = ? WHERE name = ? AND value < ?", (number, name, number)
    )


def take_numbers(transaction: Transaction, name: str, count: int = 1) -> range:
    """Increment a counter and return `count` consecutive integers that were never used before."""
    if count == 0:
        return range(0)
    row = transaction.one(_TAKE_NUMBERS, (count, name))
    assert row is not None
    return range(row[0] - count + 1, row[0] + 1)


def take_numbers_aside(transaction: Transaction, name: str, count: int) -> range:
    """Like `take_numbers`, without blocking other transactions if this one is long.

    If the transaction fails, its integers are never used.
    """
    if count == 0:
        return range(0)
    with transaction.aside() as aside:
        return take_numbers(aside, name, count)


_COUNTER_FOUND: Final = "SELECT name, value FROM counters WHERE name IN LIST(?)"

_TAKE_NUMBERS = "UPDATE counters SET value = value + ? WHERE name = ? RETURNING value"


Call = TypeVar("Call", bound=Callable[..., Any])

# Entered around each statement: its SQL, or its operation and table.
Around = Callable[[str, str], AbstractContextManager[None]]
# Entered on the writer thread around the function; yields the hook for its statements.
Running = Callable[[], AbstractContextManager[Around | None]]


class Observer(Protocol):
    """Watches a database: every write and, unless `statement` is None, every statement."""

    @property
    def statement(self) -> Around | None:
        """The context manager for each statement outside a write."""

    def write(self) -> AbstractContextManager[Running]:
        """The context manager for a write, including its wait for a writer."""


def observe_database(database: Database, observer: Observer) -> Database:
    """Wrap the database so that the observer sees its writes and statements."""
    return _ObservedDatabase(database, observer)


def _watch_call(call: Call, around: Around | None) -> Call:
    if around is None:
        return call

    async def watched(sql: str, *arguments: Any, **named: Any) -> Any:
        with around(sql, ""):
            return await call(sql, *arguments, **named)

    return cast(Call, watched)


def _watch_portions(call: Call, around: Around | None) -> Call:
    """Watch a call that returns rows in portions: the statement ends with the last one."""
    if around is None:
        return call

    async def watched(sql: str, *arguments: Any, **named: Any) -> AsyncIterator[Any]:
        with around(sql, ""):
            async for portion in call(sql, *arguments, **named):
                yield portion

    return cast(Call, watched)


class _ObservedDatabase:
    def __init__(self, inner: Database, observer: Observer) -> None:
        self._inner, self._observer = inner, observer
        self.dialect, self.remembered = inner.dialect, inner.remembered
        around = observer.statement
        self.one, self.all = _watch_call(inner.one, around), _watch_call(inner.all, around)
        self.search, self.find = _watch_call(inner.search, around), _watch_call(inner.find, around)
        self.pages, self.text = (
            _watch_portions(inner.pages, around),
            _watch_portions(inner.text, around),
        )
        self.refresh, self.close, self.check = inner.refresh, inner.close, inner.check
        self.apart, self.trouble, self.reads = inner.apart, inner.trouble, inner.reads
        self.replica = inner.replica

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[ReadSnapshot]:
        async with self._inner.moment() as moment:
            yield _ObservedSnapshot(moment, self._observer.statement)

    async def write(self, function: Callable[[Transaction], T]) -> T:
        with self._observer.write() as running:

            def work(transaction: Transaction) -> T:
                with running() as around:
                    if around is None:
                        return function(transaction)
                    return function(_ObservedTransaction(transaction, around))

            return await self._inner.write(work)


class _ObservedSnapshot:
    def __init__(self, inner: ReadSnapshot, around: Around | None) -> None:
        self.columns = _watch_call(inner.columns, around)


class _ObservedTransaction:
    def __init__(self, inner: Transaction, around: Around) -> None:
        self._inner, self._around = inner, around
        self.relax, self.is_alone = inner.relax, inner.is_alone
        self.touch, self.touched = inner.touch, inner.touched
        # The evaluation's statements are not watched.
        self.evaluate_checks = inner.evaluate_checks
        self.one, self.all = self._watched(inner.one), self._watched(inner.all)
        self.run, self.many = self._watched(inner.run), self._watched(inner.many)

    @property
    def evaluation(self) -> EvaluateChecks | None:
        return self._inner.evaluation

    @evaluation.setter
    def evaluation(self, evaluation: EvaluateChecks | None) -> None:
        self._inner.evaluation = evaluation

    def _watched(self, call: Call) -> Call:
        def watched(sql: str, *arguments: Any, **named: Any) -> Any:
            with self._around(sql, ""):
                return call(sql, *arguments, **named)

        return cast(Call, watched)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        with self._around("INSERT", table):
            self._inner.insert(table, columns, rows)

    def update(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        with self._around("UPDATE", table):
            self._inner.update(table, columns, rows)

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        with self._around("DELETE", table):
            self._inner.delete(table, columns, rows)

    def lock(self, name: str, *, shared: bool = False) -> None:
        with self._around("LOCK", ""):
            self._inner.lock(name, shared=shared)

    def lock_patiently(self, name: str) -> None:
        with self._around("LOCK", ""):
            self._inner.lock_patiently(name)

    def lock_each(self, names: Mapping[str, bool]) -> None:
        with self._around("LOCK", ""):
            self._inner.lock_each(names)

    def try_lock_each(self, names: Mapping[str, bool]) -> bool:
        with self._around("LOCK", ""):
            return self._inner.try_lock_each(names)

    def outwait(self, names: Mapping[str, bool]) -> None:
        with self._around("LOCK", ""):
            self._inner.outwait(names)

    @contextmanager
    def aside(self) -> Iterator[Transaction]:
        with self._inner.aside() as aside:
            yield _ObservedTransaction(aside, self._around)
