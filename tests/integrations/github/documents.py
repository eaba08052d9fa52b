"""Every GraphQL document that the integration and the importer send, in each of its forms."""

from factbook.importers.github import queries as importer_queries
from factbook.integrations.github import api
from factbook.integrations.github.api import COLLABORATORS, ISSUES, PULLS, RULES

DOCUMENTS = {
    "batch of one": api.build_batch_query(1),
    "batch of twenty": api.build_batch_query(20),
    "alone": api.ALONE_QUERY,
    **{f"page of {kind}": api.build_pages_query((kind,), False) for kind in api.KINDS},
    "pages and rulesets": api.build_pages_query((PULLS, ISSUES, COLLABORATORS, RULES), True),
    "rulesets": api.build_pages_query((), True),
    "repositories of an organization": importer_queries.make_repositories_query(2),
    "teams": importer_queries.TEAMS,
    "members": importer_queries.MEMBERS,
    "members of a team": importer_queries.TEAM_MEMBERS,
    "repositories of a team": importer_queries.TEAM_REPOSITORIES,
    "files": importer_queries.make_files_query(2),
}
