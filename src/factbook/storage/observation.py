"""The one hook for statements and transactions, which serves counting and tracing alike.

Without an observer a database is used as it is, and where an observer sees no statements its reads
are the database's own methods: watching costs nothing where nobody watches.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, Protocol, TypeVar, cast

from factbook.storage.database import (
    Database,
    EvaluateChecks,
    Parameters,
    ReadSnapshot,
    Transaction,
)

T = TypeVar("T")
Call = TypeVar("Call", bound=Callable[..., Any])

# Entered around each statement. One without a text is given by its operation and its table.
Around = Callable[[str, str], AbstractContextManager[None]]
# Entered on the writer's thread around the function; yields what its statements are seen by.
Running = Callable[[], AbstractContextManager[Around | None]]


class Observer(Protocol):
    """Watches a database: every write and, unless `statement` is None, every statement."""

    @property
    def statement(self) -> Around | None:
        """Entered around each statement outside a write."""

    def write(self) -> AbstractContextManager[Running]:
        """Entered around a write, with its wait for a writer."""


def observed(database: Database, observer: Observer) -> Database:
    """The same database, watched by an observer."""
    return _ObservedDatabase(database, observer)


def _awaited(call: Call, around: Around | None) -> Call:
    """The same call of a database, with its statement watched."""
    if around is None:
        return call

    async def watched(sql: str, *arguments: Any, **named: Any) -> Any:
        with around(sql, ""):
            return await call(sql, *arguments, **named)

    return cast(Call, watched)


def _streamed(call: Call, around: Around | None) -> Call:
    """The same for a call whose rows come in portions: the statement ends with the last."""
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
        self.one, self.all = _awaited(inner.one, around), _awaited(inner.all, around)
        self.search, self.find = _awaited(inner.search, around), _awaited(inner.find, around)
        self.pages, self.text = _streamed(inner.pages, around), _streamed(inner.text, around)
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
        self.columns = _awaited(inner.columns, around)


class _ObservedTransaction:
    def __init__(self, inner: Transaction, around: Around) -> None:
        self._inner, self._around = inner, around
        self.relax, self.is_alone = inner.relax, inner.is_alone
        self.touch, self.touched = inner.touch, inner.touched
        # Statements of the evaluation are not watched.
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
