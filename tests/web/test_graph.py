"""The picture of what an entity is related to."""

from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.catalog import relations
from factbook.web.charts.glyphs import kind_glyph
from factbook.web.charts.graph import INCOMING, OUTGOING, Edge, Node, relation_rows, relations_graph
from tests.web.pictures import HOSTILE, NAMES, Element, of_class, points, read, texts, title, value

TYPES = st.one_of(st.sampled_from([*INCOMING, *OUTGOING]), NAMES)
NODES = st.builds(Node, NAMES, NAMES, NAMES, st.sampled_from([None, "/catalog/a"]), st.booleans())
EDGES = st.lists(st.builds(Edge, TYPES, NODES), max_size=40)

CENTRE = Node("component:default/checkout", "component", "checkout", "/catalog/checkout")


def node(name: str, *, exists: bool = True) -> Node:
    """A component of the catalog."""
    return Node(f"component:default/{name}", "component", name, f"/catalog/{name}", exists)


def edges(type_: str, count: int) -> list[Edge]:
    """Relations of one type with entities named by letters."""
    return [Edge(type_, node(f"n{n:03}")) for n in range(count)]


def boxes(picture: Element) -> list[Element]:
    """The boxes of all entities; the one in the middle is the last of a wide drawing."""
    return of_class(picture, "graph-box")


@given(NODES, EDGES)
def test_the_relations_of_anything_can_be_drawn(centre: Node, found: list[Edge]) -> None:
    for picture in read(relations_graph(centre, found, {"dependsOn": "/more"})):
        assert len(of_class(picture, "graph-title")) == 1
        _boxes_stand_apart(picture)
        _lines_keep_out_of_boxes(picture)


def test_what_points_at_the_entity_stands_left_of_it_and_what_it_points_at_right() -> None:
    found = [Edge("dependsOn", node("below")), Edge("dependencyOf", node("above"))]
    wide, _ = read(relations_graph(CENTRE, found))
    left, right, centre = boxes(wide)
    assert texts(wide, "graph-type") == ["dependency of", "depends on"]
    assert texts(wide, "graph-name") == ["above", "below"]
    assert value(left, "x") < value(centre, "x") < value(right, "x")


def test_in_narrow_places_the_entity_stands_above_its_relations() -> None:
    found = [*edges("dependsOn", 2), *edges("ownerOf", 2)]
    _, narrow = read(relations_graph(CENTRE, found))
    centre, *others = sorted(boxes(narrow), key=lambda box: value(box, "y"))
    assert value(centre, "width") > value(others[0], "width")
    assert len({value(other, "x") for other in others}) == 1


def test_every_entity_links_to_its_page_and_tells_its_reference() -> None:
    wide, _ = read(relations_graph(CENTRE, [Edge("dependsOn", node("orders-db"))]))
    (link,) = wide.iter("a")
    assert link.get("href") == "/catalog/orders-db"
    assert title(link) == "orders-db · component:default/orders-db"


def test_an_entity_that_is_not_in_the_catalog_has_no_link() -> None:
    for picture in read(relations_graph(CENTRE, [Edge("dependsOn", node("gone", exists=False))])):
        (missing,) = of_class(picture, "graph-missing")
        assert title(missing) == "gone · component:default/gone · not in the catalog"
        assert list(picture.iter("a")) == []


@pytest.mark.parametrize(
    ("count", "shown", "more"),
    [(8, 8, []), (9, 9, []), (10, 8, ["and 2 more"]), (2008, 8, ["and 2,000 more"])],
)
def test_of_many_entities_eight_are_shown_and_the_others_counted(
    count: int, shown: int, more: list[str]
) -> None:
    found = relations_graph(CENTRE, edges("dependencyOf", count), {"dependencyOf": "/all"})
    for picture in read(found):
        assert len(of_class(picture, "graph-name")) == shown
        assert texts(picture, "graph-more") == more
        assert [link.get("href") for link in picture.iter("a")][shown:] == ["/all"] * len(more)
        assert picture.findtext("desc") == f"dependency of {count}."


def test_a_long_name_is_cut_and_told_in_full() -> None:
    name = "a-very-long-name-" * 6
    for picture in read(relations_graph(CENTRE, [Edge("dependsOn", node(name))])):
        (shown,) = texts(picture, "graph-name")
        assert shown.endswith("…")
        assert name.startswith(shown[:-1])
        assert title(of_class(picture, "graph-node")[0]).startswith(name)


def test_an_entity_without_relations_stands_alone() -> None:
    for picture in read(relations_graph(CENTRE, [])):
        assert len(boxes(picture)) == 1
        assert picture.findtext("desc") == "No relations."


def test_the_order_of_relations_changes_nothing() -> None:
    found = [*edges("dependsOn", 12), *edges("ownedBy", 3), *edges("hasPart", 4)]
    shuffled = list(found)
    Random(1).shuffle(shuffled)
    assert relations_graph(CENTRE, shuffled) == relations_graph(CENTRE, found)


def test_entities_are_in_the_order_of_their_numbers() -> None:
    found = [Edge("hasPart", node(f"shard-{n}")) for n in (10, 9, 100, 1)]
    wide, _ = read(relations_graph(CENTRE, found))
    assert texts(wide, "graph-name") == ["shard-1", "shard-9", "shard-10", "shard-100"]


def test_a_type_that_the_catalog_does_not_know_reads_as_its_words() -> None:
    wide, _ = read(relations_graph(CENTRE, [Edge("deployedToCluster", node("a"))]))
    assert texts(wide, "graph-type") == ["deployed to cluster"]


def test_every_type_of_the_catalog_has_a_side_and_its_reverse_the_other() -> None:
    assert set(INCOMING) | set(OUTGOING) == set(relations.REVERSE)
    assert {relations.REVERSE[type_] for type_ in INCOMING} == set(OUTGOING)


def test_the_rows_are_all_relations_in_the_order_of_the_picture() -> None:
    found = [*edges("dependsOn", 12), *edges("hasPart", 1)]
    rows = relation_rows(found)
    assert [caption for caption, _ in rows] == ["has part", *["depends on"] * 12]
    assert [one.title for _, one in rows][1:3] == ["n000", "n001"]


def test_names_are_text_and_nothing_else() -> None:
    one = Node(HOSTILE, HOSTILE, HOSTILE, "/a", exists=True)
    found = relations_graph(one, [Edge(HOSTILE, one)], {HOSTILE: "/b"})
    assert "<script" not in found
    assert len(read(found)) == 2


def test_no_link_leaves_the_site() -> None:
    away = Node("component:default/a", "component", "a", "//evil.example")
    with pytest.raises(ValueError, match="is not a path on this site"):
        relations_graph(CENTRE, [Edge("dependsOn", away)])


def test_two_pictures_on_a_page_have_ids_of_their_own() -> None:
    one, other = (relations_graph(CENTRE, edges("dependsOn", count)) for count in (1, 2))
    ids = [element.get("id") for found in (one, other) for svg in read(found) for element in svg]
    assert len([id_ for id_ in ids if id_]) == len({id_ for id_ in ids if id_}) == 8


def test_each_kind_has_a_drawing_and_unknown_kinds_share_one() -> None:
    assert kind_glyph("Component") == kind_glyph("component") != kind_glyph("api")
    assert kind_glyph('"><script>') == kind_glyph("anything")


def _boxes_stand_apart(picture: Element) -> None:
    for one, other in combinations(boxes(picture), 2):
        assert any(
            value(a, axis) + value(a, size) <= value(b, axis) + 0.1
            for axis, size in (("x", "width"), ("y", "height"))
            for a, b in ((one, other), (other, one))
        )


def _lines_keep_out_of_boxes(picture: Element) -> None:
    path = [at for line in of_class(picture, "graph-line") for at in points(line.get("d", ""))]
    for box in boxes(picture):
        left, top = value(box, "x"), value(box, "y")
        right, bottom = left + value(box, "width"), top + value(box, "height")
        assert not any(
            left + 0.2 < x < right - 0.2 and top + 0.2 < y < bottom - 0.2 for x, y in path
        )
