"""The fenced blocks of a page, and whether a real output is the one that a page shows."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

ELLIPSIS = "…"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TOKEN = re.compile(r"fbk_[0-9A-Za-z]{46}")
_VOLATILE = {"a time": _TIME, "a UUID": _UUID, "a token": _TOKEN}


class Example(NamedTuple):
    """A block that can be run, the line where it begins, and the output that follows it."""

    language: str
    code: str
    line: int
    shown_as: str | None
    shown: str


def examples(page: Path) -> list[Example]:
    """The blocks of bash and python of a page, in order, with the output shown after each."""
    text = page.read_text()
    blocks = list(_FENCE.finditer(text))
    found = []
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] not in ("bash", "python"):
            continue
        shown_as, shown = None, ""
        if following is not None and following[1] in ("json", "output"):
            # Words in between may say what comes; another block or heading may not.
            shown_as, shown = following[1], following[2]
        line = text.count("\n", 0, block.start()) + 1
        found.append(Example(block[1], block[2], line, shown_as, shown))
    return found


def lines_of(text: str) -> list[str]:
    """Output as it is compared: what changes from run to run has the same name everywhere."""
    for name, pattern in _VOLATILE.items():
        text = pattern.sub(f"<{name}>", text)
    return [line.rstrip() for line in text.strip().splitlines() if line.strip()]


def line_fits(shown: str, line: str) -> bool:
    """Whether a line is the shown one; `…` ends a line of which the rest is left out."""
    head, ellipsis, _ = shown.partition(ELLIPSIS)
    return line.startswith(head.replace("fbk_", "<a token>")) if ellipsis else line == shown


def output_differs(shown: str, output: str) -> str | None:
    """How an output differs from the one shown; None when it does not."""
    expected, found = lines_of(shown), lines_of(output)
    if len(expected) == len(found) and all(map(line_fits, expected, found)):
        return None
    return "\n".join(["shown:", *expected, "", "real:", *found])


def json_differs(shown: str, output: str) -> str | None:
    """Where JSON differs from the one shown; None when it does not."""
    try:
        return _difference(json.loads(shown), json.loads(output), "$")
    except json.JSONDecodeError as error:
        return f"{error}: {output}"


def _difference(shown: Any, real: Any, path: str) -> str | None:
    if shown == ELLIPSIS:
        return None
    if isinstance(shown, dict) and isinstance(real, dict):
        return _members_differ(shown, real, path)
    if isinstance(shown, list) and isinstance(real, list):
        return _elements_differ(shown, real, path)
    if isinstance(shown, str) and isinstance(real, str):
        for pattern in _VOLATILE.values():
            if pattern.fullmatch(shown) and pattern.fullmatch(real):
                return None
    same = type(shown) is type(real) and shown == real
    return None if same else f"{path}: {shown!r} is shown, {real!r} is real"


def _members_differ(shown: dict[str, Any], real: dict[str, Any], path: str) -> str | None:
    expected = shown.keys() - {ELLIPSIS}
    if missing := expected - real.keys():
        return f"{path}: {sorted(missing)} shown, but not real"
    if ELLIPSIS not in shown and (more := real.keys() - expected):
        return f"{path}: {sorted(more)} real, but not shown"
    found = (_difference(shown[key], real[key], f"{path}.{key}") for key in sorted(expected))
    return next((each for each in found if each), None)


def _elements_differ(shown: list[Any], real: list[Any], path: str) -> str | None:
    open_ended = shown[-1:] == [ELLIPSIS]
    expected = shown[:-1] if open_ended else shown
    if len(real) < len(expected) or (not open_ended and len(real) > len(expected)):
        return f"{path}: {len(expected)} elements are shown, {len(real)} are real"
    pairs = enumerate(zip(expected, real, strict=False))
    found = (_difference(each, other, f"{path}[{place}]") for place, (each, other) in pairs)
    return next((each for each in found if each), None)
