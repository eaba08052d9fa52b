"""The vendors that have a folder here, a row each, described without importing any of them.

A new integration is its folder and its row.
"""

from typing import Final, NamedTuple


class VendorSummary(NamedTuple):
    """A vendor's folder, its title, the facts that it brings, and the settings that it needs."""

    id: str
    title: str
    brings: str
    options: tuple[str, ...]

    @property
    def variables(self) -> str:
        """The settings of its first instance as environment variables, a line each."""
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
