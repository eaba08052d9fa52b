"""The kinds of importers, a row each, described without importing any of them.

A new kind is its folder, whose IMPORTER it is, and its row.
"""

from typing import Final, NamedTuple


class KindSummary(NamedTuple):
    """The folder of a kind, its title, and what it brings."""

    id: str
    title: str
    brings: str


KINDS: Final = (
    KindSummary("aws", "AWS Organizations", "Accounts of an organization, as resources."),
    KindSummary("catalog", "Catalog", "Entities of a Backstage, Roadie or other Factbook."),
    KindSummary("gitea", "Gitea or Forgejo", "Repositories, teams and members of organizations."),
    KindSummary("github", "GitHub", "Repositories, teams and members of organizations."),
    KindSummary("gitlab", "GitLab", "Projects, subgroups and members of groups."),
    KindSummary("kubernetes", "Kubernetes", "Workloads of a cluster, as components."),
    KindSummary("ldif", "LDIF file", "People and groups that a directory exported."),
)
