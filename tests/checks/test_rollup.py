"""Rollups: sums over groups that may hold one another in any way."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.checks.results import grader
from factbook.checks.results.grader import GroupHierarchy, LevelCount, LevelTally

groups = st.sampled_from([f"g{number}" for number in range(6)])
parents = st.dictionaries(groups, st.lists(groups, max_size=3))
counts = st.lists(
    st.builds(
        LevelCount,
        owner=groups | st.sampled_from(["", "user:default/ann"]),
        system=st.sampled_from(["", "s1", "s2"]),
        kind=st.sampled_from(["component", "api"]),
        level=st.integers(0, 3),
        entities=st.integers(1, 5),
        scored=st.integers(0, 3),
        score=st.integers(0, 300),
    ),
    max_size=12,
)


def below(group: str, edges: dict[str, list[str]]) -> set[str]:
    """The group and those from which it can be reached, found step by step."""
    found = {group}
    for _ in range(len(edges) + 1):
        found |= {child for child, own in edges.items() if found & set(own)}
    return found


def summed(what: str, given_counts: Iterable[LevelCount]) -> dict[str, LevelTally]:
    """Tallies by a member of the counts, summed as a database does."""
    numbers: dict[tuple[str, int], Counter[str]] = {}
    for one in given_counts:
        own = numbers.setdefault((getattr(one, what), one.level), Counter())
        own.update(entities=one.entities, scored=one.scored, score=one.score)
    return grader.tally_levels(
        (*key, own["entities"], own["scored"], own["score"]) for key, own in numbers.items()
    )


@given(parents, groups)
def test_groups_above_and_below_are_found_through_cycles_and_diamonds(
    edges: dict[str, list[str]], group: str
) -> None:
    tree = GroupHierarchy(edges)
    assert tree.within(group) == below(group, edges)
    everyone = {*edges, *(one for own in edges.values() for one in own), group}
    assert tree.above(group) == {one for one in everyone if group in below(one, edges)}
    path = tree.path(group)
    assert path[-1] == group
    assert len(path) == len(set(path))
    assert all(above in edges[one] for above, one in pairwise(path))


@pytest.mark.slow
@given(counts, parents)
def test_a_group_has_the_entities_of_all_groups_below_it_once(
    given_counts: list[LevelCount], edges: dict[str, list[str]]
) -> None:
    tree = GroupHierarchy(edges)
    own = summed("owner", given_counts)
    found = grader.roll_up_groups(own, tree)
    for group, tally in found.items():
        within = [one for one in given_counts if one.owner in below(group, edges)]
        assert tally.total == sum(one.entities for one in within)
        assert tally.score == sum(one.score for one in within)
        assert tally.scored == sum(one.scored for one in within)
        for level in range(4):
            wanted = sum(one.entities for one in within if one.level == level)
            assert tally.levels.get(level, 0) == wanted
        assert tally == grader.roll_up_group(own, tree, group)
    assert {one.owner for one in given_counts} <= found.keys()


@pytest.mark.slow
@given(counts)
def test_nothing_is_lost_whatever_it_is_summed_by(given_counts: list[LevelCount]) -> None:
    total = sum(one.entities for one in given_counts)
    for what in ("owner", "system", "kind"):
        own = summed(what, given_counts)
        assert grader.add_tallies(own.values()).total == total
    domains = grader.roll_up_domains(summed("system", given_counts), {"s1": "d1"})
    assert grader.add_tallies(domains.values()).total == total
    assert domains.keys() <= {"d1", ""}


def test_a_tally_is_shown_with_the_names_of_its_levels() -> None:
    tally = LevelTally({0: 1, 2: 3}, scored=3, score=200)
    assert tally.render({1: "bronze", 2: "silver"}) == {
        "total": 4,
        "levels": {"bronze": 0, "silver": 3},
        "noLevel": 1,
        "score": 66.7,
        "scored": 3,
    }
    assert grader.NO_TALLY.render({})["score"] is None
