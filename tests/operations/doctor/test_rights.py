"""Rights of groups that people lose by an upgrade, as the doctor lists them before it."""

import pytest

from factbook.storage import Transaction
from factbook.storage.database_url import open_database
from tests.operations.doctor.conftest import Look
from tests.storage.snapshots import all_snapshots, load

# A member of a group in the set "services", outside any set, and as a file of a repository says.
STATED = (
    (900, "user:default/ada", "services", "{}"),
    (901, "user:default/vic", None, "{}"),
    (
        902,
        "user:default/tester",
        "import/github/acme.repositories",
        '{"factbook/import-origin": "github.com/acme/shop"}',
    ),
)


def state(transaction: Transaction) -> None:
    """Store the members, with the columns that the last release had."""
    transaction.run(
        "INSERT INTO sets (id, name, revision, item_count, updated_by, updated_at) "
        "VALUES (90, 'import/github/acme.repositories', 1, 1, 'importer:default/github', 0)"
    )
    for id_, ref, set_name, annotations in STATED:
        name = ref.rpartition("/")[2]
        head = '{"apiVersion":"backstage.io/v1alpha1","kind":"User","metadata":{'
        body = f'"name":"{name}","annotations":{annotations}}},"spec":{{"memberOf":["security"]}}'
        transaction.run(
            "INSERT INTO entities (id, uid, ref, kind, namespace, name, set_id, etag, updated_by, "
            "updated_at, compliance, head, body, relations) VALUES (?, ?, ?, 'user', 'default', ?, "
            "(SELECT id FROM sets WHERE name = ?), 'e', 'user:default/tester', 0, 0, ?, ?, '[]')",
            (id_, f"uid-{id_}", ref, name, set_name, head, body),
        )
        transaction.run(
            "INSERT INTO relations (source_id, type, target_ref) "
            "VALUES (?, 'memberOf', 'group:default/security')",
            (id_,),
        )


@pytest.mark.both_databases
async def test_before_an_upgrade_it_lists_whoever_loses_a_right_and_what_restores_it(
    look: Look, database_url: str
) -> None:
    await load(all_snapshots()[-1], database_url)
    database = await open_database(database_url, connections=2)
    await database.write(state)
    await database.close()
    found = {one.what: one.advice for one in await look() if one.topic == "rights of groups"}
    security = "group:default/security"
    lost = {
        f"user:default/{name} doesn't have the rights of {security}: only {place} says so.": (
            f"To trust it: {setting}. To trust none: people_sets = []."
        )
        for name, place, setting in [
            ("vic", "entities outside any set", 'people_sets = ["/"]'),
            ("ada", "the set services", 'people_sets = ["services"]'),
            (
                "tester",
                "the set import/github/acme.repositories",
                'people_sets = ["import/github/acme.people"] and, among the options of github, '
                'people_from = ["acme/shop"]',
            ),
        ]
    }
    assert {what: advice for what, advice in found.items() if what in lost} == lost
    assert len(found) == 6
