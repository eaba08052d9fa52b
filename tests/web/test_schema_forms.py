"""Forms of schemas that no tool has yet."""

from factbook.web import connect


def test_other_schemas_get_their_controls_and_values() -> None:
    known = connect.list_fields(
        {
            "properties": {
                "deep": {"type": "boolean", "default": False},
                "share": {"type": "number"},
                "order": {"type": "string", "enum": ["up", "down"]},
                "names": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
                "count": {"type": "integer"},
            },
            "required": ["count"],
        }
    )
    assert [(field.name, field.control) for field in known] == [
        ("count", "integer"),
        ("deep", "boolean"),
        ("share", "number"),
        ("order", "choice"),
        ("names", "list"),
    ]
    assert [field.default for field in known] == ["", "false", "", "", "a\nb"]
    typed = {"count": "-7", "deep": "true", "share": "0.5", "order": "up", "names": " a \n b c\n"}
    expected = {"count": -7, "deep": True, "share": 0.5, "order": "up", "names": ["a", "b c"]}
    assert connect.convert_arguments(known, typed) == (expected, {})
    wrong = {"count": "x", "deep": "yes", "share": "nan"}
    values, problems = connect.convert_arguments(known, wrong)
    assert values == {}
    assert problems.keys() == wrong.keys()
