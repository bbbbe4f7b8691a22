"""A VNF's whole life on the embedded default, by the commands that anyone would type, with a kill -9 in the middle.

Everything happens in a directory of its own, which is removed at the end.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SLIPWAY = str(Path(sys.executable).with_name("slipway"))
PATIENCE = 30.0


class Server:
    def __init__(self, place: Path) -> None:
        self.log = (place / "server.log").open("a")
        self.data = place / "data"
        self.port = "0"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [SLIPWAY, "serve", "--port", self.port, "--data-dir", str(self.data)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        ready = self.process.stdout.readline().strip() if self.process.stdout else ""
        if "ready" not in ready:
            raise SystemExit(f"The server did not start; its log is {self.log.name}.")
        self.port = ready.split(" (")[0].rpartition(":")[2]
        os.environ |= {"SLIPWAY_URL": f"http://127.0.0.1:{self.port}", "SLIPWAY_DATA_DIR": str(self.data)}
        print(f"\n$ slipway serve &\n{ready.split(' (')[0]}")

    def kill(self) -> None:
        if self.process:
            print(f"\n$ kill -9 {self.process.pid}")
            self.end(signal.SIGKILL)

    def end(self, number: signal.Signals) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.communicate()


def slipway(command: str, *, show: bool = True) -> str:
    """Type a command, show it with its output, and stop the demo when it fails."""
    if show:
        print(f"\n$ slipway {command}", flush=True)
    done = subprocess.run([SLIPWAY, *shlex.split(command)], capture_output=True, text=True)
    if show or done.returncode:
        print(done.stdout.rstrip() + done.stderr.rstrip())
    if done.returncode:
        raise SystemExit(f"`slipway {command}` ended with {done.returncode}")
    return done.stdout


def until_a_step_runs(operation_id: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        steps = json.loads(slipway(f"op steps {operation_id} -o json", show=False))["steps"]
        if any(step["state"] == "RUNNING" for step in steps):
            return
    raise SystemExit("No step began in time.")


def story(server: Server, place: Path) -> None:
    server.start()
    csar = place / "cluster.csar"
    sample = os.path.relpath(HERE.parent / "samples" / "cluster-simulated")
    slipway(f"package build {sample} -o {csar}")
    package_id: str = json.loads(slipway(f"package upload {csar} -o json", show=False))["id"]
    slipway("package list")
    slipway(f"vnf create --package {package_id} mycluster")
    slipway("vnf instantiate mycluster --flavour simple")

    slipway("vnf scale mycluster --aspect workers --steps 3 --plan")
    slipway("sim rules simulated --add kind=latency,call=make_machine,seconds=4")
    operation_id = slipway("vnf scale mycluster --aspect workers --steps 3 --no-wait").split()[-1]
    until_a_step_runs(operation_id)
    slipway(f"op steps {operation_id}")
    server.kill()
    server.start()
    slipway(f"op wait {operation_id}")
    slipway("vnf describe mycluster")

    slipway("sim rules simulated --clear")
    slipway("vnf terminate mycluster --forceful")
    slipway("vim check simulated")
    slipway("vnf delete mycluster")


def main() -> None:
    began = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="slipway-demo-"))
    server = Server(place)
    try:
        story(server, place)
    finally:
        server.end(signal.SIGTERM)
        server.log.close()
        shutil.rmtree(place, ignore_errors=True)
    print(f"\nThat was a VNF's whole life in {time.monotonic() - began:.0f} s, and nothing is left.")


if __name__ == "__main__":
    main()
