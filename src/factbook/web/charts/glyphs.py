"""Icons of the kinds of entities."""

from markupsafe import Markup

from factbook.web.charts.svg import element

# Strokes within 16 by 16.
_PATHS = {
    "component": "M8 1.5L14 4.8V11.2L8 14.5L2 11.2V4.8ZM2.2 4.9L8 8.1L13.8 4.9M8 8.1V14.3",
    "api": "M5.5 2.5C3.5 2.5 4.6 7 2.5 8C4.6 9 3.5 13.5 5.5 13.5"
    "M10.5 2.5C12.5 2.5 11.4 7 13.5 8C11.4 9 12.5 13.5 10.5 13.5",
    "resource": "M2.5 4a5.5 2.2 0 1 0 11 0a5.5 2.2 0 1 0-11 0V12a5.5 2.2 0 0 0 11 0V4"
    "M2.5 8a5.5 2.2 0 0 0 11 0",
    "system": "M2 2H7V7H2ZM9 2H14V7H9ZM2 9H7V14H2ZM9 9H14V14H9Z",
    "domain": "M1.8 8a6.2 6.2 0 1 0 12.4 0a6.2 6.2 0 1 0-12.4 0M1.8 8H14.2"
    "M8 1.8C4.4 5.4 4.4 10.6 8 14.2C11.6 10.6 11.6 5.4 8 1.8",
    "group": "M3.7 5a2.3 2.3 0 1 0 4.6 0a2.3 2.3 0 1 0-4.6 0M1.5 13.5C1.5 8.4 10.5 8.4 10.5 13.5"
    "M10.3 2.9a2.2 2.2 0 0 1 0 4.2M12 9.6C13.8 10.2 14.6 11.6 14.6 13.5",
    "user": "M5.4 4.8a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0M2.8 14C2.8 8.2 13.2 8.2 13.2 14",
    "location": "M8 14.5C4.5 10.8 3.2 8.6 3.2 6.3a4.8 4.8 0 0 1 9.6 0C12.8 8.6 11.5 10.8 8 14.5Z"
    "M6.4 6.3a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0-3.2 0",
    "template": "M3.5 1.5H9.5L12.5 4.5V14.5H3.5ZM9.2 1.6V4.8H12.4M6 8.2H10M6 11H10",
    "airesource": "M8 1.5L9.7 6.3L14.5 8L9.7 9.7L8 14.5L6.3 9.7L1.5 8L6.3 6.3Z",
}
_OTHER = "M8 2.2L13.8 8L8 13.8L2.2 8Z"


def kind_shape(kind: str) -> Markup:
    """Drawing of a kind, 16 by 16, within an <svg>; one for all unknown kinds."""
    name = kind.lower()
    known = name in _PATHS
    class_ = f"glyph glyph-{name if known else 'other'}"
    return element("path", d=_PATHS.get(name, _OTHER), class_=class_)


def kind_glyph(kind: str) -> Markup:
    """Icon of a kind for display beside its name, and hence without a description."""
    return element(
        "svg", kind_shape(kind), class_="kind-glyph", viewBox="0 0 16 16", aria_hidden="true"
    )
