"""Every table is named in the SQL of one room, its owner."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import factbook

SOURCE: Final = Path(factbook.__file__).parent
OWNERS: Final = {
    "audit": "audit",
    "auth": "account_links erasures invitations oauth_clients oauth_consents oauth_tokens people "
    "sessions token_usage tokens",
    "catalog": "entities relations removed_entities revision_changes revisions search search_keys "
    "set_items sets",
    "checks": (
        "check_changes check_counts check_days check_states check_versions checks exemptions "
        "retired_slots scorecard_counts scorecard_days scorecard_label_counts scorecard_levels "
        "scorecard_versions scorecards"
    ),
    "datasources": "connections data_source_versions data_sources memories",
    "events": "events",
    "facts": "collection_requests facts_history facts_latest history_trims",
    "importers": "import_deliveries import_hints import_parts import_runs importers",
    "scheduling": (
        "batches given_up_batches housekeeping leases queues retention_clock run_gaps runs "
        "source_health"
    ),
    "scim": "scim_members scim_resources",
    "storage": "counters",
    "webhooks": "digests webhook_endpoints webhook_retries webhooks",
}
OWNER: Final = {table: room for room, tables in OWNERS.items() for table in tables.split()}
# Reads of another room's table that are one statement with the reader's own rows: two would read
# every reference, or find the rows of a page only after all of them.
JOINS: Final = {
    "checks/results/result_queries.py": "entities",  # those of a state in order
    "facts/distribution.py": "entities",  # a fact of all of them, known or not: an outer join
    "checks/definitions/exemption_store.py": "entities",  # each with its entity
    "facts/history.py": "entities",  # each change with the reference of its entity
    "facts/retention.py": "entities",  # what the filter of a source leaves out, deleted unread
    "facts/store.py": "entities",  # pushed facts and failures with references
}
# What every module with SQL has in it.
_SQL: Final = re.compile(r"\b(FROM|INTO|UPDATE|JOIN)\b|\.(insert|delete)\(|DefinitionTables")
_CREATED: Final = re.compile(r"CREATE TABLE(?: IF NOT EXISTS)? +(\w+)")
_WRITTEN: Final = re.compile(r"\b(?:INTO|UPDATE|DELETE FROM)\s+(\w+)")
# One table or several: `FROM runs r, batches`.
_READ: Final = re.compile(r"\b(?:FROM|JOIN)\s+(?=(\w+(?:\s+\w+)?(?:\s*,\s*\w+(?:\s+\w+)?)*))")


class Use(NamedTuple):
    """A table in the SQL of a module."""

    module: str
    table: str
    writes: bool

    @property
    def is_foreign(self) -> bool:
        """True if the module is in another room than the owner of the table."""
        return self.module.partition("/")[0].removesuffix(".py") != OWNER[self.table]


def created() -> set[str]:
    """The tables that the migrations make."""
    files = (SOURCE / "storage" / "migrations").glob("*.sql")
    return {table for file in files for table in _CREATED.findall(file.read_text())}


def texts(tree: ast.Module) -> Iterator[str]:
    """Every text of a module; what is put into one is a question mark."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values
            )


def named_in_calls(tree: ast.Module) -> Iterator[str]:
    """The tables of `transaction.insert(table, …)` and the like, and of stores of definitions."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="DefinitionTables"), args=[*names, _]):
                yield from (str(name.value) for name in names if isinstance(name, ast.Constant))
            case ast.Call(
                func=ast.Attribute(attr="insert" | "delete"), args=[ast.Constant(value=name), *_]
            ):
                yield str(name)


def uses(source: str, module: str) -> set[Use]:
    """The known tables in the SQL of a module."""
    tree = ast.parse(source)
    written = {*named_in_calls(tree), *(t for text in texts(tree) for t in _WRITTEN.findall(text))}
    lists = (names for text in texts(tree) for names in _READ.findall(text))
    read = {name.split()[0] for names in lists for name in names.split(",")}
    return {Use(module, table, writes=True) for table in written & OWNER.keys()} | {
        Use(module, table, writes=False) for table in read & OWNER.keys() - written
    }


@cache
def everywhere() -> frozenset[Use]:
    """The tables in the SQL of all modules."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    return frozenset(
        use
        for path, text in texts.items()
        if _SQL.search(text)
        for use in uses(text, str(path.relative_to(SOURCE)))
    )


def test_sql_is_found_in_texts_and_calls() -> None:
    source = (
        'A = "SELECT 1 FROM runs r, people JOIN batches b ON b.id = r.id"\n'
        'B = f"UPDATE queues SET {what}"\n'
        't.insert("tokens", columns, rows)\n'
        'DefinitionTables("checks", "check_versions", "check_id")\n'
        '"""Rows come from sets, as audit does."""\n'
    )
    found = {(use.table, use.writes) for use in uses(source, "catalog/any.py")}
    assert found == {
        ("runs", False),
        ("people", False),
        ("batches", False),
        ("queues", True),
        ("tokens", True),
        ("checks", True),
        ("check_versions", True),
    }
    assert all(use.is_foreign for use in uses(source, "catalog/any.py"))


@pytest.mark.slow
def test_every_table_has_an_owner_which_names_it() -> None:
    assert created() == OWNER.keys()
    assert {use.table for use in everywhere() if not use.is_foreign} == OWNER.keys()


@pytest.mark.slow
def test_a_table_is_written_by_its_owner_alone() -> None:
    assert {use for use in everywhere() if use.is_foreign and use.writes} == set()


@pytest.mark.slow
def test_a_table_is_read_by_its_owner_but_for_listed_joins() -> None:
    found = {use.module: use.table for use in everywhere() if use.is_foreign}
    assert found == JOINS
