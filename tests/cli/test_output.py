"""Output of commands: answers and messages, in the order in which they were given."""

import os
import subprocess
import sys

SCRIPT = """
from factbook.cli.command_parts import print_note, say
for word in ("one", "two", "three"):
    say(f"answer {word}")
    print_note(f"message {word}")
"""


def test_answers_and_messages_sent_to_one_file_keep_their_order() -> None:
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == [
        *("answer", "one", "message", "one"),
        *("answer", "two", "message", "two"),
        *("answer", "three", "message", "three"),
    ]
