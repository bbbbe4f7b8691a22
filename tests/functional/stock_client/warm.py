"""The stock client without its start: runs in the client's own Python, and forks for each command.

Nine tenths of a command's time go into importing. What one command has imported, the next ones find there; everything
else is as in a process of its own. Standard input: one JSON object a line. Standard output: the exit code.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from importlib import import_module


def run(arguments: list[str], environment: dict[str, str], directory: str, out: str, err: str, tell: int) -> None:
    for number, path in ((0, os.devnull), (1, out), (2, err)):
        os.dup2(os.open(path, os.O_RDWR), number)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["openstack", *arguments]
    try:
        code = import_module("openstackclient.shell").main(arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with os.fdopen(tell, "w") as modules:
        json.dump(sorted(sys.modules), modules)
    os._exit(code or 0)


def serve() -> None:
    for line in sys.stdin:
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            try:
                run(**json.loads(line), tell=writing)
            finally:
                os._exit(70)
        os.close(writing)
        with os.fdopen(reading) as told:
            imported = told.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for name in json.loads(imported or "[]"):
            with suppress(ImportError):  # what a C library made
                import_module(name)
        print(code, flush=True)


if __name__ == "__main__":
    serve()
