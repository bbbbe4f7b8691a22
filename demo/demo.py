"""The whole life of a Kubernetes cluster, by the commands that anyone would type.

    demo.py              a real cluster, on machines that are containers here; needs root
    demo.py --simulated  the same on simulated machines, in seconds, anywhere

Everything of it goes into a directory of its own, which is removed at the end; what was built for the image stays in
the cache.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from slipway.vim.sandbox.image.kubernetes import programs
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.image.kubernetes.versions import DEFAULT, RELEASES
from slipway.vim.sandbox.paths import default_cache

ROOT = Path(__file__).parents[1]
SLIPWAY = str(Path(sys.executable).with_name("slipway"))
PATIENCE = 120.0


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


def run(command: str, *, show: bool = True, live: bool = False) -> str:
    """Type a command, show it with its output, and stop the demo when it fails. `live`: lines appear as they come."""
    if show:
        print(f"\n$ {command}", flush=True)
    words = shlex.split(command)
    process = subprocess.Popen(_program(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT if show else None,
                               text=True)  # fmt: skip
    printed = ""
    for line in process.stdout or ():
        printed += line
        if show:
            print(line, end="", flush=live)
    if code := process.wait():
        raise SystemExit(f"`{command}` ended with {code}")
    return printed


def _program(words: list[str]) -> list[str]:
    return [{"slipway": SLIPWAY, "kubectl": os.environ.get("KUBECTL", "kubectl")}.get(words[0], words[0]), *words[1:]]


def until_a_step_runs(operation_id: str, name: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        steps = json.loads(run(f"slipway op steps {operation_id} -o json", show=False))["steps"]
        if any(step["id"].startswith(name) and step["state"] in ("RUNNING", "DONE") for step in steps):
            return  # it may have ended between two looks
        if any(step["state"] == "FAILED" for step in steps):
            raise SystemExit(run(f"slipway op show {operation_id}"))
    raise SystemExit("No step began in time.")


def write_logins() -> None:
    """For the VIM and for the cluster's parameters. The password is for the machines of this demo alone."""
    login = {"username": "slipway", "password": secrets.token_urlsafe(16)}
    cluster = {
        "vim_name": "mycluster",  # what runs on the cluster names it so
        "master_node": {"ssh_cp_name": "masterNode_CP1", **login},
        "worker_node": {"ssh_cp_name": "workerNode_CP1", **login},
        "image_repository": "registry.slipway.test",
    }
    for name, content in (("access.json", login), ("cluster.json", {"k8s_cluster_installation_param": cluster})):
        Path(name).touch(mode=0o600)
        Path(name).write_text(json.dumps(content))


def story(server: Server, *, simulated: bool) -> None:
    write_logins()
    if not simulated:
        run("slipway sandbox image build kubernetes", live=True)
        os.environ["KUBECTL"] = _kubectl()
    server.start()
    if simulated:
        run("slipway sim rules simulated --add kind=latency,call=host,asked=init,seconds=3")
    else:
        run("slipway vim add sandbox --type sandbox --access-file access.json --default")
    run("slipway package build samples/cluster-sandbox -o cluster.csar")
    run("slipway package upload cluster.csar --name cluster")
    run("slipway vnf create mycluster --package cluster")
    begun = run("slipway vnf instantiate mycluster --flavour simple --params cluster.json --no-wait")
    operation_id = begun.split()[-1]
    until_a_step_runs(operation_id, "init")
    server.kill()
    server.start()
    run(f"slipway op wait {operation_id}", live=True)
    run("slipway vnf describe mycluster")
    if not simulated:
        use()

    run("slipway vnf scale mycluster --aspect workers --steps 1 --plan")
    run("slipway vnf scale mycluster --aspect workers --steps 1", live=True)
    lose_power("workerNode-1", simulated=simulated)
    run(f"slipway vnf heal mycluster --vnfc {vnfc('workerNode-1')}", live=True)
    run("slipway vnf scale mycluster --aspect workers --in --steps 1", live=True)
    if not simulated:
        call_the_web()
        run("slipway vnf terminate myweb", live=True)
        run("slipway vnf delete myweb")
    run("slipway vnf terminate mycluster --forceful", live=True)
    run("slipway vnf delete mycluster")
    run("slipway vim list")


def use() -> None:
    run("slipway vnf kubeconfig mycluster")
    print("\n$ export KUBECONFIG=mycluster.kubeconfig")
    os.environ["KUBECONFIG"] = "mycluster.kubeconfig"
    run("kubectl get nodes")
    run("slipway package build samples/web-sandbox -o web.csar")
    run("slipway package upload web.csar --name web")
    run("slipway vnf create myweb --package web")
    run("slipway vnf instantiate myweb --flavour simple --vim mycluster", live=True)
    call_the_web()


def call_the_web() -> None:
    """At a port of a worker, wherever the pod behind it runs."""
    run("kubectl rollout status deployment/web --timeout=120s", live=True)
    address = next(node["address"] for node in cluster()["nodes"] if node["role"] == "worker")
    run(f"curl --silent --retry 9 --retry-all-errors --noproxy * http://{address}:30080")


def lose_power(slot: str, *, simulated: bool) -> None:
    if simulated:
        run(f"slipway sim rules simulated --add kind=error,call=host,machine={slot},times=3")
    else:
        run(f"slipway sandbox kill {slot}")
        run("slipway vnf describe mycluster")


def cluster() -> dict[str, list[dict[str, str]]]:
    described = json.loads(run("slipway vnf describe mycluster -o json", show=False))
    return described["cluster"]  # type: ignore[no-any-return]


def vnfc(slot: str) -> str:
    info = json.loads(run("slipway vnf show mycluster -o json", show=False))["instantiatedVnfInfo"]
    machine = next(one["id"] for one in info["vnfcResourceInfo"] if one["metadata"]["name"] == slot)
    return str(next(one["id"] for one in info["vnfcInfo"] if one["vnfcResourceInfoId"] == machine))


def clear_up() -> None:
    """Also after a story that broke off in the middle."""
    subprocess.run([SLIPWAY, "sandbox", "prune", "--all", "--yes"], stdout=subprocess.DEVNULL)
    subprocess.run([SLIPWAY, "sandbox", "stop"], stdout=subprocess.DEVNULL)


def _kubectl() -> str:
    """The one that was built for the machines, unless there is another."""
    if there := shutil.which("kubectl"):
        return there
    return str(
        ProgramCache(default_cache() / "kubernetes", print).built(programs.command(RELEASES[DEFAULT], "kubectl"))
    )


def main() -> None:
    simulated = "--simulated" in sys.argv[1:]
    if not simulated:
        os.environ["SLIPWAY_SANDBOX_DIR"] = str(default_cache() / "sandbox-demo")
    began = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="slipway-demo-"))
    (place / "samples").symlink_to(ROOT / "samples")
    server = Server(place)
    os.chdir(place)
    try:
        story(server, simulated=simulated)
    finally:
        server.end(signal.SIGTERM)
        server.log.close()
        if not simulated:
            clear_up()
        os.chdir(ROOT)
        shutil.rmtree(place, ignore_errors=True)
    print(f"\nThat was a cluster's whole life in {time.monotonic() - began:.0f} s, and nothing is left.")


if __name__ == "__main__":
    main()
