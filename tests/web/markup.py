"""What a page may not hold, whatever its data says."""

from html.parser import HTMLParser
from typing import Any

HOSTILE = "<script>alert('1')</script>\"'&<img src=x onerror=alert(1)>\u202egnp.exe\u2028"
# Without what no name may hold.
HOSTILE_NAME = HOSTILE.replace("\u202e", "")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.elements.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"])


def elements(page: str) -> list[tuple[str, dict[str, str]]]:
    """Every element of a page with its attributes."""
    reader = _Reader()
    reader.feed(page)
    return reader.elements


def links(page: str) -> list[dict[str, str]]:
    """The attributes of every link."""
    return [attributes for tag, attributes in elements(page) if tag == "a" and "href" in attributes]


def hrefs(page: str) -> list[str]:
    """Where every link leads."""
    return [attributes["href"] for attributes in links(page)]


def is_harmless(page: str) -> bool:
    """Whether nothing runs, leads to a script or leaves the site unasked, and each id is one's own.

    Asserts, so that a failure says what it found.
    """
    reader = _Reader()
    reader.feed(page)
    assert len(reader.ids) == len(set(reader.ids)), _twice(reader.ids)
    for tag, attributes in reader.elements:
        assert tag not in {"iframe", "object", "embed", "base"}
        assert tag != "script" or attributes["src"].startswith("/static/")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert tag != "img" or attributes["src"].startswith("/static/")
        for name in ("href", "action", "src"):
            assert attributes.get(name, "/").startswith(
                # The last two install the server in an editor.
                ("/", "https://", "http://", "mailto:", "#", "?", "cursor://", "vscode:mcp/")
            )
        if attributes.get("href", "/").startswith("http"):
            assert "noopener" in attributes["rel"]
    return True


def _twice(ids: list[Any]) -> list[Any]:
    return [each for each in set(ids) if ids.count(each) > 1]
