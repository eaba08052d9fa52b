"""Every integration is a folder of one shape, and has a page that says what its code says."""

from pathlib import Path

import pytest

from factbook.facts.shapes import SHAPES, facts
from factbook.integrations.integration import Vendor
from tests.docs.parts import parts_in
from tests.docs.vendors import READMES, parts_of

each = pytest.mark.parametrize(
    ("readme", "vendor"), READMES.items(), ids=[vendor.id for vendor in READMES.values()]
)
MEMBERS = {
    f"{shape.name}.{member.name}": {f"{shape.name}.{path}" for path, _ in member.paths}
    for shape in SHAPES
    for member in shape.members
}


@each
def test_the_folder_has_its_fixed_files(readme: Path, vendor: Vendor) -> None:
    assert readme.parent.name == vendor.id
    for name in ("__init__.py", "client.py", "facts.py"):
        assert (readme.parent / name).is_file(), name


@each
def test_the_readme_is_as_the_code_makes_it(readme: Path, vendor: Vendor) -> None:
    made = {name: part().strip() for name, part in parts_of(vendor).items()}
    written = "`python -m tests.docs` writes the parts anew"
    assert parts_in(readme.read_text()) == made, written


@each
def test_the_facts_are_those_of_the_shapes_that_are_filled(readme: Path, vendor: Vendor) -> None:
    shapes = {
        shape.name: {f"{shape.name}.{fact.name}" for fact in facts(shape)} for shape in SHAPES
    }
    filled = [shapes.get(place) or MEMBERS[place] for place in vendor.fills]
    names = [fact.name for fact in vendor.facts]
    assert len(names) == len(set(names))
    assert set(names) == set().union(*filled)
    assert all(fact.description for fact in vendor.facts)
