"""SVG elements, and estimates of text widths without a browser.

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
