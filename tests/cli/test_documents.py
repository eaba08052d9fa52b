"""Reading entities from YAML and JSON."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from factbook.cli.documents import EntityDocument, read_entity_file
from factbook.errors import InputError

REPORTS = Path(__file__).parents[1] / "data" / "reports"


def entities(documents: list[EntityDocument] | None) -> list[Any]:
    assert documents is not None
    return [msgspec.json.decode(document.entity) for document in documents]


def yaml(tmp_path: Path, text: str | bytes, name: str = "catalog.yaml") -> str:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_every_document_of_a_yaml_file_is_read_with_its_place(tmp_path: Path) -> None:
    file = yaml(tmp_path, "---\nkind: A\n---\nkind: B\n...\n---\nkind: C\n")
    documents = read_entity_file(file)
    assert entities(documents) == [{"kind": "A"}, {"kind": "B"}, {"kind": "C"}]
    assert documents is not None
    assert [document.origin for document in documents] == [
        f"{file} document 1 (line 2)",
        f"{file} document 2 (line 4)",
        f"{file} document 3 (line 7)",
    ]


def test_empty_documents_are_skipped_and_counted(tmp_path: Path) -> None:
    documents = read_entity_file(yaml(tmp_path, "---\n---\n# nothing here\n---\nkind: A\n---\n"))
    assert documents is not None
    assert [document.origin.rpartition("yaml ")[2] for document in documents] == [
        "document 3 (line 5)"
    ]


def test_a_file_without_documents_holds_nothing(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text in ["", "\n\n", "# a comment\n", "---\n---\n", "\ufeff"]:
        with subtests.test(text=text):
            assert read_entity_file(yaml(tmp_path, text)) is None


def test_yaml_values_become_json(tmp_path: Path, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, object]] = [
        ("2026-02-03", "2026-02-03"),
        ("2026-02-03T04:05:06Z", "2026-02-03T04:05:06Z"),
        ("2026-02-03 04:05:06.5 +2", "2026-02-03 04:05:06.5 +2"),
        ("2026-02-30", "2026-02-30"),
        ("'2026-02-03'", "2026-02-03"),
        ("2026-02-03T04:05", "2026-02-03T04:05"),
        ("yes", "yes"),
        ("0755", 755),
        ("12:30:45", "12:30:45"),
        ("'yes'", "yes"),
        ("1.10", 1.1),
        ("'1.10'", "1.10"),
        ("null", None),
        ("12345678901234567890123", 12345678901234567890123),
        ("!!binary aGk=", "aGk="),
        ("!!timestamp 2026-02-03", "2026-02-03"),
        ("!!set {b}", {"b": None}),
        ("!!omap [b: 1]", [{"b": 1}]),
        ("<<", "<<"),
        ("é😀", "é😀"),
    ]
    for text, value in cases:
        with subtests.test(text=text, value=value):
            assert entities(read_entity_file(yaml(tmp_path, f"value: {text}\n"))) == [
                {"value": value}
            ]


def test_yaml_keys_become_text(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for key, name in [("1", "1"), ("1.5", "1.5"), ("true", "true"), ("null", "null")]:
        with subtests.test(key=key, name=name):
            assert entities(read_entity_file(yaml(tmp_path, f"{key}: x\n"))) == [{name: "x"}]


def test_a_date_as_a_key_becomes_text(tmp_path: Path) -> None:
    assert entities(read_entity_file(yaml(tmp_path, "2026-02-03: x\n"))) == [{"2026-02-03": "x"}]


def test_anchors_and_merges_are_resolved(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: *b, y: 4}\nd: *a\n"
    assert entities(read_entity_file(yaml(tmp_path, text))) == [
        {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}, "c": {"x": 3, "y": 4}, "d": {"x": 1, "y": 2}}
    ]


def test_yaml_that_is_no_entity_is_an_error_with_its_place(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str | bytes, str]] = [
        ("kind: A\n---\n- one\n- two\n", "document 2 (line 3), item 1 is not an entity"),
        ("just text\n", "document 1 (line 1) is not an entity"),
        ("kind: A\nkind: B\n", 'the key "kind" is there twice, in line 2'),
        ("1: a\n'1': b\n", 'the key "1" is there twice'),
        ("a: [1\n", "line 2"),
        ("a: b\n c: d\n", "line 2"),
        ("a: *unknown\n", "line 1"),
        ("a: !!python/object:os.system {}\n", "line 1"),
        ("a: !!bool yes\n", "line 1"),
        ("a: !!null x\n", "line 1"),
        ("0x10: a\n16: b\n", 'the key "16" is there twice, in line 2'),
        ("a: b\n...\n%YAML 1.1\n---\nc: on\n", "line 3"),
        ("%YAML 1.1\n---\na: on\n", "%YAML 1.1 would give other values"),
        ("a: \u2028\ufdd1\n", "is not valid YAML"),
        ("a: !!int ''\n", "line 1"),
        ("a: .nan\n", "JSON has no number .nan, in line 1"),
        ("a: -.inf\n", "JSON has no number -.inf"),
        ("{? [a, b] : c}\n", "unhashable"),
        ("a: &a {b: *a}\n", "contains itself"),
        (b"a: \xff\n", "is not valid YAML"),
        ("a: \x07\n", "is not valid YAML"),
        (b"\x00\x01\x02", "is not valid YAML"),
        (b"- " * 100_000, "is nested too deeply"),
        (b"[" * 200_000, "is nested too deeply"),
        (b"{a: " * 100_000, "is nested too deeply"),
    ]
    for text, message in cases:
        with subtests.test(text=text):
            file = yaml(tmp_path, text)
            with pytest.raises(InputError) as caught:
                read_entity_file(file)
            assert str(caught.value).startswith(file)
            assert message in str(caught.value)
            assert "\n" not in str(caught.value)


def test_json_holds_one_entity_or_many(tmp_path: Path, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, list[str]]] = [
        ('{"kind": "A"}', ["A"]),
        ('[{"kind": "A"}, {"kind": "B"}]', ["A", "B"]),
        ('{"items": [{"kind": "A"}]}', ["A"]),
        ('{"items": []}', []),
        ("[]", []),
        ('\ufeff{"kind": "A"}', ["A"]),
    ]
    for text, kinds in cases:
        for name in ["catalog.json", "catalog"]:
            with subtests.test(text=text, name=name):
                documents = entities(read_entity_file(yaml(tmp_path, text, name)))
                assert [entity["kind"] for entity in documents] == kinds


def test_yaml_may_hold_lists_and_items_too(tmp_path: Path) -> None:
    file = yaml(
        tmp_path, "items:\n- kind: A\n- kind: B\n---\n- kind: C\n---\nkind: List\nitems: []"
    )
    documents = read_entity_file(file)
    assert documents is not None
    assert [entity["kind"] for entity in entities(documents)] == ["A", "B", "C", "List"]
    assert [each.origin.removeprefix(f"{file} ") for each in documents] == [
        *("document 1 (line 1), item 1", "document 1 (line 1), item 2"),
        *("document 2 (line 5), item 1", "document 3 (line 7)"),
    ]
    assert entities(read_entity_file(yaml(tmp_path, "items: []\n"))) == []


def test_each_line_of_json_lines_is_a_value(tmp_path: Path, subtests: pytest.Subtests) -> None:
    text = '\ufeff{"kind": "A"}\r\n\n\ufeff{"items": [{"kind": "B"}, {"kind": "C"}]}\n'
    for name in ["catalog.jsonl", "catalog.ndjson", "catalog.json", "catalog"]:
        with subtests.test(name=name):
            file = yaml(tmp_path, text, name)
            documents = read_entity_file(file)
            assert documents is not None
            assert [entity["kind"] for entity in entities(documents)] == ["A", "B", "C"]
            assert [each.origin.removeprefix(f"{file} ") for each in documents] == [
                *("line 1", "line 3, item 1", "line 3, item 2"),
            ]
            with pytest.raises(InputError, match="line 2 is not valid JSON"):
                read_entity_file(yaml(tmp_path, '{"kind": "A"}\n{"kind": "B"', name))
    assert read_entity_file(yaml(tmp_path, "\n", "catalog.jsonl")) is None
    assert entities(read_entity_file(yaml(tmp_path, '{"kind": "A"}', "catalog.jsonl"))) == [
        {"kind": "A"}
    ]


def test_every_document_may_begin_with_a_byte_order_mark(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    reported = (REPORTS / "03-bom-before-second-document" / "two.yaml").read_bytes()
    assert [
        entity["metadata"]["name"]
        for entity in entities(read_entity_file(yaml(tmp_path, reported)))
    ] == [*("one-03", "two-03")]
    for text in [
        "kind: A\n\ufeff---\nkind: B\n",
        "\ufeff\ufeffkind: A\r\n--- # the other\r\n\r\n# of Windows\r\n\ufeffkind: B\r\n",
        "kind: A\n...\n\ufeff---\nkind: B",
    ]:
        with subtests.test(text=text):
            assert entities(read_entity_file(yaml(tmp_path, text))) == [
                {"kind": "A"},
                {"kind": "B"},
            ]
    inside = 'a: "\ufeff"\nb: |\n  \ufeff---\n'
    assert entities(read_entity_file(yaml(tmp_path, inside))) == [
        {"a": "\ufeff", "b": "\ufeff---\n"}
    ]


def test_an_entity_may_have_items_of_its_own(tmp_path: Path) -> None:
    entity = {"kind": "A", "items": [1]}
    assert entities(read_entity_file(yaml(tmp_path, msgspec.json.encode(entity), "a.json"))) == [
        entity
    ]


def test_yaml_that_begins_like_json_is_still_yaml(tmp_path: Path) -> None:
    assert entities(read_entity_file(yaml(tmp_path, "{kind: A}\n---\n{kind: B}\n"))) == [
        {"kind": "A"},
        {"kind": "B"},
    ]


def test_json_that_is_no_entity_is_an_error_with_its_place(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str | bytes, str]] = [
        ("", "is not valid JSON"),
        ('{"kind": }', "is not valid JSON"),
        ('{"kind": NaN}', "is not valid JSON"),
        (b'{"kind": "\xff"}', "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ('[{"kind": "A"}, 5]', "document 2 is not an entity"),
        ('"text"', "document 1 is not an entity"),
        ("null", "document 1 is not an entity: a mapping is expected, not null"),
    ]
    for text, message in cases:
        with subtests.test(text=text, message=message):
            with pytest.raises(InputError) as caught:
                read_entity_file(yaml(tmp_path, text, "catalog.json"))
            assert message in str(caught.value)


def test_yaml_nested_too_deeply_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"catalog\.yaml"):
        read_entity_file(yaml(tmp_path, "a: " + "[" * 20_000 + "]" * 20_000))


def test_yaml_that_aliases_expand_is_an_error(tmp_path: Path) -> None:
    text = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(InputError, match="has more than 1,000,000 parts"):
        read_entity_file(yaml(tmp_path, text))


def test_a_directory_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"is a directory\. Name its files, for example .*\*\.yaml"
    ):
        read_entity_file(str(tmp_path))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.yaml cannot be read: No such file"):
        read_entity_file(str(tmp_path / "no.yaml"))
