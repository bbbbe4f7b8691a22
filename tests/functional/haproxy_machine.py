"""A machine with a real HAProxy, for our scripts to work on: this host, with directories of its own.

The scripts name fixed paths, so they run in namespaces of their own, where those are empty and no port is taken; a pair
of interfaces leads there, on which this host plays the nodes. What systemd does for HAProxy is
done by a few lines in its place: start it as its unit does, and reload by signal.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from slipway.load_balancer.configure import SCRIPTS
from slipway.load_balancer.haproxy import haproxy_config, marked_as, ports_of
from slipway.load_balancer.routes import Routes
from slipway.remote.quoting import run_script

SYSTEMCTL = """#!/bin/sh
pid=$(cat /run/haproxy.pid 2>/dev/null)
alive() { [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }
start() { haproxy -W -D -f /etc/haproxy/haproxy.cfg -p /run/haproxy.pid 9>&- </dev/null >>/run/haproxy.log 2>&1; }
case $1 in
is-active) alive ;;
start) start ;;
reload) alive && kill -USR2 "$pid" ;;
reload-or-restart) if alive; then kill -USR2 "$pid"; else start; fi ;;
esac
"""
JOURNALCTL = "#!/bin/sh\ntail -n 5 /run/haproxy.log\n"
MADE = ("/etc/haproxy", "/run", "/var/lib/slipway", "/var/lib/haproxy")
NEEDED = ("haproxy", "socat", "unshare", "nsenter", "flock", "ss", "ip")


def missing() -> list[str]:
    return [name for name in NEEDED if not shutil.which(name)] + ([] if os.geteuid() == 0 else ["root"])


@dataclass
class Machine:
    """One process holds its mounts; it ends with it, and HAProxy too."""

    holder: subprocess.Popen[str]
    directory: Path
    network: str

    @property
    def address(self) -> str:
        return f"{self.network}.2"

    @property
    def nodes(self) -> tuple[str, str]:
        """Addresses of this host that the machine reaches."""
        return f"{self.network}.1", f"{self.network}.3"

    @staticmethod
    def made(directory: Path) -> Machine:
        programs = directory / "bin"
        programs.mkdir()
        for name, text in (("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        mounts = " && ".join(f"mkdir -p {path} && mount -t tmpfs -o size=1m slipway {path}" for path in MADE)
        command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        holder = subprocess.Popen(
            [*command, "sh", "-c", f"{mounts} && echo ready && exec sleep 600"], stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        made = Machine(holder, directory, f"10.211.{holder.pid % 250}")
        made._connect()
        return made

    def _connect(self) -> None:
        name, inside = f"slipway{self.holder.pid}"[:15], self._inside()
        own = [["ip", "address", "add", f"{one}/29", "dev", name] for one in self.nodes]
        _ip(["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", inside], *own)
        _ip(["ip", "link", "set", name, "up"])
        for command in (f"address add {self.address}/29 dev eth0", "link set lo up", "link set eth0 up"):
            assert self.run("ip", *command.split()).returncode == 0

    def _inside(self) -> str:
        return Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text().split()[0]

    def run(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["nsenter", "--target", self._inside(), "--mount", "--net", "--pid", *argv],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}"},
        )

    def apply(self, routes: Routes, revision: int) -> subprocess.CompletedProcess[str]:
        config = haproxy_config(routes)
        return self.apply_text(config, revision, marked_as(routes), ports_of(config))

    def apply_text(
        self, config: str, revision: int, mark: str, ports: tuple[int, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        arguments = [str(revision), mark, *map(str, ports)]
        return self.run(*run_script("apply_haproxy", *arguments, folder=SCRIPTS), stdin=config)

    def file(self, path: str) -> str:
        return self.run("cat", path).stdout

    def running(self) -> str:
        """What the process that serves now says of itself."""
        asked = self.run("socat", "-", "UNIX-CONNECT:/run/slipway-haproxy.sock", stdin="show info\n").stdout
        return next((line.split()[-1] for line in asked.splitlines() if line.lower().startswith("description:")), "")

    def close(self) -> None:
        self.holder.kill()
        self.holder.communicate()


def _ip(*commands: list[str]) -> None:
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)
