"""Files of `factbook sources new`: a definition with comments, or the package of an integration."""

import re
from pathlib import Path
from typing import Final

from factbook.catalog import ref
from factbook.cli.sources.types import Type
from factbook.datasources.custom import starters
from factbook.datasources.custom.definition import OWNED_TYPES, TYPES
from factbook.errors import InputError
from factbook.integrations import VENDORS

_TEMPLATES: Final = Path(__file__).with_name("scaffold")
_NAME: Final = re.compile(r"[a-z][a-z0-9]{1,39}", re.ASCII)
# By the path in the package: the template.
_FILES: Final = {
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml",
    "src/factbook_NAME/__init__.py": "integration.py",
    "tests/test_NAME.py": "test_integration.py",
}

_HEAD: Final = """\
# A data source of Factbook.
<test>#   factbook sources plan <file>                 shows what differs from the server
#   factbook sources apply <file>                publishes it
"""
_TEST: Final = "#   factbook sources test <file> --entity REF    tries it on one entity\n"


def skeleton(name: str, type_: Type, owner: str | None = None) -> str:
    """Template of a definition with this id and owner; raises InputError if one is invalid."""
    text = starters.skeleton(name, type_, None if owner is None else _group(owner, type_))
    head = _HEAD.replace("<test>", "" if type_ == "push" else _TEST)
    return head.replace("<file>", f"{name}.yaml") + text


def scaffold(name: str) -> dict[str, str]:
    """The files of a package for a vendor of this id, by path.

    Raises InputError for an id that is not one of an own vendor.
    """
    if not _NAME.fullmatch(name):
        raise InputError("The id of an integration is of lower-case letters and digits.")
    if name in VENDORS:
        raise InputError(f"{name} is an integration that Factbook has.")
    return {
        path.replace("NAME", name): _filled(_TEMPLATES / f"{template}.txt", name)
        for path, template in _FILES.items()
    }


def _group(owner: str, type_: Type) -> str:
    """The reference of a group that may own a source of this type."""
    if type_ not in OWNED_TYPES:
        *some, last = (each for each in TYPES if each in OWNED_TYPES)
        raise InputError(
            f"--owner is not for a source of type {type_}: only {', '.join(some)} and {last} "
            "have one."
        )
    try:
        found = ref.parse(ref.target(owner, kind="group"))
    except InputError as error:
        raise InputError(f"--owner: {error.message}") from error
    if found.kind != "group":
        raise InputError(f"--owner has to be a group, such as team-shop: {found} is none.")
    return str(found)


def _filled(template: Path, name: str) -> str:
    text = template.read_text("utf-8").replace("VARIABLE", name.upper())
    return text.replace("NAME", name).replace("TITLE", name.capitalize())
