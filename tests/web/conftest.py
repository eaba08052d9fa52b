"""Setting of the tests of pages: passwords that are hashed in no time."""

from collections.abc import Iterator

import argon2
import pytest

from factbook.auth import passwords

_LIGHT = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture(scope="module", autouse=True)
def light_passwords() -> Iterator[None]:
    """Hash with parameters that take little: a tenth of a second each was a minute of these tests.

    The parameters of the service are shown in tests/auth/test_passwords.py.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", _LIGHT)
        patch.setattr(passwords, "_NOBODY", f"$argon2id$v=19$m=8,t=1,p=1${'A' * 22}${'A' * 43}")
        yield
