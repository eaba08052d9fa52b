"""Whether a file of the repository holds what looks like a secret."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import re2

# Forms of credentials that somebody could paste by mistake. With `re` the search took a hundred
# times as long as with re2.
_KNOWN: Final = re2.compile(
    r"(?P<private_key>-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40})"
    r"|(?P<github>\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,}))"
    r"|(?P<gitlab>\bglpat-[A-Za-z0-9_-]{20,})"
    r"|(?P<aws>\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)"
    r"|(?P<slack>\bxox[abprs]-[A-Za-z0-9-]{20,})"
    r"|(?P<pypi>\bpypi-[A-Za-z0-9_-]{60,})"
    r"|(?P<npm>\bnpm_[A-Za-z0-9]{36}\b)"
    r"|(?P<google>\bAIza[A-Za-z0-9_-]{35}\b)"
    r"|(?P<stripe>\b[rs]k_live_[A-Za-z0-9]{20,})"
    r"|(?P<jwt>\beyJ[A-Za-z0-9_-]{20,}\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,})"
    r"|(?P<factbook>\bfbk_[A-Za-z0-9]{46}\b)"
    r"|(?P<webhook>\bwhsec_[A-Za-z0-9+/]{40,})"
)
# A value given to something that is called like a secret, and so random that nobody made it up.
_NAMED: Final = re2.compile(
    r"(?i)(?:secret|token|passw(?:or)?d|api_?key|credential)\w*[\"']?\s*[:=]\s*"
    r"[\"']?([A-Za-z0-9+/_=-]{24,})"
)
_LEAST_BITS: Final = 4.0  # for each character

# What is made up, or was and is public: nothing else may look like a secret.
MADE_UP: Final = frozenset(
    {
        # The examples of docs/start.md, README.md and docs/how-to/operate.md.
        "fbk_JwgoPTRJa29JTSzvFp9mY8uI0kfAlV7vPth2R9FM2Wi0GG",
    }
)
# Databases that tests made, with the tokens of those tests, and inputs that were found by chance.
_MADE_BY_TESTS: Final = ("tests/storage/schemas/", "tests/fuzz/corpora/")
_LARGEST: Final = 2 * 1024 * 1024
_LOCKS: Final = (".lock", "package-lock.json")


def problems(root: Path, paths: Iterable[Path]) -> list[str]:
    """Where something looks like a secret: the place and the kind, never the value."""
    found = []
    for path in paths:
        name = path.relative_to(root).as_posix()
        if name.endswith(_LOCKS) or name.startswith(_MADE_BY_TESTS):
            continue
        if not path.is_file() or path.stat().st_size > _LARGEST:
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        for kind, at in suspicious(text):
            line = text.count("\n", 0, at) + 1
            found.append(f"{name}:{line} holds what looks like a secret ({kind})")
    return found


def suspicious(text: str) -> list[tuple[str, int]]:
    """The kind and the place of everything in a text that looks like a secret."""
    found = [
        (str(match.lastgroup), match.start())
        for match in _KNOWN.finditer(text)
        if match[0] not in MADE_UP and not _is_monotone(match[0])
    ]
    found += [
        ("random", match.start())
        for match in _NAMED.finditer(text)
        if match[1] not in MADE_UP and _bits(match[1]) >= _LEAST_BITS and _is_mixed(match[1])
    ]
    return sorted(found, key=lambda each: each[1])


def _is_monotone(value: str) -> bool:
    """Whether it is `0000…` or the like, as examples have it."""
    return len(set(value[-30:])) < 8


def _is_mixed(value: str) -> bool:
    """Whether it has digits among letters of both cases: names of programs seldom do."""
    return bool(
        re.search("[a-z]", value)
        and re.search("[A-Z]", value)
        and len(re.findall("[0-9]", value)) > 2
    )


def _bits(value: str) -> float:
    """Shannon's entropy of the characters, in bits for each."""
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
