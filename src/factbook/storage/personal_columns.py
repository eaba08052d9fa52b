"""Replacement of texts that name a person in the columns of a table, in portions.

Reads find the portions, so each write locks only the rows it changes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

from factbook.storage.database import Database, Transaction, Write, take_numbers

# Rows read at a time, and changed at a time if all of them name the person.
_ROWS_AT_ONCE: Final = 1_000

Values = Mapping[str, Any]


class PersonalColumns(NamedTuple):
    """Columns of a table that can name people, and a word for its rows.

    `own` is the column with the person a row belongs to: such rows are deleted separately.
    `counter` counts changes; processes reread the rows when it changes.
    """

    title: str
    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    own: str = ""
    counter: str = ""


class _Change(NamedTuple):
    key: tuple[Any, ...]
    before: Values
    after: Values


# The columns of a row that change, with their new texts.
Rewrite = Callable[[str, Values], Values]


async def replace_personal_texts(
    database: Database,
    where: PersonalColumns,
    texts: Sequence[str],
    rewrite: Rewrite,
    write: Write | None,
) -> int:
    """Rewrite the rows that contain one of these lowercase texts; returns their number.

    Without `write`, only count them.
    """
    key = ", ".join(where.key)
    columns = [*where.columns, *([where.own] if where.own else [])]
    whole = "lower(" + " || ' ' || ".join(f"coalesce({one}, '')" for one in where.columns) + ")"
    named = " OR ".join([f"{whole} LIKE ? ESCAPE '!'"] * len(texts))
    patterns = [f"%{_escape_pattern(text)}%" for text in texts]
    place = f"({', '.join('?' * len(where.key))})"
    count = 0
    after: tuple[Any, ...] = ()
    while True:
        since = f"({key}) > {place}" if after else "1 = 1"
        end = await _find_portion_end(database, where.table, key, since, after)
        until = f"({key}) <= {place}" if end else "1 = 1"
        rows = await database.search(
            f"SELECT {key}, {', '.join(columns)} FROM {where.table} "
            f"WHERE {since} AND {until} AND ({named}) ORDER BY {key}",
            (*after, *end, *patterns),
        )
        changes = []
        for row in rows:
            before = dict(zip(columns, row[len(where.key) :], strict=True))
            if new := rewrite(where.table, before):
                changes.append(_Change(row[: len(where.key)], before, new))
        if changes and write is not None:
            await write(partial(_store_changes, where=where, changes=changes))
        count, after = count + len(changes), end
        if not end:
            return count


async def _find_portion_end(
    database: Database, table: str, key: str, since: str, after: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The key of the last row of the next portion; empty if fewer rows remain."""
    sql = (
        f"SELECT {key} FROM {table} WHERE {since} ORDER BY {key} LIMIT 1 OFFSET {_ROWS_AT_ONCE - 1}"
    )
    rows = await database.search(sql, after)
    return rows[0] if rows else ()


def _store_changes(
    transaction: Transaction, *, where: PersonalColumns, changes: list[_Change]
) -> None:
    """Write rows that have not changed since they were read; the next pass finds the others."""
    for names, several in groupby(
        sorted(changes, key=_list_changed_columns), key=_list_changed_columns
    ):
        values = ", ".join(f"{name} = ?" for name in names)
        same = " AND ".join(f"{name} = ?" for name in (*where.key, *names))
        transaction.many(
            f"UPDATE {where.table} SET {values} WHERE {same}",
            [
                (*one.after.values(), *one.key, *(one.before[name] for name in names))
                for one in several
            ],
        )
    if where.counter:
        take_numbers(transaction, where.counter)


def _list_changed_columns(change: _Change) -> tuple[str, ...]:
    return tuple(change.after)


def _escape_pattern(text: str) -> str:
    for char in "!%_":
        text = text.replace(char, f"!{char}")
    return text
