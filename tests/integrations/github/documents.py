"""Every GraphQL document that the integration and the importer send, in each of its forms."""

from factbook.importers.github import queries as importer_queries
from factbook.integrations.github import queries
from factbook.integrations.github.queries import COLLABORATORS, ISSUES, PULLS, RULES

DOCUMENTS = {
    "batch of one": queries.batch(1),
    "batch of twenty": queries.batch(20),
    "alone": queries.ALONE,
    **{f"page of {kind}": queries.pages((kind,), False) for kind in queries.KINDS},
    "pages and rulesets": queries.pages((PULLS, ISSUES, COLLABORATORS, RULES), True),
    "rulesets": queries.pages((), True),
    "repositories of an organization": importer_queries.make_repositories_query(2),
    "teams": importer_queries.TEAMS,
    "members": importer_queries.MEMBERS,
    "members of a team": importer_queries.TEAM_MEMBERS,
    "repositories of a team": importer_queries.TEAM_REPOSITORIES,
    "files": importer_queries.make_files_query(2),
}
