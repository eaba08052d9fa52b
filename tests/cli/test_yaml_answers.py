"""What a push reads in YAML is what Backstage reads in it."""

from tests.cli.yaml_answers import exact, ours, recorded


def test_a_file_is_read_as_backstage_reads_it() -> None:
    expected = {text: exact(documents) for text, documents in recorded()}
    assert expected
    assert {text: exact(ours(text)) for text in expected} == expected
