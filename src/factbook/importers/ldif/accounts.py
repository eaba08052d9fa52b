"""Accounts of a directory: whether they are of programs, and whether somebody can sign in."""

from typing import Final, NamedTuple

from factbook.clock import DAY
from factbook.importers.ldif.records import LdifRecord

# Bits of `userAccountControl` in Active Directory.
_DISABLED: Final = 0x2
_TRUSTS: Final = 0x800 | 0x1000 | 0x2000
# Its times are tenths of a microsecond since 1601; the largest is never.
_TICKS: Final = 10_000
_SINCE_1601: Final = 134_774 * DAY
_NEVER: Final = frozenset({0, 0x7FFFFFFFFFFFFFFF})
# What OpenLDAP writes for an account that was locked for good.
_FOR_GOOD: Final = "000001010000Z"
_SWITCHES: Final = ("nsaccountlock", "logindisabled", "msds-useraccountdisabled")
_OFF: Final = frozenset({"inactive", "deleted"})

WANTED: Final = frozenset(
    {
        "accountexpires",
        "inetuserstatus",
        "iscriticalsystemobject",
        "pwdaccountlockedtime",
        "shadowexpire",
        "useraccountcontrol",
        *_SWITCHES,
    }
)


class LdifAccount(NamedTuple):
    """The account that a record describes, as it is `now`."""

    record: LdifRecord
    now: int

    @property
    def is_service(self) -> bool:
        """True for the accounts that Active Directory brings, and those of trusted domains."""
        is_builtin = self.record.text("iscriticalsystemobject").lower() == "true"
        return is_builtin or bool(self._number("useraccountcontrol") & _TRUSTS)

    @property
    def is_disabled(self) -> bool:
        """True for an account that is switched off, locked for good, or has expired."""
        switches = (self.record.text(name).lower() == "true" for name in _SWITCHES)
        return (
            bool(self._number("useraccountcontrol") & _DISABLED)
            or any(switches)
            or self.record.text("pwdaccountlockedtime") == _FOR_GOOD
            or self.record.text("inetuserstatus").lower() in _OFF
            or self._has_expired
        )

    @property
    def _has_expired(self) -> bool:
        ticks, days = self._number("accountexpires"), self._number("shadowexpire")
        if ticks not in _NEVER and ticks // _TICKS - _SINCE_1601 <= self.now:
            return True
        return days > 0 and days * DAY <= self.now

    def _number(self, name: str) -> int:
        """The number in an attribute; 0 for none."""
        text = self.record.text(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
