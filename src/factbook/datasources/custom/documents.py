"""Decoding of a source's document: JSON, YAML or text, bounded in size and depth."""

from typing import Any, Final, Literal, get_args

import msgspec

from factbook import text_files

Format = Literal["json", "yaml", "text"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

DEEPEST_DOCUMENT: Final = 100
_TOO_DEEP: Final = f"is nested more than {DEEPEST_DOCUMENT} deep"
_MIB: Final = 1024 * 1024
# JSON takes up to 25 times its size in memory. YAML with this many parts takes about a second.
LONGEST_BODY: Final[dict[Format, int]] = {"json": 2 * _MIB, "yaml": _MIB, "text": 5 * _MIB}
MOST_YAML_PARTS: Final = 150_000


class UnreadableDocumentError(Exception):
    """A body that is not in the format, or exceeds a bound; the message quotes nothing of it."""


def read_body(body: bytes, format_: Format) -> Any:
    """The document in a body; raises UnreadableDocumentError with the reason.

    YAML is limited to the equivalent of JSON: one document, without anchors.
    """
    if len(body) > LONGEST_BODY[format_]:
        raise UnreadableDocumentError(f"has more than {LONGEST_BODY[format_] // 1024} KiB")
    body = text_files.utf_8(body)
    if format_ == "text":
        return body.decode("utf-8", errors="replace")
    if format_ == "json":
        return _decode_json(body)
    # Slow to import, and unused without YAML sources.
    from factbook.datasources.custom import yaml_text  # noqa: PLC0415

    return yaml_text.plain_document(body)


def _decode_json(body: bytes) -> Any:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UnreadableDocumentError("is not JSON") from None
    except RecursionError:
        raise UnreadableDocumentError(_TOO_DEEP) from None
    _check_depth(document)
    return document


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEEPEST_DOCUMENT):
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise UnreadableDocumentError(_TOO_DEEP)
