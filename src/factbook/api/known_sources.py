"""Every data source of this server, builtin or defined by a user, as it is at this moment."""

from factbook.collecting import Known
from factbook.edge.state import State
from factbook.errors import NotFoundError
from factbook.facts.datasource import DataSource


async def known(state: State) -> Known:
    """All of them; what any process changed until now is seen."""
    state.registry.forget()
    return await state.registry.current()


async def one(state: State, source_id: str) -> DataSource:
    """The source with this id; raises NotFoundError."""
    source = (await known(state)).sources.get(source_id)
    if source is None:
        raise missing(source_id)
    return source


def missing(source_id: str) -> NotFoundError:
    """What is said of a source that there is not."""
    return NotFoundError(f'There is no data source "{source_id}".')
