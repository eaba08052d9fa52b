"""The page of settings and the settings themselves agree, both ways."""

import re
from dataclasses import dataclass
from typing import get_type_hints

import msgspec

from factbook.settings import Settings
from tests.docs.parts import DOCS
from tests.docs.settings import default_words

PAGE = (DOCS / "reference" / "settings.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| `(\w+)` \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)


@dataclass
class Row:
    """A row of the page's table."""

    variable: str
    default: str
    meaning: str


ROWS = {
    name: Row(variable, default, text) for name, variable, _, default, text in ROW.findall(PAGE)
}
HINTS = get_type_hints(Settings, include_extras=True)
FIELDS = {field.name: field for field in msgspec.structs.fields(Settings)}


def test_every_setting_is_on_the_page() -> None:
    assert not FIELDS.keys() - ROWS.keys()


def test_every_setting_on_the_page_exists() -> None:
    assert not ROWS.keys() - FIELDS.keys()


def test_the_page_names_the_variable_the_default_and_the_meaning() -> None:
    for name, field in FIELDS.items():
        row = ROWS[name]
        assert row.variable == f"FACTBOOK_{name.upper()}"
        assert row.default == default_words(field)
        assert row.meaning.replace("\\|", "|") == HINTS[name].__metadata__[0].description
