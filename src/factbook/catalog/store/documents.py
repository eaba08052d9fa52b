"""Stored entities: a document in two columns, between which reads insert the uid and the etag."""

from typing import NamedTuple

_METADATA = '"metadata":{'

# The whole document again, of `entities e`.
DOCUMENT = "e.head || e.body || '}'"


def split(document: str) -> tuple[str, str]:
    """Split into head, up to the brace that opens `metadata`, and body, without the last brace."""
    # metadata is the first object of a document: nothing before it can hold this text.
    head, opening, body = document.partition(_METADATA)
    return head + opening, body[:-1]


class StoredEntity(NamedTuple):
    """A stored entity; `relations` and `problems` are JSON."""

    ref: str
    head: str
    uid: str
    etag: str
    body: str
    relations: str
    problems: str | None

    def render(self) -> str:
        """The entity in the form that the catalog shows: with uid, etag, relations and status."""
        status = f',"status":{{"items":{self.problems}}}' if self.problems else ""
        return (
            f'{self.head}"uid":"{self.uid}","etag":"{self.etag}",{self.body},'
            f'"relations":{self.relations}{status}}}'
        )


# Of `entities e`.
COLUMNS = ", ".join(f"e.{name}" for name in StoredEntity._fields)

# The same, rendered, as parts that only have to be joined.
_PARTS = (
    """e.head || '"uid":"' || e.uid || '","etag":"' || e.etag || '",'""",
    "e.body",
    """',"relations":' || e.relations || CASE WHEN e.problems IS NULL THEN '}' """
    """ELSE ',"status":{"items":' || e.problems || '}}' END""",
)
# As one column: quicker to read where the rows of a page are few.
RENDERED = " || ".join(_PARTS)
# As columns that follow a comma.
JOINED = ", ".join([f"',' || {_PARTS[0]}", *_PARTS[1:]])
