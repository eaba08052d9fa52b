"""Trigram indexes of names, titles, descriptions and tags, where PostgreSQL has `pg_trgm`.

With them a text that few entities have is looked up, where a search otherwise reads all names and
texts. Nothing depends on them: the answers are the same without.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from factbook.catalog import search
from factbook.catalog.store.conditions import SQL, AllOf, Condition, Contains, escaped
from factbook.catalog.store.selectivity import MANY
from factbook.storage import Database

_NAME: Final = "metadata.name"
_TEXTS: Final = ("metadata.description", "metadata.tags", "metadata.title")
KEYS: Final = (_NAME, *_TEXTS)
# Fewer are read in 20 ms, and would have to pay for the indexes with every push.
_LEAST_ENTITIES: Final = 100_000
# A text is frequent if so many of the first entities have it; a page of it is found soon enough.
_SAMPLE: Final = 500
_FREQUENT: Final = 10
# PostgreSQL makes trigrams of letters and digits; which others there are depends on the locale.
_trigram = re.compile(r"[^\W_]{3}")
_ascii_trigram = re.compile(r"[A-Za-z0-9]{3}")


@dataclass(frozen=True)
class Among:
    """Entities with one of these ids."""

    ids: Sequence[int]

    def sql(self) -> SQL:
        return "e.id IN LIST(?)", [list(self.ids)]


class _Indexes(NamedTuple):
    """The ids of keys, and what the indexes hold: names, the texts of some keys, any letters.

    `sampled` is how many of the first names have a text.
    """

    keys: Mapping[str, int]
    names: bool
    texts: Set[int]
    letters: bool
    sampled: int

    @classmethod
    async def of(cls, database: Database, pattern: str = "") -> Self:
        rows = await database.all(_STATE, (f"%/{pattern}", list(KEYS)))
        keys = {key: id_ for key, id_, *_ in rows}
        _, _, names, texts, letters, sampled = rows[0] if rows else (None,) * 6
        held = {int(id_) for id_ in (texts or "").split(",") if id_}
        return cls(keys, bool(names), held, bool(letters), sampled or 0)

    def texts_of(self, keys: Iterable[str]) -> Set[int]:
        """The ids of those of the keys, except the name, that any entity has."""
        return {id_ for key, id_ in self.keys.items() if key in keys and key in _TEXTS}

    def serve(self, wanted: Contains) -> bool:
        """Return true if all that the search reads is in an index, and its text can be found."""
        trigram = _trigram if self.letters else _ascii_trigram
        return (
            self.names
            and self.texts_of(wanted.keys) <= self.texts
            and bool(trigram.search(wanted.text))
        )


async def looked_up(database: Database, condition: Condition) -> Condition:
    """The condition, in which entities stand for each text that few have."""
    if database.dialect != "postgresql" or not isinstance(condition, AllOf):
        return condition
    return AllOf([await _part(database, part) for part in condition.parts])


async def _part(database: Database, part: Condition) -> Condition:
    if not isinstance(part, Contains) or not part.keys or not set(part.keys) <= set(KEYS):
        return part
    pattern, names = f"%{escaped(part.text)}%", _NAME in part.keys
    indexes = await _Indexes.of(database, pattern)
    if not indexes.serve(part) or (names and indexes.sampled >= _FREQUENT):
        return part
    ids = sorted(indexes.texts_of(part.keys))
    found = await database.search(*_matching(pattern, names=names, ids=ids))
    return Among(sorted({row[0] for row in found})) if len(found) <= MANY else part


def _matching(pattern: str, *, names: bool, ids: Sequence[int]) -> SQL:
    """The statement for the entities with a text, up to one more than are few."""
    halves, parameters = list[str](), list[object]()
    if names:
        halves.append("SELECT id FROM entities WHERE ref LIKE ? ESCAPE '\\'")
        parameters.append(f"%/{pattern}")
    if ids:
        # As numbers, so that the planner sees that the index has all of them.
        halves.append(
            f"SELECT entity_id FROM search WHERE key_id = ANY ('{_set(ids)}') "
            "AND value LIKE ? ESCAPE '\\' AND value <> ?"
        )
        parameters += [pattern, search.EXISTS]
    union = " UNION ALL ".join(halves) or "SELECT id FROM entities WHERE 1 = 0"
    return f"SELECT * FROM ({union}) matching LIMIT {MANY + 1}", parameters


async def build(database: Database, least: int = _LEAST_ENTITIES) -> list[str]:
    """Create the indexes that are missing or lack a key; returns their names.

    None without the extension, or for a catalog of fewer than `least` entities.
    """
    if database.dialect != "postgresql" or not await _is_large(database, least):
        return []
    if not await database.one(_HAS_OPERATORS):
        if not await database.one(_IS_OFFERED):
            return []
        await database.apart("pg_trgm", [_EXTEND], unless=_HAS_OPERATORS)
        if not await database.one(_HAS_OPERATORS):
            return []
    indexes, built = await _Indexes.of(database), list[str]()
    if not indexes.names and await _create(database, _NAME_INDEX, _ON_NAMES):
        built.append(_NAME_INDEX)
    ids = indexes.texts_of(_TEXTS)
    if not ids <= indexes.texts:
        on_texts = _ON_TEXTS.format(ids=_set(sorted(ids)))
        if await _create(database, _TEXT_INDEX, on_texts):
            built.append(_TEXT_INDEX)
    return built


async def _is_large(database: Database, least: int) -> bool:
    [found] = await database.one(_COUNT_TO, (least,)) or (0,)
    return bool(found >= least)


async def _create(database: Database, name: str, statement: str) -> bool:
    drop = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
    return await database.apart(name, [drop, statement], unless="SELECT 1 WHERE 1 = 0")


def _set(ids: Sequence[int]) -> str:
    """An array of numbers, as PostgreSQL writes it."""
    return f"{{{','.join(map(str, ids))}}}"


_NAME_INDEX: Final = "entities_ref_trgm"
_ON_NAMES: Final = f"""
CREATE INDEX CONCURRENTLY {_NAME_INDEX} ON entities USING gin (ref gin_trgm_ops)
"""

_TEXT_INDEX: Final = "search_texts_trgm"
_ON_TEXTS: Final = f"""
CREATE INDEX CONCURRENTLY {_TEXT_INDEX} ON search USING gin (value gin_trgm_ops)
WHERE key_id = ANY ('{{ids}}'::bigint[])
"""

# Keys, and of each the same: is there an index of names, the ids of the keys whose texts have one,
# does a trigram hold letters that are not ASCII, and how many of the first names have the text?
_STATE: Final = f"""
SELECT k.key, k.id,
    (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{_NAME_INDEX}')),
    (
        SELECT substring(pg_get_expr(indpred, indrelid) FROM '[{{]([0-9,]+)[}}]') FROM pg_index
        WHERE indexrelid = to_regclass('{_TEXT_INDEX}') AND indisvalid
    ),
    chr(228) ~ '[[:alpha:]]',
    CASE WHEN to_regclass('{_NAME_INDEX}') IS NOT NULL THEN (
        SELECT count(*) FROM (SELECT ref FROM entities ORDER BY ref LIMIT {_SAMPLE}) sampled
        WHERE ref LIKE ? ESCAPE '\\'
    ) END
FROM search_keys k WHERE k.key IN LIST(?)
"""

_COUNT_TO: Final = "SELECT count(*) FROM (SELECT 1 FROM entities LIMIT ?) counted"

_HAS_OPERATORS: Final = """
SELECT 1 FROM pg_opclass WHERE opcname = 'gin_trgm_ops' AND pg_opclass_is_visible(oid)
"""

_IS_OFFERED: Final = """
SELECT 1 FROM pg_available_extension_versions WHERE name = 'pg_trgm' AND (
    trusted AND has_database_privilege(current_database(), 'CREATE')
    OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
) LIMIT 1
"""

# Providers have rules of their own, and nothing depends on it.
_EXTEND: Final = """
DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS pg_trgm; EXCEPTION WHEN OTHERS THEN NULL; END $$
"""
