"""Names that importers give: nothing else has them, and they stay."""

import random

import pytest

from factbook.importers.snapshot import assign_lasting_names
from tests.integrations.asking import Memory

WORDS = ("web-ui", "Web-UI", "web-ui-1", "web-ui-2", "web-ui-2-2", "ops")


@pytest.mark.parametrize("seed", range(40))
async def test_a_name_is_that_of_one_thing_and_stays_while_the_thing_wants_it(seed: int) -> None:
    dice, memory = random.Random(seed), Memory()
    numbers = {id_: number for number, id_ in enumerate("abcdefgh", 1)}
    wanted: dict[str, str] = {}
    names: dict[str, str] = {}
    last: dict[str, str] = {}
    for _ in range(30):
        before = names
        id_ = dice.choice(list(numbers))
        if wanted.pop(id_, None) is None or dice.random() < 0.5:
            wanted[id_] = dice.choice(WORDS)
        read = {id_: name for id_, name in wanted.items() if dice.random() < 0.9}
        complete = read == wanted
        names = await assign_lasting_names(memory, "names", read, numbers, complete=complete)
        assert len({name.casefold() for name in names.values()}) == len(names)
        for same in read.keys() & before.keys():
            if read[same] == last[same]:
                assert names[same] == before[same]
        last |= read
