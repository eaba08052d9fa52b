"""Options of an import from AWS Organizations."""

import re
from collections.abc import Iterable
from typing import Annotated, Final, Literal

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.validation import valid_namespace
from factbook.importers.importer import NO_NAMESPACE, ImporterOptions
from factbook.settings.option_tables import about, is_web_address

_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}", re.ASCII)
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+){1,3}-\d{1,2}", re.ASCII)

# Where each partition has AWS Organizations, and the end of its hosts.
_PLACES: Final = {
    "aws": ("us-east-1", "amazonaws.com"),
    "aws-cn": ("cn-northwest-1", "amazonaws.com.cn"),
    "aws-us-gov": ("us-gov-west-1", "amazonaws.com"),
}


class AwsImportOptions(ImporterOptions, frozen=True, kw_only=True):
    """An organization, the credential to read it with, and what is imported of it."""

    access_key_id: Annotated[
        str, about("Secret. An access key; without one, what the environment has is taken.")
    ] = ""
    secret_access_key: Annotated[str, about("Secret. The other half of the access key.")] = ""
    session_token: Annotated[str, about("Secret. The token of temporary keys.")] = ""
    role: Annotated[
        str,
        about(
            "Role to assume, e.g. `arn:aws:iam::111122223333:role/factbook`: of the management "
            "account, or of one that administers AWS Organizations for it."
        ),
    ] = ""
    external_id: Annotated[str, about("External id that the role asks for.")] = ""
    partition: Annotated[
        Literal["aws", "aws-cn", "aws-us-gov"], about("Partition of AWS that has the organization.")
    ] = "aws"
    region: Annotated[
        str, about("Region whose STS is asked for a role; by default that of AWS Organizations.")
    ] = ""
    closed: Annotated[bool, about("Import accounts that are suspended or closed, too.")] = False
    owner_tags: Annotated[
        tuple[str, ...],
        about("Tags of an account that name its owner, the first one first. Empty: not read."),
    ] = ("owner", "team")
    units: Annotated[
        bool, about("Import organizational units as systems that the accounts are part of.")
    ] = False
    namespace: Annotated[str, about("Namespace of the resources and systems.")] = DEFAULT_NAMESPACE
    url: Annotated[str, about("Another address of AWS Organizations.")] = ""
    sts_url: Annotated[str, about("Another address of STS.")] = ""

    def problems(self) -> Iterable[str]:
        """The mistakes in the table."""
        yield from super().problems()
        if bool(self.access_key_id) != bool(self.secret_access_key):
            yield "access_key_id and secret_access_key belong together"
        if self.role and not _ROLE.fullmatch(self.role):
            yield "role has to be like arn:aws:iam::111122223333:role/factbook"
        if self.region and not _REGION.fullmatch(self.region):
            yield "region has to be like us-east-1"
        if not valid_namespace(self.namespace):
            yield NO_NAMESPACE
        if not all(is_web_address(url) for url in (self.url, self.sts_url) if url):
            yield "url and sts_url have to be like https://host"

    @property
    def home(self) -> str:
        """The region that signatures for AWS Organizations name."""
        return _PLACES[self.partition][0]

    @property
    def base_url(self) -> str:
        """The address of AWS Organizations."""
        region, domain = _PLACES[self.partition]
        return self.url or f"https://organizations.{region}.{domain}"

    @property
    def sts_region(self) -> str:
        """The region of STS."""
        return self.region or self.home

    @property
    def sts_base_url(self) -> str:
        """The address of STS."""
        return self.sts_url or f"https://sts.{self.sts_region}.{_PLACES[self.partition][1]}"
