"""The first relations of an entity by their types, and the drawings of kinds."""

from random import Random

import pytest

from factbook.catalog import kinds
from factbook.web.charts import draw_kind_glyph
from factbook.web.entity_view import CAPTIONS, RelatedEntity, RelationGroup, group_related

Related = list[tuple[str, RelatedEntity]]


def related(name: str) -> RelatedEntity:
    """A component of the catalog."""
    return RelatedEntity(f"component:default/{name}", "component", name, f"/catalog/{name}")


def many(type_: str, count: int) -> Related:
    """Relations of one type with entities named by numbers."""
    return [(type_, related(f"n{n:03}")) for n in range(count)]


def groups(found: Related) -> list[RelationGroup]:
    """Groups of all these relations."""
    types = [type_ for type_, _ in found]
    return group_related(found, "/all", {type_: types.count(type_) for type_ in types})


def test_of_many_entities_eight_are_shown_and_the_others_counted(subtests: pytest.Subtests) -> None:
    for count, expected, left in [(8, 8, 0), (9, 9, 0), (10, 8, 2)]:
        with subtests.test(count=count):
            [group] = groups(many("dependencyOf", count))
            assert (len(group.entities), group.left, group.total) == (expected, left, count)
            assert group.href == "/all?type=dependencyOf"


def test_what_is_not_looked_up_counts_too() -> None:
    [group] = group_related(many("ownerOf", 9), "/all", {"ownerOf": 2008})
    assert (len(group.entities), group.left) == (8, 2000)


def test_the_order_of_relations_changes_nothing() -> None:
    found = [*many("dependsOn", 12), *many("ownedBy", 3), *many("hasPart", 4)]
    shuffled = list(found)
    Random(1).shuffle(shuffled)
    assert groups(shuffled) == groups(found)
    assert [group.caption for group in groups(found)] == ["has part", "owned by", "depends on"]


def test_entities_are_in_the_order_of_their_numbers() -> None:
    [group] = groups([("hasPart", related(f"shard-{n}")) for n in (10, 9, 100, 1)])
    shown = [one.title for one in group.entities]
    assert shown == ["shard-1", "shard-9", "shard-10", "shard-100"]


def test_a_type_that_the_catalog_does_not_know_reads_as_its_words() -> None:
    [group] = groups([("deployedToCluster", related("a"))])
    assert group.caption == "deployed to cluster"


def test_every_type_of_the_catalog_has_a_caption() -> None:
    assert set(CAPTIONS) == set(kinds.REVERSE_RELATIONS)


def test_each_kind_has_a_drawing_and_unknown_kinds_share_one() -> None:
    assert draw_kind_glyph("Component") == draw_kind_glyph("component") != draw_kind_glyph("api")
    assert draw_kind_glyph('"><script>') == draw_kind_glyph("anything")
