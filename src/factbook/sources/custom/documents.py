"""Reading what a source brings: JSON, YAML or text, bounded in size and depth."""

from typing import Any, Final, Literal, get_args

import msgspec
import yaml

Format = Literal["json", "yaml", "text"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

DEEPEST: Final = 100
_MIB: Final = 1024 * 1024
# JSON takes up to 25 times its size in memory. YAML takes about a second for so many parts.
LONGEST: Final[dict[Format, int]] = {"json": 2 * _MIB, "yaml": _MIB, "text": 5 * _MIB}
MOST_YAML_PARTS: Final = 150_000


class UnreadableError(Exception):
    """A body that is not of the format, or beyond its bounds; the message quotes nothing of it."""


def read(body: bytes, format_: Format) -> Any:
    """The document in a body; raises UnreadableError saying what is wrong with it.

    YAML means what JSON can say: one document, without anchors, and dates as texts.
    """
    if len(body) > LONGEST[format_]:
        raise UnreadableError(f"has more than {LONGEST[format_] // 1024} KiB")
    if format_ == "text":
        return body.decode("utf-8", errors="replace")
    return _json(body) if format_ == "json" else _yaml(body)


def _json(body: bytes) -> Any:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UnreadableError("is not JSON") from None
    except RecursionError:
        raise UnreadableError(_TOO_DEEP) from None
    _check_depth(document)
    return document


def _yaml(body: bytes) -> Any:
    try:
        check_yaml(body)
        found = yaml.load(body, _Loader)  # noqa: S506 - the loader makes plain values only
        return msgspec.json.decode(msgspec.json.encode(found))  # whose keys are texts
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", in line {mark.line + 1}" if mark else ""
        raise UnreadableError(f"is not plain YAML{where}") from None
    except (TypeError, ValueError):  # a number that is none, a key that is a list
        raise UnreadableError("is not plain YAML") from None


def check_yaml(body: bytes) -> None:
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
            raise UnreadableError(_TOO_DEEP)


_TOO_DEEP = f"is nested more than {DEEPEST} deep"


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEEPEST):
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise UnreadableError(_TOO_DEEP)


class _Loader(yaml.CSafeLoader):
    """Values as JSON has them."""


def _text_of(loader: _Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _text_of)
