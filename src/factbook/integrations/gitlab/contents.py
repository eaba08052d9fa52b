"""One file of a project's default branch."""

from typing import Final

from factbook.integrations.gitlab.options import Options
from factbook.outbound import Answer, HttpClient, Memory, path

_ANYTHING: Final = {"accept": "*/*"}


async def read(
    options: Options, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """The file with this path, its bytes as the body; not asked for again while it is the same."""
    url = f"{options.rest}{path('projects', target, 'repository', 'files', file, 'raw')}"
    return await client.get(
        url, query={"ref": "HEAD"}, headers=_ANYTHING, memory=memory, decode=False, follow=True
    )
