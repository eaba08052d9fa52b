"""SVG elements, icons of kinds, and estimates of text widths without a browser.

Data goes through `element`, which escapes it. Nothing here writes `style` or scripts: the
Content-Security-Policy forbids both, and colours are classes.
"""

import re
import string
import unicodedata
from hashlib import blake2s

from markupsafe import Markup, escape

from factbook import invisible

# What XML 1.0 allows (section 2.2); the rest shows as the replacement character.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IDENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

# Widths as parts of the font size, a little more than Inter and common system fonts need.
_PARTS = {
    character: part
    for characters, part in (
        (string.ascii_lowercase, 0.57),
        (string.digits, 0.62),
        (string.ascii_uppercase, 0.69),
        ("mwMW@%—…", 0.92),
        ('ftr()[]{}/\\-"', 0.4),
        ("ijlI.,:;'|!` ", 0.32),
    )
    for character in characters
}
# Strokes within 16 by 16.
_GLYPHS = {
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
_OTHER_GLYPH = "M8 2.2L13.8 8L8 13.8L2.2 8Z"


def element(name: str, *children: object, **attributes: object) -> Markup:
    """An element; text and attributes are escaped, attributes that are None are left out.

    Names follow Python: `class_` is class, `aria_label` is aria-label.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_safe(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    content = "".join(map(_safe, children))
    end = f">{content}</{name}>" if content else "/>"
    return Markup(f"<{name}{written}{end}")  # noqa: S704  all of it is escaped above


def _safe(value: object) -> str:
    """Escape text for an element or an attribute; Markup comes from `element`."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return number(value)
    text = invisible.marked(str(value), "\ufffd")
    if not text.isprintable():  # nothing that is printable is illegal
        text = _ILLEGAL.sub("\ufffd", text)
    return str(escape(text))


def number(value: float) -> str:
    """Format a coordinate, to a tenth."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def picture(
    *children: object,
    width: float,
    height: float,
    class_: str,
    title: str,
    desc: str,
    ident: str,
) -> Markup:
    """An <svg> with its name and description."""
    if not _IDENT.fullmatch(ident):
        raise ValueError(f"{ident!r} is no id of an element")
    return element(
        "svg",
        element("title", title, id=f"{ident}-title"),
        element("desc", desc, id=f"{ident}-desc"),
        *children,
        class_=class_,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_labelledby=f"{ident}-title",
        aria_describedby=f"{ident}-desc",
    )


def ident_of(*content: object) -> str:
    """An id derived from the content; a page that shows the same twice gives its own ids."""
    digest = blake2s(repr(content).encode("utf-8", "backslashreplace"), digest_size=6)
    return f"p{digest.hexdigest()}"


def label(text: str, *, x: float, y: float, width: float, size: float, class_: str) -> Markup:
    """One line of text from x on, its middle at y; text that does not fit ends in an ellipsis.

    The inner <svg> clips letters wider or higher than estimated.
    """
    height, shown = 1.6 * size, fitted(text, 0.96 * width, size)
    return element(
        "svg",
        element("text", shown, x=0, y=1.15 * size, class_=class_),
        x=x, y=y - height / 2, width=width, height=height,
    )  # fmt: skip


def fitted(text: str, width: float, size: float) -> str:
    """The text, or as much of its beginning as fits with an ellipsis."""
    if text_width(text, size) <= width:
        return text
    left, kept = width - size * _part("…"), 0
    for character in text:
        left -= size * _part(character)
        if left < 0:
            break
        kept += 1
    return text[:kept].rstrip() + "…"


def text_width(text: str, size: float) -> float:
    """Estimate the width of one line of text at a font size."""
    return size * sum(map(_part, text))


def _part(character: str) -> float:
    part = _PARTS.get(character)
    if part is not None:
        return part
    if unicodedata.east_asian_width(character) in {"W", "F"}:
        return 1.05
    return 0.0 if unicodedata.category(character) in {"Mn", "Me", "Cf"} else 0.75


def kind_shape(kind: str) -> Markup:
    """Drawing of a kind, 16 by 16, within an <svg>; one for all unknown kinds."""
    name = kind.lower()
    known = name in _GLYPHS
    class_ = f"glyph glyph-{name if known else 'other'}"
    return element("path", d=_GLYPHS.get(name, _OTHER_GLYPH), class_=class_)


def kind_glyph(kind: str) -> Markup:
    """Icon of a kind for display beside its name, and hence without a description."""
    return element(
        "svg", kind_shape(kind), class_="kind-glyph", viewBox="0 0 16 16", aria_hidden="true"
    )
