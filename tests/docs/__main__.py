"""Writes the parts of the documentation that repeat the code: `python -m tests.docs`."""

from tests.docs.parts import DOCS, rewritten

for page in sorted(DOCS.rglob("*.md")):
    text = page.read_text()
    new = rewritten(text)
    if new != text:
        page.write_text(new)
        print(f"written: {page.relative_to(DOCS.parent)}")  # noqa: T201 - what it is run for
