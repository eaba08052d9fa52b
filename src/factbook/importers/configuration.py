"""From tables `[importers.<kind>.<name>]` of the settings to importers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import factbook.importers
from factbook.clock import Clock, now
from factbook.errors import ConfigurationError, suggestion
from factbook.importers import mapping
from factbook.importers.importer import (
    AccountImporterOptions,
    Importer,
    ImporterKind,
    ImporterOptions,
    ReadingContext,
    Show,
)
from factbook.importers.kinds import KINDS
from factbook.importers.snapshot import PREFIX, Snapshot
from factbook.integrations import vendor
from factbook.integrations.integration import Integration
from factbook.outbound import HttpClient, Memory
from factbook.settings import option_tables

# Tables by kind or vendor, then by name.
Tables = Mapping[str, Mapping[str, Mapping[str, Any]]]


def kind(id_: str) -> ImporterKind[Any]:
    """The export of a kind's folder; raises ConfigurationError if there is none."""
    known = [one.id for one in KINDS]
    if id_ not in known:
        raise ConfigurationError(f"There is no importer {id_!r}.{suggestion(id_, known)}")
    # Heavy to import, and of no use where it is not configured.
    found: ImporterKind[Any] = import_module(f"{factbook.importers.__name__}.{id_}").IMPORTER
    return found


def configured(tables: Tables, accounts: Tables, *, clock: Clock = now) -> tuple[Importer, ...]:
    """The importers that the settings configure; raises ConfigurationError naming the table.

    `accounts` are the tables of the integrations.
    """
    found: dict[str, Importer] = {}
    for id_, named in tables.items():
        for name, values in named.items():
            one = importer(id_, name, values, accounts, clock=clock)
            if found.setdefault(one.id, one) is not one:
                raise ConfigurationError(f"importers.{id_}.{name}: {one.id!r} is there twice.")
    return tuple(found.values())


def importer(
    kind_id: str,
    name: str,
    values: Mapping[str, Any],
    accounts: Tables,
    *,
    clock: Clock = now,
    edition: str = "",
) -> Importer:
    """The importer that a table describes; raises ConfigurationError naming the table.

    `edition` is that of a credential of its own, and of no other.
    """
    found = kind(kind_id)
    where = f"importers.{kind_id}.{name}"
    options = option_tables.read_option_table(where, name, values, found.options)
    for mapped, fields in options.mapping.items():
        if found.makes and isinstance(fields, dict) and mapped.lower() not in found.makes:
            made = ", ".join(found.makes)
            raise ConfigurationError(f"{where}: mapping.{mapped} matches nothing of: {made}.")
    id_ = option_tables.source_id(kind_id, name)
    title = option_tables.instance_title(found.title, name)
    account, integration = None, None
    if found.vendor:
        account, integration = _account(where, found.vendor, options, accounts, clock)
    try:
        options = found.completed(options, account)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error.message}") from None
    if integration is None:
        integration = replace(found.access(options).integration(id_, title), edition=edition)
    elif integration.credential == where:
        integration = replace(integration, edition=edition)
    further = options.further()
    if own := further.keys() & {integration.base_url, *integration.further}:
        raise ConfigurationError(
            f"{where}: {min(own)} is the code host itself, whose files are read without text_hosts."
        )
    integration = replace(integration, further={**integration.further, **further})
    return Importer(
        id=id_,
        kind=kind_id,
        title=title,
        every=options.interval,
        integration=_own(id_, title, integration),
        read=partial(_read, found, options, account),
        events=found.events(options),
        reread=partial(_reread, found, options, account),
    )


def _account(
    where: str, vendor_id: str, options: ImporterOptions, accounts: Tables, clock: Clock
) -> tuple[Any, Integration]:
    """The options and the integration of the account that an importer reads with."""
    assert isinstance(options, AccountImporterOptions), "what a kind with a vendor declares"
    name = options.integration
    table = options.account or accounts.get(vendor_id, {}).get(name)
    if table is None:
        raise ConfigurationError(
            f"{where}: there is no table [integrations.{vendor_id}.{name}] with the credential."
        )
    found = vendor(vendor_id)
    read = option_tables.read_options(vendor_id, name, table, found.options)
    integration = found.configured(name, table, clock=clock)
    if options.account:
        # Another credential than that of the table with this name.
        integration = replace(integration, credential=where)
    return read, integration


def _own(id_: str, title: str, integration: Integration) -> Integration:
    """The integration under a name of its own; clients of one credential share its limits."""
    source = replace(integration.source, id=f"{PREFIX}{id_}", title=title)
    return replace(integration, source=source, credential=integration.credential)


async def _reread(
    kind: ImporterKind[Any],
    options: ImporterOptions,
    account: Any,
    client: HttpClient,
    memory: Memory,
    at: int,
    hints: Sequence[str],
) -> Snapshot:
    assert kind.reread is not None, "what a kind that takes events has"
    context = ReadingContext(client, memory, at, account)
    return await _mapped(options, await kind.reread(context, options, hints))


async def _read(
    kind: ImporterKind[Any],
    options: ImporterOptions,
    account: Any,
    client: HttpClient,
    memory: Memory,
    at: int,
    show: Show,
) -> Snapshot:
    snapshot = await kind.read(ReadingContext(client, memory, at, account), options, show)
    if options.mapping:
        show("Mapping")
    return await _mapped(options, snapshot)


async def _mapped(options: ImporterOptions, snapshot: Snapshot) -> Snapshot:
    """The snapshot by the mapping of the options."""
    if not options.mapping:
        return snapshot
    return await asyncio.to_thread(mapping.mapped, snapshot, mapping.parsed(options.mapping))
