"""Whether every package that is installed with the service has a licence that we take."""

import importlib.metadata
import re
from collections.abc import Callable
from typing import Final

# What may be shipped with, or beside, a program under Apache-2.0 without a further duty than to
# keep the notices; LGPL and MPL are those of packages that are used as they are.
ALLOWED: Final = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CNRI-Python",
        "ISC",
        "LGPL-3.0-only",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "PSF-2.0",
    }
)
# Licences as packages wrote them before there was a field for it.
_NAMES: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==[^ ;\\]+ *(?:;([^\\\n]*))?", re.MULTILINE)
_CLASSIFIER: Final = "License :: OSI Approved :: "

LicenceOf = Callable[[str], str | None]


def pins(lock: str) -> dict[str, bool]:
    """The packages of a lock file, and whether each is for some systems alone."""
    return {name: bool(condition) for name, condition in _PIN.findall(lock)}


def licence_of(package: str) -> str | None:
    """What an installed package says of its licence, "" for nothing; None when it is not here."""
    try:
        metadata = importlib.metadata.metadata(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    stated = [
        line.removeprefix(_CLASSIFIER)
        for line in metadata.get_all("Classifier") or []
        if line.startswith(_CLASSIFIER)
    ]
    if not stated:
        stated = metadata["License"].splitlines()[:1] if "License" in metadata else []
    return " OR ".join(_NAMES.get(one, one) for one in stated)


def problems(lock: str, of: LicenceOf = licence_of) -> list[str]:
    """A line for each package of the lock whose licence is unknown or not among those allowed."""
    found = []
    for package, is_conditional in pins(lock).items():
        licence = of(package)
        if licence is None:
            # Those of other systems are looked at where they are installed.
            if not is_conditional:
                found.append(f"{package} is not installed, so its licence is not known")
        elif not is_allowed(licence):
            found.append(f'{package} has the licence "{licence or "unknown"}"')
    return found


def is_allowed(expression: str) -> bool:
    """Whether one way to read the expression (SPDX) holds nothing but allowed licences."""
    ways = [
        way.split(" AND ") for way in expression.replace("(", "").replace(")", "").split(" OR ")
    ]
    return any(ALLOWED.issuperset(each.strip() for each in way) for way in ways)
