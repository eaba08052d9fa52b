"""One row for each vendor in this room, readable without importing the vendors.

To add an integration, add its folder and its row here.
"""

from typing import Final, NamedTuple


class VendorSummary(NamedTuple):
    """A vendor's folder, title, description of its facts, and required settings."""

    id: str
    title: str
    brings: str
    options: tuple[str, ...]

    @property
    def variables(self) -> str:
        """The first instance's required settings as environment variables, one per line."""
        prefix = f"FACTBOOK_INTEGRATIONS__{self.id.upper()}__DEFAULT__"
        return "\n".join(f"{prefix}{option.upper()}=…" for option in self.options)


VENDORS: Final = (
    VendorSummary(
        "github",
        "GitHub",
        "Pull requests, issues, branch protection, dependency alerts and files.",
        ("token",),
    ),
    VendorSummary(
        "gitlab", "GitLab", "Merge requests, issues, branch protection and files.", ("token",)
    ),
    VendorSummary(
        "gitea",
        "Gitea or Forgejo",
        "Pull requests, issues, branch protection and files.",
        ("host", "token"),
    ),
    VendorSummary("git", "Git", "The files of repositories on any Git host.", ("host", "token")),
    VendorSummary("snyk", "Snyk", "Security issues by severity.", ("token", "organizations")),
    VendorSummary("pagerduty", "PagerDuty", "Incidents and who is on call.", ("api_key",)),
    VendorSummary(
        "datadog",
        "Datadog",
        "Monitors and service level objectives.",
        ("api_key", "application_key"),
    ),
    VendorSummary("prometheus", "Prometheus", "Alerts, recording rules and uptime.", ("base_url",)),
)
