"""Storage format of a document: two columns, between which reads insert the uid and the etag."""

_METADATA = '"metadata":{'

# The whole document again, of `entities e`.
DOCUMENT = "e.head || e.body || '}'"


def split(document: str) -> tuple[str, str]:
    """Split into head, up to the brace that opens `metadata`, and body, without the last brace."""
    # metadata is the first object of a document: nothing before it can hold this text.
    head, opening, body = document.partition(_METADATA)
    return head + opening, body[:-1]


def rendered(
    head: str, uid: str, etag: str, body: str, relations: str, problems: str | None
) -> str:
    """The entity in the form that the catalog shows; `relations` and `problems` are JSON."""
    status = f',"status":{{"items":{problems}}}' if problems else ""
    return f'{head}"uid":"{uid}","etag":"{etag}",{body},"relations":{relations}{status}}}'


# The same as columns of `entities e` that follow a comma and only have to be joined.
RENDERED = (
    """',' || e.head || '"uid":"' || e.uid || '","etag":"' || e.etag || '",', e.body, """
    """',"relations":' || e.relations || CASE WHEN e.problems IS NULL THEN '}' """
    """ELSE ',"status":{"items":' || e.problems || '}}' END"""
)
