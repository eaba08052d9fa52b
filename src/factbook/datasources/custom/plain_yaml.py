"""YAML limited to the equivalent of JSON: one document, without anchors."""

from typing import Any

import msgspec
import yaml

from factbook.datasources.custom.documents import (
    DEEPEST,
    MOST_YAML_PARTS,
    TOO_DEEP,
    UnreadableDocumentError,
)
from factbook.integrations import safe_yaml


def read(body: bytes) -> Any:
    """The document in a body; raises UnreadableError with the reason."""
    try:
        check(body)
        found = yaml.load(body, safe_yaml.Loader)  # noqa: S506 - the loader makes plain values only
        return msgspec.json.decode(msgspec.json.encode(found))  # whose keys are texts
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", in line {mark.line + 1}" if mark else ""
        raise UnreadableDocumentError(f"is not plain YAML{where}") from None
    except (TypeError, ValueError):  # a number that is none, a key that is a list
        raise UnreadableDocumentError("is not plain YAML") from None


def check(body: bytes) -> None:
    """Refuse depth, bulk, and aliases, with which a few lines can expand beyond memory.

    Raises UnreadableError for those, and YAMLError for invalid YAML.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(body, safe_yaml.Loader)):
        if number > MOST_YAML_PARTS:
            raise UnreadableDocumentError(f"has more than {MOST_YAML_PARTS} parts")
        if isinstance(event, yaml.AliasEvent):
            raise UnreadableDocumentError("has an alias, which is not read")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise UnreadableDocumentError(TOO_DEEP)
