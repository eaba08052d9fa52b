"""A picture of what an entity is related to.

The entity stands in the middle: what points at it on the left, what it points at on the right, one
group for each type of relation. In narrow places the groups stand below the entity.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from factbook.web.charts.glyphs import kind_shape
from factbook.web.charts.svg import element, ident_of, label, link, number, picture
from factbook.web.site.formatting import naturally

# For each type of relation of the catalog, how it reads after the entity's name. The order is
# that of the groups.
INCOMING = {
    "dependencyOf": "dependency of",
    "hasPart": "has part",
    "apiProvidedBy": "API provided by",
    "apiConsumedBy": "API consumed by",
    "ownerOf": "owner of",
    "parentOf": "parent of",
    "hasMember": "has member",
}
OUTGOING = {
    "ownedBy": "owned by",
    "partOf": "part of",
    "dependsOn": "depends on",
    "providesApi": "provides API",
    "consumesApi": "consumes API",
    "childOf": "child of",
    "memberOf": "member of",
}

_SIZE = 13.0
_BOX, _GAP, _BETWEEN, _CAPTION = 34.0, 8.0, 22.0, 24.0
_SHOWN = 8  # of a group


class Node(NamedTuple):
    """An entity in the picture; one that is not in the catalog has no page."""

    ref: str
    kind: str
    title: str
    href: str | None
    exists: bool = True


class Edge(NamedTuple):
    """A relation of the entity in the middle: its type, seen from there, and the other entity."""

    type: str
    node: Node


class _Group(NamedTuple):
    type: str
    caption: str
    nodes: list[Node]
    left: int  # how many more there are than are shown
    href: str | None

    @property
    def is_linked(self) -> bool:
        """Whether anything in it is a link."""
        more = self.left and self.href is not None
        return bool(more) or any(node.exists and node.href is not None for node in self.nodes)

    @property
    def rows(self) -> int:
        return len(self.nodes) + (1 if self.left else 0)

    @property
    def height(self) -> float:
        return _CAPTION + self.rows * (_BOX + _GAP) - _GAP

    def middle(self, row: int) -> float:
        """Where the middle of a row is, from the top of the group."""
        return _CAPTION + row * (_BOX + _GAP) + _BOX / 2


def relations_graph(
    centre: Node,
    edges: Sequence[Edge],
    more: Mapping[str, str] | None = None,
    *,
    counts: Mapping[str, int] | None = None,
    ident: str | None = None,
) -> Markup:
    """The entity and its neighbours by type of relation, each linked to its page.

    Of each type the first eight by title are shown; `more` gives the page that lists all of a type,
    `counts` how many those are where not all of them are among `edges`. Drawn for wide and for
    narrow places; the stylesheet shows the one that fits. Raises ValueError for an address that is
    not a path on this site.
    """
    groups = _groups(edges, more or {}, counts or {})
    ident = ident or ident_of("relations", centre, groups)
    incoming = [group for group in groups if group.type in INCOMING]
    outgoing = [group for group in groups if group.type not in INCOMING]
    told = ", ".join(f"{group.caption} {len(group.nodes) + group.left}" for group in groups)
    about = {"title": f"Relations of {centre.title}", "desc": f"{told or 'No relations'}."}
    links = any(group.is_linked for group in groups)
    shapes, width, height = _wide(centre, incoming, outgoing)
    wide = picture(
        *shapes, width=width, height=height, class_="chart graph chart-wide",
        ident=f"{ident}-w", links=links, **about,
    )  # fmt: skip
    shapes, width, height = _narrow(centre, incoming + outgoing)
    narrow = picture(
        *shapes, width=width, height=height, class_="chart graph chart-narrow",
        ident=f"{ident}-n", links=links, **about,
    )  # fmt: skip
    return element("div", wide, narrow, class_="chart-fit")


def relation_rows(edges: Sequence[Edge]) -> list[tuple[str, Node]]:
    """(caption, entity) of every relation in the order of the picture, for a table beside it."""
    groups = _groups(edges, {}, {}, shown=len(edges))
    return [(group.caption, node) for group in groups for node in group.nodes]


def caption(type_: str) -> str:
    """How a type of relation reads; one that the catalog does not know as its words."""
    known = INCOMING.get(type_) or OUTGOING.get(type_)
    return known or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", type_).lower()


def _groups(
    edges: Sequence[Edge], more: Mapping[str, str], counts: Mapping[str, int], shown: int = _SHOWN
) -> list[_Group]:
    by_type: dict[str, set[Node]] = {}
    for edge in edges:
        by_type.setdefault(edge.type, set()).add(edge.node)
    order = {type_: n for n, type_ in enumerate((*INCOMING, *OUTGOING))}
    groups = []
    for type_ in sorted(by_type, key=lambda type_: (order.get(type_, len(order)), type_)):
        nodes = sorted(by_type[type_], key=_by_title)
        count = counts.get(type_, len(nodes))
        # A row that says "and 1 more" would take as much room as the one itself.
        kept = nodes if count <= shown + 1 else nodes[:shown]
        groups.append(_Group(type_, caption(type_), kept, count - len(kept), more.get(type_)))
    return groups


def _by_title(node: Node) -> tuple[str, ...]:
    return naturally(node.title), node.ref, node.kind, node.href or "", str(node.exists)


class _Side(NamedTuple):
    """Where the boxes of one side stand, and where their lines meet."""

    x: float  # of the boxes
    width: float
    edge: float  # of the boxes, towards the entity
    spine: float  # where the lines of a group meet
    anchor: float  # the edge of the entity

    @property
    def incoming(self) -> bool:
        return self.edge < self.anchor


def _wide(
    centre: Node, incoming: Sequence[_Group], outgoing: Sequence[_Group]
) -> tuple[list[Markup], float, float]:
    height = max(_height(incoming), _height(outgoing), 64.0)
    if incoming and outgoing:
        x, width, reach = 290.0, 180.0, 226.0
        left = _Side(1, reach, 1 + reach, reach + 17, x)
        right = _Side(759 - reach, reach, 759 - reach, 743 - reach, x + width)
    else:
        # With one side only, the two columns share the room.
        x, width, reach = (70.0 if outgoing else 470.0), 220.0, 300.0
        x = x if incoming or outgoing else 270.0
        left = _Side(70, reach, 370, 390, x)
        right = _Side(390, reach, 390, 370, x + width)
    box = min(height, max(56.0, 16.0 * max(len(incoming), len(outgoing)) + 16))
    top = (height - box) / 2
    shapes = _column(incoming, left, height, box) + _column(outgoing, right, height, box)
    shapes.append(_centre(centre, x, top, width, box))
    return shapes, 760.0, height + 2


def _height(groups: Sequence[_Group]) -> float:
    return sum(group.height for group in groups) + _BETWEEN * max(0, len(groups) - 1)


def _column(groups: Sequence[_Group], side: _Side, height: float, box: float) -> list[Markup]:
    """Groups below one another, each with its lines to a place of its own on the entity's edge."""
    shapes: list[Markup] = []
    top = (height - _height(groups)) / 2
    for n, group in enumerate(groups):
        step = (box - 16) / len(groups)
        to = (height - box) / 2 + 8 + step * (n + 0.5)
        shapes += _joined(group, side, top, to)
        shapes.append(element("text", group.caption, x=side.x + 2, y=top + 14, class_="graph-type"))
        shapes += _boxes(group, side.x, top, side.width)
        top += group.height + _BETWEEN
    return shapes


def _joined(group: _Group, side: _Side, top: float, to: float) -> list[Markup]:
    middle = top + (group.middle(0) + group.middle(group.rows - 1)) / 2
    bend = (side.spine + side.anchor) / 2
    a, b, s = number(side.anchor), number(bend), number(side.spine)
    lines = [f"M{s} {number(middle)}C{b} {number(middle)} {b} {number(to)} {a} {number(to)}"]
    for row in range(group.rows):
        lines.append(_elbow(side.edge, top + group.middle(row), side.spine, middle))
    shapes = [element("path", d="".join(lines), class_="graph-line")]
    if side.incoming:
        return [*shapes, _arrow(side.anchor, to)]
    return [*shapes, *(_arrow(side.edge, top + group.middle(row)) for row in range(group.rows))]


def _elbow(edge: float, y: float, spine: float, middle: float) -> str:
    """From a box to the spine, then along it to the middle, with a round corner."""
    if abs(y - middle) < 1:
        return f"M{number(edge)} {number(y)}H{number(spine)}"
    turn = min(8.0, abs(y - middle))
    back = spine - turn if spine > edge else spine + turn
    down = y + turn if middle > y else y - turn
    s = number(spine)
    return (
        f"M{number(edge)} {number(y)}H{number(back)}"
        f"Q{s} {number(y)} {s} {number(down)}V{number(middle)}"
    )


def _arrow(x: float, y: float) -> Markup:
    """A head that points to the right at a place."""
    d = f"M{number(x - 6)} {number(y - 3.5)}L{number(x - 0.5)} {number(y)}L{number(x - 6)} "
    return element("path", d=f"{d}{number(y + 3.5)}Z", class_="graph-arrow")


def _boxes(group: _Group, x: float, top: float, width: float) -> list[Markup]:
    boxes = [
        _box(node, x, top + group.middle(row) - _BOX / 2, width)
        for row, node in enumerate(group.nodes)
    ]
    if group.left:
        y = top + group.middle(len(group.nodes))
        text = f"and {group.left:,} more"
        shapes = (
            element(
                "rect", x=x, y=y - _BOX / 2, width=width, height=_BOX, rx=6, class_="graph-rest"
            ),
            element("text", text, x=x + 34, y=y + 4.5, class_="graph-more"),
        )
        boxes.append(link(group.href, *shapes, class_="graph-node"))
    return boxes


def _box(node: Node, x: float, y: float, width: float) -> Markup:
    told = f"{node.title} · {node.ref}" + ("" if node.exists else " · not in the catalog")
    return link(
        node.href if node.exists else None,
        element("title", told),
        element("rect", x=x, y=y, width=width, height=_BOX, rx=6, class_="graph-box"),
        kind_shape(node.kind, x + 10, y + 9),
        label(
            node.title, x=x + 34, y=y + _BOX / 2, width=width - 44, size=_SIZE, class_="graph-name"
        ),
        class_="graph-node" if node.exists else "graph-node graph-missing",
    )


def _centre(node: Node, x: float, y: float, width: float, height: float) -> Markup:
    middle = y + height / 2
    text = width - 48
    return element(
        "g",
        element("title", f"{node.title} · {node.ref}"),
        element("rect", x=x, y=y, width=width, height=height, rx=8, class_="graph-box"),
        kind_shape(node.kind, x + 14, middle - 16),
        label(node.title, x=x + 38, y=middle - 8, width=text, size=14.5, class_="graph-title"),
        label(node.kind, x=x + 38, y=middle + 11, width=text, size=12, class_="graph-kind"),
        class_="graph-centre",
    )


def _narrow(centre: Node, groups: Sequence[_Group]) -> tuple[list[Markup], float, float]:
    """The entity above, the groups below it along one line."""
    shapes, top, last, width = [_centre(centre, 1, 1, 358, 56)], 57 + _BETWEEN, 0.0, 332.0
    lines = []
    for group in groups:
        shapes.append(element("text", group.caption, x=28, y=top + 14, class_="graph-type"))
        shapes += _boxes(group, 27, top, width)
        for row in range(group.rows):
            last = top + group.middle(row)
            lines.append(f"M13 {number(last - 8)}Q13 {number(last)} 21 {number(last)}H27")
        top += group.height + _BETWEEN
    if last:
        lines.append(f"M13 57V{number(last - 8)}")
    shapes.insert(0, element("path", d="".join(lines), class_="graph-line"))
    return shapes, 360.0, top - _BETWEEN + 2
