"""Search parameters of the catalog, and addresses with others."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Self, cast, get_args
from urllib.parse import quote, urlencode

from factbook.catalog.store import browse, overview
from factbook.catalog.store.broken_references import ANY, Field
from factbook.errors import InputError
from factbook.web.site.page_context import PageContext

PATH: Final = "/catalog"
MOST_COLUMNS: Final = 4
EXACT: Final = "exact"
MINE: Final = "mine"
NONE: Final = "none"
MISSING: Final = "missing"
OWNERSHIPS: Final = (
    ("", "Any"),
    (MINE, "Mine, including subteams"),
    (NONE, "No owner"),
    (MISSING, "Owner doesn't exist"),
)
DANGLING: Final = (
    ("", "With or without"),
    (ANY, "In any field"),
    *((name, f"In {name}") for name in get_args(Field) if name != ANY),
)
_FIRST: Final = "component"
_LONGEST: Final = 300  # characters of what is looked for; no value that the index has is longer
_WITHOUT_EFFECT: Final = frozenset({"order", "count", "column"})


@dataclass(frozen=True)
class CatalogQuery:
    """Search parameters of the address, as typed; `begins` if the address has none."""

    q: str = ""
    kind: str = ""
    namespace: str = ""
    owner: str = ""
    ownership: str = ""
    dangling: str = ""
    tag: str = ""
    type: str = ""
    lifecycle: str = ""
    system: str = ""
    level: str = ""
    set: str = ""
    order: str = ""
    count: str = ""
    column: tuple[str, ...] = ()
    begins: bool = False

    @classmethod
    async def of(cls, visit: PageContext) -> Self:
        """Parameters in the query of a request; raises InputError for unknown words.

        An address without any is the beginning: components, if there are any.
        """
        texts: dict[str, Any] = {
            one.name: _cut(visit.query(one.name)) for one in fields(cls) if one.type is str
        }
        columns = filter(None, dict.fromkeys(map(_cut, visit.request.all("column"))))
        asked = cls(**texts, column=tuple(columns)[:MOST_COLUMNS])
        for name, words in _WORDS.items():
            if getattr(asked, name) not in ("", *words):
                raise InputError(f"The {name} is one of {', '.join(words)}, or left out.")
        if visit.request.query or _FIRST not in await overview.kinds(visit.state.database):
            return asked
        return replace(asked, kind=_FIRST, begins=True)

    @property
    def narrowed(self) -> bool:
        """True if it asks for less than every entity."""
        given = self._given()
        return bool(given.keys() - _WITHOUT_EFFECT)

    @property
    def broken(self) -> Field | None:
        """The field in which references have to lead nowhere; None where it doesn't matter."""
        if self.dangling:
            return cast("Field", self.dangling)
        return "owner" if self.ownership == MISSING else None

    @property
    def further(self) -> bool:
        """True if it has a filter beyond the most usual ones."""
        return any((self.namespace, self.system, self.level, self.set, self.dangling))

    def address(self, path: str = PATH, **others: str) -> str:
        """Address with other values for some parameters; empty ones are left out.

        That of all entities says so, since an address without parameters is the beginning.
        """
        given = {name: value for name, value in {**self._given(), **others}.items() if value}
        query = urlencode(given or {"kind": ""}, doseq=True, quote_via=quote)
        return f"{path}?{query}"

    def _given(self) -> dict[str, str | tuple[str, ...]]:
        given = asdict(self)
        del given["begins"]
        return {name: value for name, value in given.items() if value}


def _cut(text: str) -> str:
    # No entity has the character NUL, and PostgreSQL takes no text that does.
    return text.strip().replace("\0", "")[:_LONGEST]


_WORDS: Final = {
    "order": browse.ORDERS,
    "count": (EXACT,),
    "ownership": [word for word, _ in OWNERSHIPS if word],
    "dangling": get_args(Field),
}
