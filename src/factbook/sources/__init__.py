"""Where facts come from: one folder for each integration, all of them in one list."""

from factbook.facts.datasource import DataSource
from factbook.sources import catalog

SOURCES: tuple[DataSource, ...] = catalog.SOURCES
