"""Custom sources that use each connection, according to their definitions and drafts."""

import msgspec

from factbook.storage import Database, Row, Transaction


async def everything(database: Database) -> dict[str, list[str]]:
    """The ids of the custom sources that use each connection, by connection name."""
    found: dict[str, list[str]] = {}
    async for rows in database.pages(_DOCUMENTS, size=100):
        for row in rows:
            for name in _asked(row):
                found.setdefault(name, []).append(row[0])
    return found


def of(transaction: Transaction, name: str) -> list[str]:
    """The ids of the custom sources that use the connection."""
    return [row[0] for row in transaction.all(_DOCUMENTS) if name in _asked(row)]


def _asked(row: Row) -> set[str]:
    handlers = [_decoder.decode(text).handler_definition for text in row[1:] if text is not None]
    return {one.config.connection for one in handlers if one.type == "http"}


class _ConnectionConfig(msgspec.Struct):
    connection: str = ""


class _Handler(msgspec.Struct):
    type: str
    config: _ConnectionConfig


class _HandlerDocument(msgspec.Struct, rename="camel"):
    handler_definition: _Handler


_decoder = msgspec.json.Decoder(_HandlerDocument)

_DOCUMENTS = "SELECT id, draft, published FROM data_sources ORDER BY id"
