"""Every GraphQL document that the integration sends, in each of its forms."""

from factbook.integrations.github import queries
from factbook.integrations.github.queries import COLLABORATORS, ISSUES, PULLS, RULES

DOCUMENTS = {
    "batch of one": queries.batch(1),
    "batch of twenty": queries.batch(20),
    "alone": queries.ALONE,
    **{f"page of {kind}": queries.pages((kind,), False) for kind in queries.KINDS},
    "pages and rulesets": queries.pages((PULLS, ISSUES, COLLABORATORS, RULES), True),
    "rulesets": queries.pages((), True),
}
