"""Every data source of this server, builtin or defined by a user, as it is at this moment."""

from factbook.collection import Known
from factbook.datasources.define import missing
from factbook.facts.datasource import DataSource
from factbook.http.context import State

__all__ = ["known", "missing", "one"]


async def known(state: State) -> Known:
    """All of them; what any process changed until now is seen."""
    return await state.registry.latest()


async def one(state: State, source_id: str) -> DataSource:
    """The source with this id; raises NotFoundError."""
    source = (await known(state)).sources.get(source_id)
    if source is None:
        raise missing(source_id)
    return source
