"""Git: the files of a repository on any host, by a clone without contents."""

from functools import partial
from typing import Final

from factbook.integrations.configuration import Instance, vendor
from factbook.integrations.git.client import collect, read
from factbook.integrations.git.options import GitOptions, target
from factbook.integrations.integration import Integration, portions
from factbook.integrations.locations import SOURCE_LOCATION
from factbook.outbound.git import find_git, make_git_headers


def _configured(instance: Instance[GitOptions]) -> Integration:
    options = instance.options
    git = find_git()
    proof = make_git_headers(options.username or "git", options.token)
    return Integration(
        source=instance.source(
            f"Files of the repositories on {options.host}.", (SOURCE_LOCATION,), minutes=60
        ),
        authorize=instance.credential(proof if options.token else {}),
        base_url=options.url,
        at_once=4,
        target=partial(target, options),
        # One that takes long keeps no other back.
        batches=partial(portions, size=1),
        collect=partial(collect, git, options),
        read=partial(read, git, options),
    )


INTEGRATION: Final = vendor("git", "Git", GitOptions, _configured, ("repository",))
