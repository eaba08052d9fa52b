"""Git: the files of a repository on any host, by a clone without contents."""

from functools import partial
from typing import Final

from factbook.integrations.git.client import collect_git, read_git_file
from factbook.integrations.git.options import GitOptions, find_git_target
from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Instance,
    Integration,
    make_vendor,
    split_targets,
)
from factbook.outbound.git import find_git, make_git_headers


def _make_git_integration(instance: Instance[GitOptions]) -> Integration:
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
        target=partial(find_git_target, options),
        # One that takes long keeps no other back.
        batches=partial(split_targets, size=1),
        collect=partial(collect_git, git, options),
        read=partial(read_git_file, git, options),
    )


INTEGRATION: Final = make_vendor("git", "Git", GitOptions, _make_git_integration, ("repository",))
