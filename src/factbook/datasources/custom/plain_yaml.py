"""YAML limited to the equivalent of JSON: one document, without anchors."""

from typing import Any

import msgspec
import yaml

from factbook.datasources.custom.documents import (
    DEEPEST,
    MOST_YAML_PARTS,
    TOO_DEEP,
    UnreadableError,
)
from factbook.integrations import safe_yaml


def read(body: bytes) -> Any:
    """The document in a body; raises UnreadableError with the reason."""
    try:
        check(body)
        found = yaml.load(body, Loader)  # noqa: S506 - the loader makes plain values only
        return msgspec.json.decode(msgspec.json.encode(found))  # whose keys are texts
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", in line {mark.line + 1}" if mark else ""
        raise UnreadableError(f"is not plain YAML{where}") from None
    except (TypeError, ValueError):  # a number that is none, a key that is a list
        raise UnreadableError("is not plain YAML") from None


def check(body: bytes) -> None:
    """Refuse aliases, with which a few lines stand for more than memory holds, depth and bulk.

    Raises UnreadableError for those, and YAMLError for what is no YAML.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(body, yaml.CSafeLoader)):
        if number > MOST_YAML_PARTS:
            raise UnreadableError(f"has more than {MOST_YAML_PARTS} parts")
        if isinstance(event, yaml.AliasEvent):
            raise UnreadableError("has an alias, which is not read")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise UnreadableError(TOO_DEEP)


class Loader(safe_yaml.Loader):
    """Values as JSON has them."""


def _text_of(loader: Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


Loader.add_constructor("tag:yaml.org,2002:timestamp", _text_of)
