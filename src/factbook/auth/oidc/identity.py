"""Identity of a person at a provider, and its mapping to a person here."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from factbook import invisible
from factbook.auth import roles, users
from factbook.auth.oidc.options import NO_ROLE, ProviderOptions
from factbook.errors import InputError

_LONGEST: Final = 200


class Identity(NamedTuple):
    """Claims of the provider about a person.

    Only `issuer` and `subject` together identify somebody for good: a name and an email address may
    be another person's tomorrow. `name` is a proposal for the name of a new person, which
    `users.reference` may still refuse. `email` is None when there is none, or when the provider
    says that it was not verified. `login` is what the provider calls the account, in full.
    """

    issuer: str
    subject: str
    name: str
    display_name: str
    email: str | None
    groups: tuple[str, ...]
    login: str | None = None


def identity_of(claims: Mapping[str, Any], options: ProviderOptions) -> Identity:
    """Identity from checked claims (OpenID Connect Core 1.0, section 5.1)."""
    subject: str = claims["sub"]
    # Some providers write it as a text.
    unverified = claims.get("email_verified") in (False, "false")
    email = None if unverified else _text(claims.get("email"))
    login = _text(claims.get(options.name_claim))
    name = _name(login, email, subject)
    return Identity(
        options.issuer,
        subject,
        name,
        _text(claims.get("name")) or name,
        email,
        _groups(claims.get(options.groups_claim)),
        login,
    )


def proven_name(identity: Identity, options: ProviderOptions) -> str | None:
    """The name before the `@` that proves who somebody is in the catalog, if the options say so."""
    name, at, domain = (identity.login or "").casefold().partition("@")
    proven = {pattern.casefold() for pattern in options.proven_names}
    return name if name and f"*{at}{domain}" in proven else None


def role_of(identity: Identity, options: ProviderOptions) -> str | None:
    """Role of a new person; None when only existing people may sign in.

    Members of an administrators' group are administrators in any case.
    """
    if set(identity.groups) & set(options.administrator_groups):
        return roles.ADMINISTRATOR
    return None if options.role == NO_ROLE else options.role


def _name(*proposals: str | None) -> str:
    """First candidate that is a valid name here, else the last one."""
    names = [(proposal or "").partition("@")[0] for proposal in proposals]
    return next(filter(_is_name, names), proposals[-1] or "")


def _is_name(text: str) -> bool:
    try:
        users.reference(text)
    except InputError:
        return False
    return True


def _text(value: object) -> str | None:
    """A text as one printable line."""
    if not isinstance(value, str):
        return None
    visible = invisible.without(value)
    shown = "".join(character for character in visible if character.isprintable())
    return shown.strip()[:_LONGEST].strip() or None


def _groups(value: object) -> tuple[str, ...]:
    """List of names; some providers send a single one as a string."""
    given = [value] if isinstance(value, str) else value
    return tuple(one for one in given if isinstance(one, str)) if isinstance(given, list) else ()
