"""Entities of another catalog: Backstage, Roadie, or another Factbook."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.importers import catalog, records, registry, writer
from factbook.importers.writer import write_snapshot
from factbook.storage import Database
from factbook.storage.database_url import open_database
from tests.fakes import faults
from tests.fakes.backstage import FakeBackstage
from tests.importers.peer import ADDRESS, Peer
from tests.importers.reading import Imports, item, part
from tests.service import Service, component

_SET = "import/catalog/entities"
_FACTBOOK = "http://127.0.0.1:8000"


@pytest.fixture
async def elsewhere(migrated_file: Path, tmp_path: Path) -> AsyncIterator[Database]:
    """A database beside that of the service."""
    file = tmp_path / "elsewhere.db"
    shutil.copy(migrated_file, file)
    database = await open_database(f"sqlite:///{file}", connections=3)
    yield database
    await database.close()


def group(name: str, **more: Any) -> dict[str, Any]:
    """A group that others may belong to."""
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Group",
        "metadata": {"name": name},
        "spec": {"type": "team", "children": []} | more,
    }


async def test_an_entity_comes_without_what_its_catalog_computes() -> None:
    fake = FakeBackstage([component("shop")])
    [uid] = fake.entities
    item = (await Peer(fake).items())["shop"]
    assert item.entity == {
        **component("shop"),
        "metadata": {"namespace": "default", "name": "shop", "annotations": {}},
    }
    assert item.origin == "backstage.test/component:default/shop"
    assert item.external_id == f"backstage.test/entity/{uid}"


async def test_an_entity_says_where_its_catalog_had_it_from(service: Service) -> None:
    fake = FakeBackstage([component("shop")])
    await _write(Imports(service.state.database), Peer(fake))
    entity = await service.catalog("component:default/shop")
    assert entity is not None
    said = {key.partition("/")[2]: text for key, text in entity["metadata"]["annotations"].items()}
    place = "url:https://github.com/acme/shop/blob/main/catalog-info.yaml"
    assert said["imported-from-location"] == place
    assert said["imported-from-origin-location"] == f"{place}#origin"
    assert said["import-origin"] == "backstage.test/component:default/shop"
    assert "factbook-api:" in said["managed-by-location"]


async def test_pages_are_read_to_their_end() -> None:
    fake = FakeBackstage(component(f"c{n:04}") for n in range(1_201))
    assert len(await Peer(fake).items()) == 1_201
    assert (fake.requests["page"], set(fake.sizes)) == (3, {500})


async def test_filters_choose_what_comes() -> None:
    fake = FakeBackstage([component("shop"), group("web"), group("ops")])
    assert [*await Peer(fake, filters=["kind=component"]).items()] == ["shop"]
    both = Peer(fake, filters=["kind=component", "kind=group"])
    assert sorted(await both.items()) == ["ops", "shop", "web"]


async def test_a_prefix_is_put_before_namespaces_and_in_references() -> None:
    refs = ["component:default/cart", "component:cart", "odd ref: /"]
    fake = FakeBackstage(
        [component("shop", owner="group:people/web", dependsOn=refs, type="a/b"), group("web")]
    )
    items = await Peer(fake, namespace_prefix="eu-").items()
    shop = items["shop"].entity
    assert shop["metadata"]["namespace"] == "eu-default"
    assert shop["spec"]["owner"] == "group:eu-people/web"
    assert shop["spec"]["dependsOn"] == ["component:eu-default/cart", "component:cart", refs[2]]
    assert shop["spec"]["type"] == "a/b"
    assert items["web"].origin == "backstage.test/group:default/web"


_BAD_PAGES = (
    faults.not_json,
    faults.bad_gateway,
    faults.cut_off,
    faults.saying({"error": {"name": "AuthenticationError"}}, 401),
    faults.saying({"error": {"name": "NotAllowedError"}}, 403),
    faults.saying({"message": "slow down"}, 429, {"retry-after": "3600"}),
    faults.saying({"items": [], "totalItems": 0}),
    faults.saying({"items": [], "totalItems": 1_200, "pageInfo": {}}),
    faults.saying({"items": [{}], "totalItems": 1_200, "pageInfo": {}}),
    faults.saying({"items": ["a"], "totalItems": 1_200, "pageInfo": {}}),
    faults.saying({"items": [], "totalItems": 1_200, "pageInfo": {"nextCursor": "x"}}),
    faults.saying({}, 302, {"location": "https://login.test/"}),
)


@pytest.mark.slow
async def test_a_page_that_fails_after_the_first_leaves_the_reading_incomplete(
    subtests: pytest.Subtests,
) -> None:
    for number, fault in enumerate(_BAD_PAGES):
        with subtests.test(number=number, fault=fault):
            fake = FakeBackstage(component(f"c{n:04}") for n in range(1_200))
            fake.fail("page", fault, after=1, times=20)
            found = await Peer(fake).part()
            assert (found.complete, len(found.items), len(found.problems)) == (False, 500, 1)


async def test_a_catalog_that_changes_while_it_is_read_is_not_complete() -> None:
    fake = FakeBackstage(component(f"c{n:04}") for n in range(600))

    async def shrinking(request: Any, answer: Any) -> Any:
        fake.remove(min(fake.entities))
        return await answer(request)

    fake.fail("page", shrinking, after=1)
    found = await Peer(fake).part()
    assert (found.complete, str(found.problems[0])) == (
        False,
        "backstage.test: entities: upstream-error: the catalog changed while it was read",
    )
    assert (await Peer(fake).part()).complete


async def test_an_entity_that_is_listed_twice_counts_once_and_not_as_complete() -> None:
    one = {"kind": "Component", "metadata": {"name": "shop"}}
    page = {"items": [one, one], "totalItems": 2, "pageInfo": {}}
    fake = FakeBackstage()
    fake.fail("page", faults.saying(page))
    found = await Peer(fake).part()
    assert (found.complete, len(found.items)) == (False, 1)


async def test_a_page_without_an_answer_is_asked_for_in_smaller_pieces() -> None:
    fake = FakeBackstage(component(f"c{n:04}") for n in range(120))

    async def too_large(request: Any, answer: Any) -> Any:
        if int(request.query_params["limit"]) > 100:
            return faults.as_json(["x" * (21 * 1024 * 1024)])
        return await answer(request)

    fake.fail("page", too_large, times=20)
    assert len(await Peer(fake).items()) == 120
    assert 100 in fake.sizes


@pytest.mark.parametrize(
    ("limit", "most", "reason"),
    [("MOST_ENTITIES", 700, "more than 700 entities"), ("MOST_BYTES", 9_000, "9,000 bytes")],
)
async def test_a_catalog_that_is_too_large_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int, reason: str
) -> None:
    monkeypatch.setattr(catalog, limit, most)
    fake = FakeBackstage(component(f"c{n:04}") for n in range(1_201))
    part = await Peer(fake).part()
    assert (part.complete, reason in part.problems[0].message) == (False, True)
    assert fake.requests["page"] < 3


async def test_nothing_of_a_catalog_that_answers_badly_is_removed(database: Database) -> None:
    fake = FakeBackstage([*(component(f"c{n}") for n in range(30)), group("web")])
    imports, peer = Imports(database), Peer(fake)
    await _write(imports, peer)
    refs = await imports.refs(_SET)
    for fault in (*_BAD_PAGES, faults.saying({"items": [], "totalItems": 0, "pageInfo": {}})):
        peer.time.advance(7_200_000)
        fake.fail("page", fault, times=20)
        await _write(imports, peer)
        fake.recover()
        assert await imports.refs(_SET) == refs


async def test_a_kind_that_is_missing_altogether_waits_for_a_person(database: Database) -> None:
    fake = FakeBackstage([*(component(f"c{n}") for n in range(30)), group("web")])
    imports, peer = Imports(database), Peer(fake)
    await _write(imports, peer)
    fake.remove(next(uid for uid, one in fake.entities.items() if one["kind"] == "Group"))
    await _write(imports, peer)
    record = await _record(imports)
    assert (record.state, record.held) == ("held", ["group:default/web"])
    assert record.reason.endswith("entities of kind group")
    await writer.apply_removals(imports.target, "catalog", "entities", imports.actor)
    assert len(await imports.refs(_SET)) == 30


async def test_what_is_not_valid_here_is_a_problem_and_stays_as_it_was(database: Database) -> None:
    fake = FakeBackstage([component("shop"), component("cart")])
    imports, peer = Imports(database), Peer(fake)
    await _write(imports, peer)
    shop = next(one for one in fake.entities.values() if one["metadata"]["name"] == "shop")
    shop["metadata"]["labels"] = "none"
    await _write(imports, peer)
    [problem] = (await _record(imports)).problems
    assert problem.place == "backstage.test/component:default/shop"
    assert len(await imports.refs(_SET)) == 2


async def test_another_factbook_is_imported_by_its_own_filters(
    service: Service,
) -> None:
    await service.push("shop", component("shop", owner="group:default/web"), group("web"))
    await service.push("ops", component("cart", dependsOn=["component:shop"]))
    token = await service.token("catalog.entity.read")
    peer = _factbook(service, token)
    items = await peer.items()
    assert sorted(items) == ["cart", "shop", "web"]
    entity = items["shop"].entity
    assert entity["spec"] == component("shop", owner="group:default/web")["spec"]
    shown = await service.catalog("component:default/shop")
    assert shown is not None
    assert items["shop"].external_id.endswith(f"/entity/{shown['metadata']['uid']}")
    some = _factbook(service, token, filters=["kind=component,spec.owner=team-a"])
    assert sorted(await some.items()) == ["cart"]
    stranger = await _factbook(service, "none").part()
    assert (stranger.complete, stranger.items) == (False, ())


async def test_what_another_factbook_renames_keeps_its_id_here(
    service: Service, elsewhere: Database
) -> None:
    token = await service.token("catalog.entity.read")
    imports, peer = Imports(elsewhere), _factbook(service, token)
    there = Imports(service.state.database)
    await there.write(part(item("shop", external_id="7")))
    await _write(imports, peer)
    uid = await imports.uid("shop")
    await there.write(part(item("store", external_id="7")))
    await _write(imports, peer)
    assert (await imports.refs(_SET), await imports.uid("store")) == (
        ["component:default/store"],
        uid,
    )


def test_a_mistake_in_the_table_is_told(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"address": ""}, "address has to be"),
        ({"address": "backstage.example.com"}, "address has to be"),
        ({"address": "https://user:pw@a.test"}, "address has to be"),
        ({"filters": ["kind=component"] * 21}, "filters have to be"),
        ({"filters": [" "]}, "filters have to be"),
        ({"namespace_prefix": "Eu/"}, "namespace_prefix has to consist"),
    ]
    for values, said in cases:
        with subtests.test(values=values):
            table = {"address": ADDRESS, "token": "a secret"} | values
            with pytest.raises(ConfigurationError) as caught:
                registry.configure_importer("catalog", "default", table, {})
            assert said in caught.value.message
            assert "importers.catalog.default" in caught.value.message


def _factbook(service: Service, token: str, **options: Any) -> Peer:
    return Peer(service.application, address=_FACTBOOK, token=token, **options)


async def _write(imports: Imports, peer: Peer) -> None:
    imports.now += 1_000
    await write_snapshot(imports.target, "catalog", await peer.read(), imports.now)


async def _record(imports: Imports) -> Any:
    return await records.get_part_record(imports.database, "catalog", "entities")
