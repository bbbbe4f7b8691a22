"""What the framework itself costs: uvicorn, and one row from SQLite by its key. Nothing of Slipway is in it.

Run as a process of its own: `python -m bench.bare DATABASE KEY`.
"""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from bench.server import Server


@contextmanager
def bare(place: Path) -> Iterator[Server]:
    """Serving one document at every path."""
    database = sqlite3.connect(place / "bare.db")
    database.execute("CREATE TABLE documents (id TEXT PRIMARY KEY, doc TEXT NOT NULL)")
    database.execute("INSERT INTO documents VALUES ('one', ?)", ['{"name": "%s"}' % ("x" * 400)])
    database.commit()
    database.close()
    command = [sys.executable, "-m", "bench.bare", str(place / "bare.db"), "one"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(process.stdout.readline()) if process.stdout else 0
        yield Server(process, port, "", 0.0)
    finally:
        process.terminate()
        process.communicate()


async def serve(path: str, key: str) -> None:
    database = sqlite3.connect(path)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        ((document,),) = database.execute("SELECT doc FROM documents WHERE id = ?", (key,)).fetchall()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(document)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": document.encode()})

    config = uvicorn.Config(app, log_config=None, access_log=False, http="httptools", lifespan="off")
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listening.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve([listening])


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve(sys.argv[1], sys.argv[2]))
