"""Snyk: the security metrics' issues, from the projects of Snyk organizations."""

from functools import partial
from typing import Final

from factbook.integrations.integration import Instance, Integration, make_vendor
from factbook.integrations.snyk.client import collect_snyk, make_snyk_probes
from factbook.integrations.snyk.options import SELECTING, SnykOptions, find_snyk_target
from factbook.settings.option_tables import url_origin


def _make_snyk_integration(instance: Instance[SnykOptions]) -> Integration:
    options = instance.options
    return Integration(
        source=instance.source(
            f"Issues that Snyk found, from {url_origin(options.base_url)}.", SELECTING
        ),
        authorize=instance.credential({"authorization": f"token {options.token}"}),
        base_url=options.base_url,
        # One for each severity, where issues are counted exactly.
        calls_at_once=4,
        target=partial(find_snyk_target, options),
        collect=partial(collect_snyk, options),
        probes=make_snyk_probes(options),
    )


INTEGRATION: Final = make_vendor(
    "snyk", "Snyk", SnykOptions, _make_snyk_integration, ("security.scannerIssues",)
)
