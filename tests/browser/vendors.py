"""The vendors of the made-up shop: fakes, each asked by the integration that is made for it."""

from typing import Any, Final

from tests.browser import imported, showcase
from tests.fakes.datadog import Monitor
from tests.fakes.faults import saying
from tests.integrations.asking import Asking
from tests.integrations.datadog import asking as datadog
from tests.integrations.github import asking as github
from tests.integrations.pagerduty import asking as pagerduty
from tests.integrations.snyk import asking as snyk

_CHECKOUT: Final = Monitor(1, ("service:checkout", "team:one"))


class Vendors:
    """The fakes, and the integrations that ask them."""

    def __init__(self) -> None:
        self.github, code = github.started(*showcase.repositories(0))
        self.snyk, scanner = snyk.started(showcase.projects(0), organizations=[snyk.ACME])
        _, on_call = pagerduty.started(showcase.services(), showcase.incidents())
        self.datadog, monitors = datadog.started([_CHECKOUT])
        self.askings: list[Asking] = [code, scanner, on_call, monitors]
        # For what asks nobody: with that of a vendor it would have the calls of the vendor.
        self.unused = snyk.started()[1].client

    def live_until(self, day: int, moment: int) -> None:
        """Let it be this moment, on the day of this number, for every vendor."""
        for asking in self.askings:
            asking.time.now = moment
        self.github.repositories = showcase.repositories(day) + imported.repositories()
        self.snyk.organizations = {one.id: one for one in [showcase.projects(day)]}
        if day > showcase.DAYS - 3:
            forbidden: Any = saying({"errors": ["Forbidden"]}, 403)
            for kind in list(self.datadog.requests):
                self.datadog.fail(kind, forbidden, times=1_000)
