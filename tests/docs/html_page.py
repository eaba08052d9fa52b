"""What a page of the built documentation names: its ids, its links, and what a browser fetches."""

from html.parser import HTMLParser
from pathlib import Path

# Links of a page head that a browser does not fetch.
_NOT_FETCHED = frozenset({"canonical", "next", "prev", "alternate"})
_SOURCES = ("src", "srcset", "poster", "data")


class HTMLPage(HTMLParser):
    """The `ids`, `classes` and `links` of a page, and the addresses that are `fetched` with it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.classes: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names."""
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        self.classes |= set(values.get("class", "").split())
        self.fetched += [values[name] for name in _SOURCES if name in values]
        if "href" not in values:
            return
        if tag == "a":
            self.links.append(values["href"])
        elif values.get("rel") not in _NOT_FETCHED:
            self.fetched.append(values["href"])
