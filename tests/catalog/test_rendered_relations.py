"""A rendered list of relations that is changed equals one that is rendered anew."""

import random

import pytest

from factbook.catalog import kinds
from factbook.catalog.kinds import RenderedRelations

NAMES = ("a", '"},{"type":"x', "b\\", "é☃", "},{", "\U0001f600", "\uffff", "\x7f", "a b")
POOL = [
    (type_, f"{kind}:default/{name}")
    for type_ in ("ownedBy", "ownerOf", "partOf", "dependsOn")
    for kind in ("group", "user", "component")
    for name in NAMES
]


@pytest.mark.slow
def test_whatever_comes_and_goes_the_text_is_that_of_all_relations(
    subtests: pytest.Subtests,
) -> None:
    for seed in range(300):
        with subtests.test(seed=seed):
            chance = random.Random(seed)
            now = set(chance.sample(POOL, chance.randrange(12)))
            shown = RenderedRelations(kinds.render_relations(now))
            for _ in range(4):
                asked = chance.sample(POOL, 5)
                there = {relation for relation in asked if chance.random() < 0.5}
                before, now = now, (now - set(asked)) | there
                assert shown.change(asked, there) == (before != now)
                assert shown.text == kinds.render_relations(now)
                assert shown.compliance == kinds.compute_relation_bits(now)
