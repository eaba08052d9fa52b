"""Renews `schema.graphql`: `python -m tests.fakes.github`."""

from tests.fakes.github import schema
from tests.integrations.github.documents import DOCUMENTS

schema.PART.write_text(schema.pruned(schema.whole(), DOCUMENTS.values()))
