"""Mappings of the settings: fields of entities, taken from what a system says."""

from pathlib import Path
from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.importers import records, registry
from factbook.importers.snapshot import ImportedItem
from factbook.importers.writer import write_snapshot
from factbook.settings import table as settings_table
from factbook.storage import Database
from tests.fakes.backstage import FakeBackstage
from tests.importers.organization import CATALOG, Organization, file, member, repository, team
from tests.importers.peer import ADDRESS, Peer
from tests.importers.reading import Imports
from tests.integrations.github.asking import TOKEN
from tests.service import component, resource


def shop(**metadata: Any) -> dict[str, Any]:
    """A component with more in its metadata."""
    entity = component("shop", owner="old")
    return entity | {"metadata": entity["metadata"] | metadata}


async def made(entity: dict[str, Any], mapping: dict[str, Any]) -> dict[str, Any]:
    """The entity as it comes from another catalog by a mapping."""
    items = await Peer(FakeBackstage([entity]), mapping=mapping).items()
    return dict(items["shop"].entity)


async def test_a_field_is_what_its_expression_gives_or_absent(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str | None]] = [
        ("item.metadata.labels.team", "web"),
        ("group:people/{{ item.metadata.labels.team }}", "group:people/web"),
        ("{{item.metadata.labels.team}}-{{ entity.metadata.name }}", "web-shop"),
        ('`"group:ops"`', "group:ops"),
        ("item.metadata.tags[?starts_with(@, 'team-')] | [0]", "team-ops"),
        ("entity.spec.owner", "old"),
        ("item.metadata.labels.none", None),
        ("group:{{ item.metadata.labels.none }}", None),
        ("item.metadata.labels.empty", None),
        ("group:{{ item.metadata.labels.empty }}", None),
        ("`null`", None),
    ]
    for expression, owner in cases:
        with subtests.test(expression=expression):
            entity = shop(labels={"team": "web", "empty": ""}, tags=["java", "team-ops"])
            spec = (await made(entity, {"spec.owner": expression}))["spec"]
            assert spec.get("owner", None) == owner
            assert ("owner" in spec) == (owner is not None)


async def test_a_field_may_be_any_value_at_any_depth() -> None:
    mapping = {
        "spec.dependsOn": "item.metadata.tags[].join('', ['resource:', @])",
        "spec.a.b.c": "`7`",
        "metadata.annotations.example.com/on.call": "{{ item.metadata.labels.team }}",
        "metadata.labels.deep.key": "'x'",
        "metadata.labels.team": "item.none",
        "spec.not.there": "item.none",
    }
    found = await made(shop(labels={"team": "web"}, tags=["a", "b"]), mapping)
    assert found["spec"]["dependsOn"] == ["resource:a", "resource:b"]
    assert found["spec"]["a"] == {"b": {"c": 7}}
    assert found["metadata"]["annotations"] == {"example.com/on.call": "web"}
    assert found["metadata"]["labels"] == {"deep.key": "x"}
    assert "not" not in found["spec"]


async def test_fields_of_a_kind_count_more_than_those_of_every_kind() -> None:
    mapping = {
        "spec.owner": "'group:everybody'",
        "spec.system": "'shop'",
        "component": {"spec.owner": "'group:web'"},
        "API": {"spec.owner": "'group:api'"},
    }
    fake = FakeBackstage([component("shop"), resource("database")])
    items = await Peer(fake, mapping=mapping).items()
    assert items["shop"].entity["spec"]["owner"] == "group:web"
    assert items["database"].entity["spec"]["owner"] == "group:everybody"
    assert items["shop"].entity["spec"]["system"] == "shop"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("starts_with(item.metadata.tags, 'a')", "the expression does not fit the document"),
        ("{{ item.metadata.tags }}", "a value between braces is neither text nor number"),
    ],
)
async def test_a_mapping_that_fails_on_an_entity_is_its_problem_alone(
    expression: str, problem: str
) -> None:
    fake = FakeBackstage([shop(tags=["a"]), resource("database")])
    part = await Peer(fake, mapping={"Component": {"spec.x": expression}}).part()
    place = "backstage.test/component:default/shop"
    assert [item.entity["kind"] for item in part.items] == ["Resource"]
    assert (part.complete, part.unread) == (True, frozenset({place}))
    assert str(part.problems[0]) == f"{place}: spec.x: the mapping failed: {problem}"


async def test_an_entity_whose_mapping_fails_stays_as_it_was(database: Database) -> None:
    fake = FakeBackstage([shop(tags=["a"])])
    imports, peer = Imports(database), Peer(fake, mapping={"spec.x": "max(item.metadata.tags)"})
    for tags in (["a"], [["a"]]):
        next(iter(fake.entities.values()))["metadata"]["tags"] = tags
        imports.now += 1_000
        await write_snapshot(imports.target, "catalog", await peer.read(), imports.now)
    assert await imports.refs("import/catalog/entities") == ["component:default/shop"]
    [record] = await records.list_part_records(imports.database)
    assert (record.state, record.problem_count) == ("partial", 1)


async def test_a_field_below_a_text_is_a_problem() -> None:
    part = await Peer(FakeBackstage([shop()]), mapping={"spec.type.a": "'x'"}).part()
    assert part.problems[0].message.endswith("the mapping failed: its parent is not a table")


async def test_what_a_mapping_makes_is_bounded() -> None:
    fake = FakeBackstage([shop(description="x" * 100_000)])
    many = ", ".join(["item.metadata.description"] * 20)
    part = await Peer(fake, mapping={"spec.x": f"[{many}]"}).part()
    text = "spec.x: the mapping failed: what was extracted is too large for facts"
    assert [problem.message for problem in part.problems] == [text]


def test_a_mistake_in_a_mapping_is_told_with_its_place(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"spec.owner": "item.["}, 'mapping."spec.owner" is not a JMESPath expression'),
        ({"User": {"spec.x": "{{ a"}}, 'mapping.User."spec.x" has {{ without }}'),
        ({"spec.x": "{{ no_such(item) }}"}, 'mapping."spec.x" has no function no_such'),
        ({"owner": "item.a"}, 'mapping."owner" is not a field: write metadata.… or spec.…'),
        ({"spec": "item.a"}, "is not a field"),
        ({"spec..a": "item.a"}, "is not a field"),
        ({"metadata.annotations.": "item.a"}, "is not a field"),
        ({"spec.a": 7}, "mapping"),
        ({f"spec.f{n}": "item.a" for n in range(101)}, "mapping has more than 100 fields"),
    ]
    for mapping, said in cases:
        with subtests.test(mapping=mapping):
            table = {"address": ADDRESS, "mapping": mapping}
            with pytest.raises(ConfigurationError) as caught:
                registry.configure_importer("catalog", "eu", table, {})
            assert said in caught.value.message
            assert caught.value.message.startswith("importers.catalog.eu: ")


def test_a_mapping_in_a_variable_is_json() -> None:
    table = {"address": ADDRESS, "mapping": '{"spec.owner": "item.["}'}
    with pytest.raises(ConfigurationError, match="JMESPath"):
        registry.configure_importer("catalog", "eu", table, {})


def test_a_mapping_is_a_table_of_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "factbook.toml"
    table = "importers.catalog.default"
    path.write_text(
        f'[{table}]\naddress = "{ADDRESS}"\n[{table}.mapping]\n"spec.owner" = "item.a"\n'
        f'[{table}.mapping.Component]\n"spec.owner" = "item.["\n'
    )
    settings = settings_table.load_settings(environ={}, path=path)
    with pytest.raises(ConfigurationError) as caught:
        registry.configure_importers(settings.importers, {})
    assert 'default: mapping.Component."spec.owner" is not' in caught.value.message


async def test_repositories_and_people_are_mapped_and_files_are_not() -> None:
    acme = Organization(
        repository("shop", 7, description="Sells.", topics=["team-web"]),
        repository("cart", 8, texts={CATALOG: file("cart")}),
    )
    acme.fake.teams, acme.fake.members = [team("web", 1, "alice")], [member("alice", 2)]
    items = await _imported(
        acme,
        {
            "Component": {
                "spec.owner": "item.topics[?starts_with(@, 'team-')] | [0]",
                "metadata.title": "{{ item.name }} ({{ item.number }})",
            },
            "Group": {"metadata.title": "Team {{ item.name }}"},
            "User": {"metadata.title": "{{ item.login }}"},
        },
    )
    assert items["shop"].entity["spec"]["owner"] == "team-web"
    assert items["shop"].entity["metadata"]["title"] == "shop (7)"
    assert items["cart"].entity["spec"]["owner"] == "team-a"
    assert items["web"].entity["metadata"]["title"].startswith("Team ")
    assert items["alice"].entity["metadata"]["title"] == "alice"


async def _imported(acme: Organization, mapping: dict[str, Any]) -> dict[str, ImportedItem]:
    """The items of an organization by name, by the importer of a table."""
    accounts = {"github": {"default": {"token": TOKEN}}}
    table = {"organizations": ["acme"], "mapping": mapping}
    importer = registry.configure_importer("github", "default", table, accounts)
    collector = acme.collector
    snapshot = await importer.read(collector.client, collector.memory, acme.time(), lambda _: None)
    return {item.entity["metadata"]["name"]: item for part in snapshot.parts for item in part.items}
