"""YAML: documents that sources read, and the text form of definitions.

Limited to the equivalent of JSON: one document, without anchors.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec
import yaml

from factbook import safe_yaml
from factbook.datasources.custom import documents
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.errors import InvalidItemsError, problem

LONGEST_YAML: Final = 256 * 1024
_LONGEST_PROBLEM: Final = 200
_LONGEST_LINE: Final = 80  # of a mapping or list that is written in one


def read_yaml(text: str) -> dict[str, Any]:
    """The document in a text; raises InvalidItemsError with each mistake and its place."""
    body = text.removeprefix("\ufeff").encode()
    if len(body) > LONGEST_YAML:
        raise _yaml_error("", f"has more than {LONGEST_YAML // 1024} KiB")
    found = _read_yaml_body(body)
    if not isinstance(found, dict):
        raise _yaml_error("", "has to be a mapping that begins like id: builds")
    return found


def write_yaml(document: dict[str, Any]) -> str:
    """The YAML text of a document, readable by `read_yaml`."""
    return yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


def _read_yaml_body(body: bytes) -> Any:
    try:
        if body.lstrip()[:1] == b"{":
            with suppress(UnreadableDocumentError):  # it may be YAML in braces
                return documents.read_body(body, "json")
        check_yaml(body)
        return safe_yaml.load_as_json(body, safe_yaml.UniqueLoader)
    except UnreadableDocumentError as error:
        raise _yaml_error("", str(error)) from None
    except yaml.MarkedYAMLError as error:
        mark = safe_yaml.mark(error)
        where = f"line {mark.line + 1}" if mark else ""
        raise _yaml_error(where, str(error.problem)[:_LONGEST_PROBLEM]) from None
    except (yaml.YAMLError, TypeError, ValueError):
        raise _yaml_error("", "is neither plain YAML nor JSON") from None


def plain_document(body: bytes) -> Any:
    """The document in a body; raises UnreadableDocumentError with the reason, quoting nothing."""
    try:
        check_yaml(body)
        return safe_yaml.load_as_json(body)
    except yaml.YAMLError as error:
        mark = safe_yaml.mark(error)
        where = f", in line {mark.line + 1}" if mark else ""
        raise UnreadableDocumentError(f"is not plain YAML{where}") from None
    except (TypeError, ValueError):  # an invalid number, a list as a key
        raise UnreadableDocumentError("is not plain YAML") from None


def check_yaml(body: bytes) -> None:
    """Refuse depth, bulk and aliases before anything is constructed.

    Raises UnreadableDocumentError for those, and YAMLError for invalid YAML.
    """
    try:
        safe_yaml.check(body, documents.DEEPEST_DOCUMENT, most_parts=documents.MOST_YAML_PARTS)
    except safe_yaml.LimitError as error:
        raise UnreadableDocumentError(str(error)) from None


def _yaml_error(path: str, message: str) -> InvalidItemsError:
    return InvalidItemsError([problem(path, message)])


class _Dumper(yaml.CSafeDumper):
    """Dumper that writes no anchors, and strings of several lines as blocks.

    A string is quoted if readers of YAML 1.1 or 1.2 would take it for another type.
    """

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_mapping(dumper: _Dumper, value: dict[str, Any]) -> yaml.MappingNode:
    flow = _fits_line(value, value.values())
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=flow)


def _represent_sequence(dumper: _Dumper, value: list[Any]) -> yaml.SequenceNode:
    flow = _fits_line(value, value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flow)


def _fits_line(value: object, parts: Iterable[object]) -> bool:
    if any(isinstance(part, dict | list) and part for part in parts):
        return False
    return len(msgspec.json.encode(value)) <= _LONGEST_LINE


def _represent_text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    if safe_yaml.has_breaks(value):  # which are written as escapes between these alone
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(dict, _represent_mapping)
_Dumper.add_representer(list, _represent_sequence)
_Dumper.add_representer(str, _represent_text)
for _kind, _form, _beginnings in safe_yaml.IMPLICIT:
    # Of a tag of its own, so that nothing counts as what YAML 1.1 would read in it.
    _Dumper.add_implicit_resolver(f"!{_kind}", _form, _beginnings)
