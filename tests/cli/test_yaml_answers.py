"""What a push reads in YAML is what Backstage reads in it."""

import pytest

from tests.cli.yaml_answers import Documents, exact, ours, recorded


@pytest.mark.parametrize(("text", "documents"), recorded())
def test_a_file_is_read_as_backstage_reads_it(text: str, documents: Documents) -> None:
    assert exact(ours(text)) == exact(documents)
