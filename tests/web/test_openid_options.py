"""The provider of the settings, and what its claims make of a person."""

from pathlib import Path
from typing import Any

import pytest

from factbook.auth.oidc.identity import (
    Identity,
    ProviderOptions,
    choose_role,
    make_identity,
    make_openid_options,
)
from factbook.errors import ConfigurationError
from factbook.settings.table import load_settings

TABLE = {"issuer": "https://id.example.com", "client_id": "factbook"}


def options(**more: Any) -> ProviderOptions:
    found = make_openid_options({**TABLE, **more})
    assert found is not None
    return found


def identified(more: dict[str, Any], **given: Any) -> Identity:
    return make_identity({"sub": "subject-7", **more}, options(**given))


def test_options_come_from_the_file_and_from_variables(tmp_path: Path) -> None:
    file = tmp_path / "factbook.toml"
    file.write_text('[openid]\nissuer = "https://id.example.com"\nclient_id = "file"\n')
    variables = {
        "FACTBOOK_OPENID__CLIENT_ID": "variable",
        "FACTBOOK_OPENID__CLIENT_SECRET": "a secret",
        "FACTBOOK_OPENID__ADMINISTRATOR_GROUPS": "platform, on call",
    }
    found = make_openid_options(load_settings({}, variables, file).openid)
    assert found == ProviderOptions(
        issuer="https://id.example.com",
        client_id="variable",
        client_secret="a secret",
        administrator_groups=["platform", "on call"],
    )
    assert "a secret" not in repr(found)


def test_a_variable_with_more_parts_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="FACTBOOK_OPENID__OPTION"):
        load_settings({}, {"FACTBOOK_OPENID__A__B": "x"}, Path("none"))


def test_options_that_cannot_be_are_refused_without_a_value(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"issuer": "https://id.example.com"}, "client_id"),
        ({**TABLE, "client_id": ""}, "client_id has to be set"),
        ({**TABLE, "issuer": "http://id.example.com"}, "issuer has to be like"),
        ({**TABLE, "issuer": "id.example.com"}, "issuer has to be like"),
        ({**TABLE, "issuer": "https://"}, "issuer has to be like"),
        ({**TABLE, "issuer": "https://id.example.com:x"}, "issuer has to be like"),
        ({**TABLE, "issuer": "https://id.example.com/?a=b"}, "issuer has to be like"),
        ({**TABLE, "issuer": "https://id.example.com/#a"}, "issuer has to be like"),
        ({**TABLE, "issuer": "https://u:secret@id.example.com"}, "issuer has to be like"),
        ({**TABLE, "issuer": "http://127.0.0.1.example.com"}, "issuer has to be like"),
        ({**TABLE, "scopes": "profile email"}, "openid among them"),
        ({**TABLE, "role": "owner"}, "role has to be one of"),
        ({**TABLE, "administrator_groups": [1]}, "Expected text"),
        ({**TABLE, "secret": "x"}, "unknown field"),
    ]
    for table, message in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError, match=message) as raised:
                make_openid_options(table)
            assert raised.value.message.startswith("openid: ")
            assert "u:secret" not in raised.value.message


def test_only_a_provider_on_this_machine_may_do_without_encryption(
    subtests: pytest.Subtests,
) -> None:
    for issuer in ["http://127.0.0.1:8080", "http://[::1]/x", "http://localhost"]:
        with subtests.test(issuer=issuer):
            assert options(issuer=issuer).issuer == issuer


def test_the_name_is_the_first_that_can_be_one(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"preferred_username": "Jane.Doe"}, "Jane.Doe"),
        ({"preferred_username": "jane@example.com", "email": "other@example.com"}, "jane"),
        ({"email": "jane@example.com"}, "jane"),
        ({"preferred_username": "Jane Doe", "email": "jane@example.com"}, "jane"),
        ({"preferred_username": 7, "email": ["jane@example.com"]}, "subject-7"),
        ({"preferred_username": "", "email": "@example.com"}, "subject-7"),
        ({"email": "jane@example.com", "email_verified": False}, "subject-7"),
        ({"email": "jane@example.com", "email_verified": "false"}, "subject-7"),
        ({"email": "jane@example.com", "email_verified": []}, "jane"),
        ({"sub": "auth|7"}, "auth|7"),
    ]
    for claims, name in cases:
        with subtests.test(claims=claims, name=name):
            assert identified(claims).name == name


def test_the_claim_of_the_name_is_an_option() -> None:
    assert identified({"nickname": "jj", "preferred_username": "jane"}, name_claim="nickname") == (
        Identity("https://id.example.com", "subject-7", "jj", "jj", None, (), "jj")
    )


def test_what_is_shown_of_a_person_is_one_short_line() -> None:
    found = identified({"name": "  Jane\x00\u202e\nDoe " + "x" * 300, "email": "j@e.x\r\n"})
    assert found.display_name == "JaneDoe " + "x" * 192
    assert found.email == "j@e.x"


def test_groups_are_names_and_nothing_else(subtests: pytest.Subtests) -> None:
    cases: list[tuple[object, tuple[str, ...]]] = [
        (["a", "b"], ("a", "b")),
        ("a", ("a",)),
        (["a", 1, None, {}], ("a",)),
        (None, ()),
        ({"a": 1}, ()),
        (7, ()),
    ]
    for claim, groups in cases:
        with subtests.test(claim=claim):
            assert identified({"groups": claim}).groups == groups


def test_members_of_an_administrators_group_are_administrators_and_others_what_is_set() -> None:
    given = options(groups_claim="https://example.com/teams", administrator_groups=["platform"])
    closed = options(role="none", administrator_groups=["platform"])
    one = identified(
        {"https://example.com/teams": ["platform", "x"]}, groups_claim=given.groups_claim
    )
    other = identified({"groups": ["Platform", "platform "]})
    assert [choose_role(one, given), choose_role(other, given)] == ["administrator", "viewer"]
    assert [choose_role(one, closed), choose_role(other, closed)] == ["administrator", None]
