"""Writes the parts of the documentation that repeat the code: `python -m tests.docs`."""

from tests.docs.parts import DOCS, PARTS, rewritten
from tests.docs.vendors import READMES, parts_of

PAGES = dict.fromkeys(sorted(DOCS.rglob("*.md")), PARTS)

for page, parts in (PAGES | {page: parts_of(vendor) for page, vendor in READMES.items()}).items():
    text = page.read_text()
    new = rewritten(text, parts)
    if new != text:
        page.write_text(new)
        print(f"written: {page.relative_to(DOCS.parent)}")  # noqa: T201 - what it is run for
