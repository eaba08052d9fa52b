"""Importer of AWS Organizations: accounts as resources."""

import os
from typing import Final

from factbook import clock
from factbook.importers.aws import organization
from factbook.importers.aws.api import OrganizationsApi
from factbook.importers.aws.credentials import keys
from factbook.importers.aws.options import AwsImportOptions
from factbook.importers.importer import Access, ImporterKind, ReadingContext, Show
from factbook.importers.snapshot import Snapshot
from factbook.outbound import ANONYMOUS
from factbook.outbound.outcomes import Missing

# Half of what AWS allows, since others ask it, too.
_CALLS_A_MINUTE: Final = 300


def _access(options: AwsImportOptions) -> Access:
    return Access(
        base_url=options.base_url,
        pace={"": _CALLS_A_MINUTE},
        further={options.sts_base_url: lambda _: ANONYMOUS},
    )


async def _read(context: ReadingContext, options: AwsImportOptions, show: Show) -> Snapshot:
    sts = context.client.further[options.sts_base_url]
    found = await keys(options, os.environ, sts, clock.now())
    if isinstance(found, Missing):
        return organization.unread(found, options)
    # A signature is of its moment, and a large organization takes longer than it is valid.
    api = OrganizationsApi(context.client, found, options.home, clock.now)
    return await organization.read(api, options, context.memory, show)


IMPORTER: Final = ImporterKind(
    id="aws",
    title="AWS Organizations",
    options=AwsImportOptions,
    makes=("resource", "system"),
    read=_read,
    access=_access,
)
