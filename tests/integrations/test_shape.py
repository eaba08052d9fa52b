"""Every integration is a folder of one shape, and has a page that says what its code says."""

import pytest

from factbook.facts.schema import SHAPES, shape_facts
from tests.docs.parts import parts_in
from tests.docs.vendors import PAGES, VENDORS

MEMBERS = {
    f"{shape.name}.{member.name}": {f"{shape.name}.{path}" for path, _ in member.paths}
    for shape in SHAPES
    for member in shape.members
}


def test_the_folder_has_the_name_of_its_vendor(subtests: pytest.Subtests) -> None:
    assert VENDORS
    for folder, vendor in VENDORS.items():
        with subtests.test(vendor.id):
            assert folder.name == vendor.id


def test_its_page_says_rights_options_the_calls_of_a_first_run_limits_and_facts(
    subtests: pytest.Subtests,
) -> None:
    for vendor in VENDORS.values():
        with subtests.test(vendor.id):
            text = (PAGES / f"{vendor.id}.md").read_text()
            headings = [
                line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")
            ]
            assert {"Settings", "Rights", "A first run", "Limits", "Facts"} <= set(headings)
            assert {f"options:{vendor.id}", f"facts:{vendor.id}"} <= parts_in(text).keys()
            assert f"({vendor.id}.md)" in (PAGES / "index.md").read_text()


def test_the_facts_are_those_of_the_shapes_that_are_filled(subtests: pytest.Subtests) -> None:
    for vendor in VENDORS.values():
        with subtests.test(vendor.id):
            shapes = {
                shape.name: {f"{shape.name}.{fact.name}" for fact in shape_facts(shape)}
                for shape in SHAPES
            }
            filled = [shapes.get(place) or MEMBERS[place] for place in vendor.fills]
            names = [fact.name for fact in vendor.facts]
            assert len(names) == len(set(names))
            assert set(names) == set().union(*filled)
            assert all(fact.description for fact in vendor.facts)
