"""Pushes and reads at the same moment."""

import asyncio
from typing import Any

import pytest

from tests.conftest import StartService
from tests.service import PUSH, Service, component

pytestmark = pytest.mark.both_databases

ROUNDS = 4


async def owners(service: Service, set_id: str = "first") -> list[str]:
    """Who owns each item of a set, as the set is read."""
    items = (await service.http.get(f"{PUSH}/sets/{set_id}")).json()["items"]
    return [item["entity"]["spec"]["owner"] for item in items]


@pytest.mark.slow
@pytest.mark.spec("push.one-transaction", "push.replaces-whole-set")
async def test_of_two_puts_of_one_set_at_once_one_wins_whole(start: StartService) -> None:
    # Two services on one database are two server processes as far as the database sees.
    one, two = await start(), await start()
    for round_ in range(ROUNDS):
        sizes = {"x": 40 + round_, "y": 70}
        pushes = [
            service.push("first", *(component(f"{mark}{n}", owner=f"{owner}{round_}") for n in ns))
            for service, owner, mark, ns in (
                (one, "x", "c", range(sizes["x"])),
                (two, "y", "c", range(10, 10 + sizes["y"])),
            )
        ]
        answers = await asyncio.gather(*pushes)
        assert [answer.status_code for answer in answers] == [200, 200]
        assert sorted(answer.json()["revision"] for answer in answers) == [
            round_ * 2 + 1,
            round_ * 2 + 2,
        ]
        last = max(answers, key=lambda answer: int(answer.json()["revision"]))
        read = (await one.http.get(f"{PUSH}/sets/first")).json()
        assert read["items"] == last.json()["items"]
        [winner] = {item["entity"]["spec"]["owner"] for item in read["items"]}
        assert len(read["items"]) == sizes[winner[0]]
        listed = (await two.http.get(f"{PUSH}/sets")).json()["sets"]
        assert [item["itemCount"] for item in listed] == [len(read["items"])]
        refs = {item["entityRef"] for item in read["items"]}
        catalog = (await two.http.get("/api/catalog/entities?fields=metadata.name")).json()
        assert len(catalog) == len(refs)


@pytest.mark.slow
@pytest.mark.spec("push.one-transaction")
async def test_a_reader_sees_the_old_set_or_the_new_one_and_never_a_mixture(
    start: StartService,
) -> None:
    writer, reader = await start(), await start()
    await writer.push("first", *(component(f"a{number}", owner="0") for number in range(150)))
    done = asyncio.Event()

    async def write() -> None:
        for round_ in range(1, 6):
            names = [f"{'ab'[round_ % 2]}{number}" for number in range(150 + round_)]
            await writer.push("first", *(component(name, owner=str(round_)) for name in names))
        done.set()

    async def read() -> set[tuple[str, int]]:
        seen = set()
        while not done.is_set():
            found = await owners(reader)
            assert len(set(found)) == 1, set(found)
            assert len(found) == 150 + int(found[0])
            everything = (await reader.http.get("/api/catalog/entities?fields=spec.owner")).json()
            assert len({entity["spec"]["owner"] for entity in everything}) == 1
            seen.add((found[0], len(found)))
        return seen

    seen, _ = await asyncio.gather(read(), write())
    assert seen


async def test_of_two_pushes_built_on_one_revision_one_is_refused(service: Service) -> None:
    for round_ in range(ROUNDS):
        tag = f'"{round_}"'
        answers = await asyncio.gather(
            *(
                service.http.put(
                    f"{PUSH}/sets/first",
                    json={"items": [component("a", owner=f"{owner}{round_}")]},
                    headers={"if-match": tag},
                )
                for owner in "xyz"
            )
        )
        assert sorted(answer.status_code for answer in answers) == [200, 412, 412]
        [winner] = [answer for answer in answers if answer.status_code == 200]
        assert await owners(service) == [winner.json()["items"][0]["entity"]["spec"]["owner"]]


async def test_of_two_sets_that_claim_a_reference_at_once_one_gets_it(service: Service) -> None:
    for round_ in range(ROUNDS):
        item = component(f"contested{round_}")
        answers = await asyncio.gather(
            *(service.push(f"{set_id}{round_}", item) for set_id in "ab")
        )
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        [lost] = [answer for answer in answers if answer.status_code == 409]
        [won] = [answer for answer in answers if answer.status_code == 200]
        assert lost.json()["error"]["conflicts"][0]["owner"] == won.json()["set"]
        both = await asyncio.gather(
            *(service.push(f"{set_id}{round_}", item, onConflict="take") for set_id in "ab")
        )
        assert [answer.status_code for answer in both] == [200, 200]
        found = (await service.http.get(f"{PUSH}/sets")).json()["sets"]
        assert sum(entry["itemCount"] for entry in found) == round_ + 1


@pytest.mark.slow
async def test_pushes_of_different_sets_that_share_targets_keep_every_relation(
    start: StartService,
) -> None:
    services = [await start(), await start()]
    targets = [f"component:default/shared{number}" for number in range(5)]
    for round_ in range(ROUNDS):
        depends = targets[round_ % 2 :]
        await asyncio.gather(
            *(
                services[number % 2].push(
                    f"set {number}",
                    *(component(f"s{number}-{n}", dependsOn=depends) for n in range(8)),
                )
                for number in range(4)
            ),
            services[0].push("targets", *(component(f"shared{n}") for n in range(round_, 5))),
        )
        for ref in targets[round_:]:
            entity = await services[1].catalog(ref)
            assert entity is not None
            stated = {
                relation["targetRef"]
                for relation in entity["relations"]
                if relation["type"] == "dependencyOf"
            }
            expected = {f"component:default/s{number}-{n}" for number in range(4) for n in range(8)}
            assert stated == (expected if ref in depends else set())


@pytest.mark.slow
async def test_single_entities_posted_at_once_are_all_kept(service: Service) -> None:
    async def post(number: int) -> Any:
        return await service.http.post(f"{PUSH}/sets/first", json=component(f"c{number}"))

    answers = await asyncio.gather(*(post(number) for number in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    read = (await service.http.get(f"{PUSH}/sets/first")).json()
    assert (read["revision"], len(read["items"])) == (20, 20)
    deleted = await asyncio.gather(
        *(service.http.delete(f"{PUSH}/entities/{item['id']}") for item in read["items"]),
        *(service.http.delete(f"{PUSH}/entities/{item['id']}") for item in read["items"]),
    )
    assert sorted(answer.status_code for answer in deleted) == [204] * 20 + [404] * 20
    assert (await service.http.get(f"{PUSH}/sets")).json() == {"sets": []}
