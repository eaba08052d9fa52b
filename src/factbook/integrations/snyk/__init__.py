"""Snyk: the security metrics' issues, from the projects of Snyk organizations."""

from functools import partial
from typing import Final

from factbook.integrations.configuration import Instance, vendor
from factbook.integrations.integration import Integration
from factbook.integrations.snyk.client import collect, probes
from factbook.integrations.snyk.options import SnykOptions
from factbook.integrations.snyk.targets import SELECTING, target
from factbook.settings.option_tables import url_origin


def _configured(instance: Instance[SnykOptions]) -> Integration:
    options = instance.options
    return Integration(
        source=instance.source(
            f"Issues that Snyk found, from {url_origin(options.base_url)}.", SELECTING
        ),
        authorize=instance.credential({"authorization": f"token {options.token}"}),
        base_url=options.base_url,
        # One for each severity, where issues are counted exactly.
        calls_at_once=4,
        target=partial(target, options),
        collect=partial(collect, options),
        probes=probes(options),
    )


INTEGRATION: Final = vendor("snyk", "Snyk", SnykOptions, _configured, ("security.scannerIssues",))
