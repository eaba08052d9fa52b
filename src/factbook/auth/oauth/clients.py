"""Clients by their ids: those of the settings, those that registered, and those with a document."""

from typing import Final, Literal, NamedTuple

from factbook.auth.oauth import redirects, registrations
from factbook.auth.oauth.client_documents import ClientDocuments, shown_name
from factbook.auth.oauth.options import OAuthOptions
from factbook.auth.oauth.refusal import OAuthError
from factbook.storage import Database

Known = Literal["settings", "registration", "document"]

LONGEST_ID: Final = 500


class OAuthClient(NamedTuple):
    """A client: its name for people, where it may be answered, and how it is known."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    known: Known

    def may_be_answered_at(self, uri: str) -> bool:
        """True if this is one of its addresses."""
        return any(redirects.matches(registered, uri) for registered in self.redirect_uris)

    def is_trusted(self, options: OAuthOptions) -> bool:
        """True if the settings name it, or the host of its document."""
        return self.known == "settings" or (self.known == "document" and bool(options.client_hosts))


async def find(
    id_: str, options: OAuthOptions, database: Database, documents: ClientDocuments
) -> OAuthClient:
    """The client with this id. Raises OAuthError with a sentence for the person."""
    if not id_ or len(id_) > LONGEST_ID:
        raise OAuthError("The client does not say which one it is.", code="invalid_client")
    if (uris := options.clients.get(id_)) is not None:
        return OAuthClient(id_, id_, tuple(uris), "settings")
    if id_.startswith("https://"):
        document = await documents.get(id_)
        name = shown_name(document.client_name) or redirects.host(id_)
        return OAuthClient(id_, name, document.redirect_uris, "document")
    found = await registrations.find(database, id_) if options.registration else None
    if found is None:
        raise OAuthError(
            "The client is not known here. Remove this server from it, and add the server again.",
            code="invalid_client",
        )
    return OAuthClient(id_, found.name, found.redirect_uris, "registration")
