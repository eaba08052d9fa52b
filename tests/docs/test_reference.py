"""The reference pages say what the code says: each part that repeats it is as the code makes it."""

import re

import pytest

from factbook.tools import TOOLS, toolsets
from tests.docs.parts import DOCS, PARTS, every_command, every_error, is_option, parts_in, rewritten

PAGES = {path.relative_to(DOCS).as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
HELD = [(page, name) for page, text in PAGES.items() for name in parts_in(text)]


@pytest.mark.slow
def test_a_part_is_as_the_code_makes_it(subtests: pytest.Subtests) -> None:
    assert HELD
    for page, name in HELD:
        with subtests.test(page=page, name=name):
            made = PARTS[name]().strip()
            assert parts_in(PAGES[page])[name] == made, (
                "`python -m tests.docs` writes the parts again"
            )


def test_every_part_is_on_one_page() -> None:
    assert sorted(name for _, name in HELD) == sorted(PARTS)


def test_the_page_of_tools_has_every_tool_and_no_other() -> None:
    text = PAGES["reference/tools.md"]
    headings = re.findall(r"^## ((?:get|find)-\S+)$", text, re.MULTILINE)
    assert headings == [tool.name for tool in TOOLS]
    for tool in TOOLS:
        part = parts_in(text)[f"arguments:{tool.name}"]
        named = [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")]
        assert named == list(tool.input_schema["properties"])


def test_the_page_of_tools_about_checks_has_each_of_them_and_its_permissions() -> None:
    sections = PAGES["reference/check-tools.md"].split("\n## ")[1:]
    found = {section.partition("\n")[0]: section for section in sections}
    for tool in (*toolsets.READING_CHECK_TOOLS, *toolsets.WRITING_CHECK_TOOLS):
        section = found.pop(tool.name)
        assert all(f"`{permission}`" in section for permission in tool.permissions), tool.name
    assert list(found) == ["All tools at one address"]


def test_the_page_of_commands_has_every_command_and_option_and_no_other() -> None:
    sections = PAGES["reference/commands.md"].split("\n## ")[1:]
    found = {section.partition("\n")[0]: section for section in sections}
    listed = dict(every_command())
    assert found.keys() == listed.keys()
    for name, command in listed.items():
        rows = [line.split("`")[1] for line in found[name].splitlines() if line.startswith("| `")]
        assert rows == [option.opts[0] for option in command.params if is_option(option)]


def test_the_page_of_errors_has_every_error_and_no_other() -> None:
    part = parts_in(PAGES["reference/errors.md"])["errors"]
    named = [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")]
    assert named == [error.__name__ for error in every_error()]


def test_a_part_that_is_out_of_date_is_written_anew() -> None:
    page = "# Page\n\n<!-- part: reasons -->\nold\n<!-- end -->\n\nThe rest.\n"
    new = rewritten(page)
    assert parts_in(new) == {"reasons": PARTS["reasons"]().strip()}
    assert new.startswith("# Page\n\n<!--")
    assert new.endswith("<!-- end -->\n\nThe rest.\n")
