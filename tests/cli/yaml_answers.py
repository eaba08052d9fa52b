"""Recorded answers of the npm package `yaml`, with which Backstage reads its catalog files.

`yaml_answers.json` has texts and the documents in each, as `tests/contracts/yaml.mjs` gave them;
null where it refused. `tests/contracts/test_yaml.py` asks that package again.
"""

from pathlib import Path
from typing import Any

import msgspec

from factbook.cli import documents
from factbook.errors import InputError

_FILE = Path(__file__).with_suffix(".json")
Documents = list[Any] | None


def recorded() -> list[tuple[str, Documents]]:
    """Each text, and the documents that are in it, without empty ones."""
    found = msgspec.json.decode(_FILE.read_bytes())
    return [(text, documents) for text, documents in found["answers"]]


def ours(text: str) -> Documents:
    """The documents that a push reads in a text; None where it refuses."""
    try:
        found = documents.parse_entity_file(text.encode(), "catalog.yaml") or []
    except InputError:
        return None
    return [msgspec.json.decode(each.entity) for each in found]


def exact(value: Any) -> Any:
    """The value in a form in which true differs from 1, as in JSON, and 1.0 does not."""
    match value:
        case dict():
            return {key: exact(each) for key, each in value.items()}
        case list():
            return [exact(each) for each in value]
        case bool():
            return ("boolean", value)
        case _:
            return value
