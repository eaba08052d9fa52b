"""Sealing: what is sealed opens with its key, label and place, and says nothing otherwise."""

import pytest

from factbook.auth import encryption
from factbook.auth.encryption import NotOpenedError

KEY = encryption.make_token_key("k" * 32, None)
SECRET = b"Bearer a-secret-of-a-connection"


def test_what_is_sealed_opens_with_the_same_key_label_and_place(subtests: pytest.Subtests) -> None:
    for content in [SECRET, b"", b"\x00\xff" * 5_000]:
        with subtests.test(content=content):
            sealed = encryption.seal_secret(KEY, "connections", "ci", content)
            assert encryption.open_secret(KEY, "connections", "ci", sealed) == content


def test_what_is_sealed_does_not_hold_the_content_and_is_another_each_time() -> None:
    one, two = (encryption.seal_secret(KEY, "connections", "ci", SECRET) for _ in range(2))
    assert one != two
    assert all(SECRET[n : n + 4] not in one for n in range(len(SECRET) - 4))


def test_another_key_label_or_place_opens_nothing(subtests: pytest.Subtests) -> None:
    sealed = encryption.seal_secret(KEY, "connections", "ci", SECRET)
    for key, label, beside in [
        (encryption.make_token_key("K" * 32, None), "connections", "ci"),
        (KEY, "others", "ci"),
        (KEY, "connections", "cd"),
    ]:
        with subtests.test(label=label, beside=beside):
            with pytest.raises(NotOpenedError) as refused:
                encryption.open_secret(key, label, beside, sealed)
            assert str(refused.value) == ""


def test_what_was_changed_anywhere_or_cut_opens_nothing() -> None:
    sealed = encryption.seal_secret(KEY, "connections", "ci", SECRET)
    changed = [
        sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        for place in range(len(sealed))
    ]
    cut = [sealed[:length] for length in range(len(sealed))]
    for each in [*changed, *cut, sealed + b"x"]:
        with pytest.raises(NotOpenedError):
            encryption.open_secret(KEY, "connections", "ci", each)
