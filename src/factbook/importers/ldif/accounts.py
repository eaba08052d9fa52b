"""Accounts of a directory: whether they are of programs, and whether somebody can sign in."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from factbook.clock import DAY, SECOND
from factbook.importers.ldif.records import LdifRecord

_CONTROL: Final = "useraccountcontrol"
_BUILTIN: Final = "iscriticalsystemobject"
# Bits of `userAccountControl` in Active Directory.
_DISABLED: Final = 0x2
_TRUSTS: Final = 0x800 | 0x1000 | 0x2000
# Its times are tenths of a microsecond since 1601; the largest is never.
_TICKS: Final = 10_000
_SINCE_1601: Final = 134_774 * DAY
_NEVER: Final = frozenset({0, 0x7FFFFFFFFFFFFFFF})
# What an account was locked at that is locked for good; after other times it opens again.
_FOR_GOOD: Final = "00000101"
_LONGEST_TIME: Final = len("20261122120000Z")

# Whether a value, in lower case, says at a time that nobody can sign in.
_Says = Callable[[str, int], bool]


def _is(*words: str) -> _Says:
    return lambda text, _: text in words


def _begins(start: str) -> _Says:
    return lambda text, _: text.startswith(start)


def _has_bit(text: str, _: int) -> bool:
    return bool(_number(text) & _DISABLED)


def _are_ticks_past(text: str, now: int) -> bool:
    ticks = _number(text)
    return ticks not in _NEVER and ticks // _TICKS - _SINCE_1601 <= now


def _are_days_past(text: str, now: int) -> bool:
    return 0 < _number(text) * DAY <= now


def _is_time_past(text: str, now: int) -> bool:
    """True for a past time such as `20261122120000Z`, in UTC."""
    form = "%Y%m%d%H%M%Sz" if len(text) == _LONGEST_TIME else "%Y%m%d%H%Mz"
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * SECOND <= now
    except ValueError:
        return False


def _is_switched_off_in_samba(text: str, _: int) -> bool:
    return text.startswith("[") and "d" in text


# Attributes of an account that nobody can sign in with, by the directories that have them.
_OFF: Final[Mapping[str, _Says]] = MappingProxyType(
    {
        # Active Directory
        _CONTROL: _has_bit,
        "accountexpires": _are_ticks_past,
        "msds-useraccountdisabled": _is("true"),
        # 389 Directory Server, FreeIPA, Oracle and Sun
        "nsaccountlock": _is("true"),
        "nsroledn": _begins("cn=nsmanageddisabledrole,"),
        "krbprincipalexpiration": _is_time_past,
        "inetuserstatus": _is("inactive", "deleted"),
        "orclisenabled": _is("disabled", "false"),
        "orclactiveenddate": _is_time_past,
        # PingDirectory, OpenDJ and Oracle Unified Directory
        "ds-pwp-account-disabled": _is("true"),
        "ds-pwp-account-expiration-time": _is_time_past,
        # Password policies of OpenLDAP and others
        "pwdaccountlockedtime": _begins(_FOR_GOOD),
        "pwdendtime": _is_time_past,
        # eDirectory, IBM, AIX, Samba and POSIX
        "logindisabled": _is("true"),
        "loginexpirationtime": _is_time_past,
        "ibm-pwdaccountlocked": _is("true"),
        "isaccountenabled": _is("false"),
        "sambaacctflags": _is_switched_off_in_samba,
        "shadowexpire": _are_days_past,
    }
)

WANTED: Final = frozenset({*_OFF, _BUILTIN})


class LdifAccount(NamedTuple):
    """The account that a record describes, as it is `now`."""

    record: LdifRecord
    now: int

    @property
    def is_service(self) -> bool:
        """True for the accounts that Active Directory brings, and those of trusted domains."""
        is_builtin = self.record.text(_BUILTIN).lower() == "true"
        return is_builtin or bool(_number(self.record.text(_CONTROL)) & _TRUSTS)

    @property
    def is_disabled(self) -> bool:
        """True for an account that is switched off, locked for good, or has expired."""
        return any(
            says(text.lower(), self.now)
            for name, says in _OFF.items()
            for text in self.record.texts(name)
        )


def _number(text: str) -> int:
    """The number in an attribute; 0 for none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
