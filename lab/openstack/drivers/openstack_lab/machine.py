"""Light machines: one set of Linux namespaces over a shared root file system.

A machine has an overlay of a base root file system, its own mount, PID, UTS,
IPC, cgroup and network namespaces, and boots the init of its base (systemd,
cloud-init, sshd).  Everything about it is in one directory, so a process that
is started anew finds the machines that its predecessor left running.

    <directory>/machine.json   what it is: host name, base, NICs, disks
    <directory>/upper, work    the overlay's writable part
    <directory>/containerd, kubelet    its directories of this name in /var/lib:
                               an overlay cannot be made upon an overlay
    <directory>/pid            "PID START" of its init while it runs
    <directory>/console.log    what its init and kernel messages say

Needs root.  Knows nothing of OpenStack; `python -m openstack_lab.machine`
lists, stops or destroys machines by hand.
"""

import contextlib
import fcntl
import glob
import ipaddress
import json
import logging
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading
import time

LOG = logging.getLogger(__name__)

# Marks the routes made here (an unused routing protocol number).
ROUTE_PROTOCOL = "186"
LOWEST_PRIORITY = "4294967295"
FS_IOC_SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, 2

# Bridges and control groups are shared: this lock is for all processes.
NETWORK_LOCK = "/run/lock/openstack-lab-network"

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"


class MachineError(Exception):
    pass


def run(*args, check=True, stdin=None):
    """Run a command; its output, or MachineError with what it said."""
    done = subprocess.run(args, input=stdin, text=True, capture_output=True)
    if check and done.returncode:
        raise MachineError("{}: {}".format(" ".join(args), done.stderr.strip()))
    return done.stdout


@contextlib.contextmanager
def locked(path):
    """Hold a file's lock, against other threads as well as processes."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _cgroup_parents():
    """The directories of this process's own groups: cgroup2's, then v1's.

    On a hybrid machine the controllers are in v1 hierarchies.  A machine gets
    a group of its own in each, so that what needs them (a kubelet) finds them.
    """
    with open("/proc/self/cgroup") as f:
        own = [line.rstrip("\n").split(":", 2)[1:] for line in f]
    parents = []
    with open("/proc/self/mountinfo") as f:
        for fields in map(str.split, f):
            kind = fields[fields.index("-") + 1]
            options = set(fields[-1].split(","))
            for names, path in own:
                if (kind == "cgroup2" and not names) or (
                    kind == "cgroup" and names and options >= set(names.split(","))
                ):
                    # A group of ours for a machine must not be inside another.
                    path = path.split("/lab-machines")[0].lstrip("/")
                    parents.append((kind == "cgroup", os.path.join(fields[4], path, "lab-machines")))
    if not parents or all(v1 for v1, _ in parents):
        raise MachineError("no cgroup2 hierarchy is mounted")
    return [path for _, path in sorted(parents)]


def _make_group(group):
    os.makedirs(group, exist_ok=True)
    for level in (os.path.dirname(group), group):
        if not os.path.exists(f"{level}/cpuset.cpus") or not os.path.exists(f"{level}/cgroup.clone_children"):
            continue
        # Empty in a new group of the first version, which nobody can enter then.
        for name in ("cpuset.cpus", "cpuset.mems"):
            with open(f"{level}/../{name}") as f, open(f"{level}/{name}", "w") as g:
                g.write(f.read())
        with open(f"{level}/cgroup.clone_children", "w") as f:
            f.write("1")


class Bridges:
    """One Linux bridge per network, made when needed, gone when unused."""

    def plug(self, nic, pid):
        """Make the veth pair of a NIC: one end in the network namespace."""
        with locked(NETWORK_LOCK):
            self._ensure(nic)
            run("ip", "link", "del", nic["tap"], check=False)
            run(
                "ip",
                "link",
                "add",
                nic["tap"],
                "type",
                "veth",
                "peer",
                "name",
                nic["device"],
                "address",
                nic["mac"],
                "netns",
                str(pid),
            )
            run("ip", "link", "set", nic["tap"], "mtu", str(nic["mtu"]), "master", nic["bridge"], "up")

    def unplug(self, nic):
        with locked(NETWORK_LOCK):
            run("ip", "link", "del", nic["tap"], check=False)
            bridge = nic["bridge"]
            ports = f"/sys/class/net/{bridge}/brif"
            if os.path.isdir(ports) and not os.listdir(ports):
                run("ip", "link", "del", bridge, check=False)

    def _ensure(self, nic):
        bridge = nic["bridge"]
        if not os.path.isdir(f"/sys/class/net/{bridge}"):
            run("ip", "link", "add", bridge, "type", "bridge", "forward_delay", "0")
            run("ip", "link", "set", bridge, "mtu", str(nic["mtu"]), "up")
        for gateway in nic["gateways"]:
            self._reachable(bridge, ipaddress.ip_interface(gateway))

    @staticmethod
    def _reachable(bridge, gateway):
        """Give the bridge the gateway's address, unless it is taken.

        It is how a process of this machine reaches the servers.  A route of
        the lowest priority keeps packets for servers that are no more from
        leaving through the default route.
        """
        for link in json.loads(run("ip", "-j", "addr")):
            for addr in link.get("addr_info", ()):
                present = ipaddress.ip_interface(f"{addr['local']}/{addr['prefixlen']}")
                if present.version != gateway.version or not present.network.overlaps(gateway.network):
                    continue
                if link["ifname"] != bridge:
                    LOG.warning(
                        "%s is not reachable from here: overlaps %s of %s", gateway.network, present, link["ifname"]
                    )
                return
        family = f"-{gateway.version}"
        run("ip", family, "addr", "add", str(gateway), "dev", bridge, *(["nodad"] if gateway.version == 6 else []))
        run(
            "ip",
            family,
            "route",
            "replace",
            "unreachable",
            str(gateway.network),
            "metric",
            LOWEST_PRIORITY,
            "proto",
            ROUTE_PROTOCOL,
            check=False,
        )


class Machines:
    def __init__(self, directory, boot):
        self.directory = directory
        self.boot = boot
        self.bridges = Bridges()
        self._locks = {}
        self._locks_lock = threading.Lock()

    # -- what there is ----------------------------------------------------
    def path(self, uuid, *names):
        return os.path.join(self.directory, uuid, *names)

    def exists(self, uuid):
        return os.path.exists(self.path(uuid, "machine.json"))

    def list(self):
        try:
            return [u for u in os.listdir(self.directory) if self.exists(u)]
        except FileNotFoundError:
            return []

    def load(self, uuid):
        with open(self.path(uuid, "machine.json")) as f:
            return json.load(f)

    def _save(self, uuid, spec):
        new = self.path(uuid, "machine.json.new")
        with open(new, "w") as f:
            json.dump(spec, f, indent=1)
        os.rename(new, self.path(uuid, "machine.json"))

    def pid(self, uuid):
        """The process id of the machine's init, or None."""
        try:
            with open(self.path(uuid, "pid")) as f:
                pid, start = f.read().split()
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rpartition(") ")[2].split()
        except (OSError, ValueError):
            return None
        if fields[0] in "ZX" or fields[19] != start:
            return None
        return int(pid)

    def state(self, uuid):
        if not self.pid(uuid):
            return STOPPED
        try:
            with open(os.path.join(self._cgroup(uuid), "cgroup.freeze")) as f:
                return PAUSED if f.read().strip() == "1" else RUNNING
        except OSError:
            return RUNNING

    def _cgroups(self, uuid):
        """Its control groups: those it was started in, if it was."""
        try:
            with open(self.path(uuid, "cgroup")) as f:
                return f.read().split()
        except OSError:
            return [os.path.join(p, uuid) for p in _cgroup_parents()]

    def _cgroup(self, uuid):
        """Its group in the cgroup2 hierarchy."""
        return self._cgroups(uuid)[0]

    def lock(self, uuid):
        with self._locks_lock:
            return self._locks.setdefault(uuid, threading.RLock())

    # -- life -------------------------------------------------------------
    def create(self, uuid, hostname, base, nics, disks=(), files=None):
        """Lay a machine down.

        nics: dicts with id, mac, mtu, tap, bridge, gateways (of the bridge),
        addresses and routes (inside); disks: dicts with device, path;
        files: {path in the root file system: bytes}.
        """
        with self.lock(uuid):
            for name in ("upper", "work", "root", "containerd", "kubelet"):
                os.makedirs(self.path(uuid, name), exist_ok=True)
            for name, data in (files or {}).items():
                target = self.path(uuid, "upper", name.lstrip("/"))
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "wb") as f:
                    f.write(data)
            nics = [dict(nic, device=f"eth{i}") for i, nic in enumerate(nics)]
            self._save(uuid, {"hostname": hostname, "base": base, "nics": nics, "disks": list(disks)})

    def start(self, uuid):
        with self.lock(uuid):
            if self.pid(uuid):
                return
            spec = self.load(uuid)
            for name in ("pid", "go"):
                self._unlink(uuid, name)
            with open(self.path(uuid, "disks"), "w") as f:
                for disk in spec["disks"]:
                    major, minor = self._loop(disk["path"])
                    f.write(f"{disk['device']} {major} {minor} {self._serial(disk['path'])}\n")
            self._unlink(uuid, "cgroup")
            groups = self._cgroups(uuid)
            with locked(NETWORK_LOCK):
                for group in groups:
                    _make_group(group)
            with open(self.path(uuid, "cgroup"), "w") as f:
                f.write("\n".join(groups))
            console = open(self.path(uuid, "console.log"), "ab")  # noqa: SIM115 - closed when the process has it
            process = subprocess.Popen(
                [
                    "sh",
                    "-c",
                    'for group in $1; do echo $$ > "$group/cgroup.procs"; done; shift; exec "$@"',
                    "sh",
                    " ".join(groups),
                    "unshare",
                    "--fork",
                    "--mount",
                    "--pid",
                    "--uts",
                    "--ipc",
                    "--cgroup",
                    "--net",
                    self.boot,
                    self.path(uuid),
                    spec["base"],
                    spec["hostname"],
                ],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
                cwd="/",
                close_fds=True,
            )
            console.close()
            try:
                pid = self._wait_pid(uuid, process)
                self._ip(pid, "link set lo up")
                for nic in spec["nics"]:
                    self._plug(pid, nic, first=nic is spec["nics"][0])
                open(self.path(uuid, "go"), "w").close()
            except Exception:
                process.kill()
                self.kill(uuid)
                raise
            threading.Thread(target=self._watch, args=(uuid, process), name=f"machine-{uuid}", daemon=True).start()

    def _wait_pid(self, uuid, process):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            pid = self.pid(uuid)
            if pid:
                return pid
            if process.poll() is not None:
                break
            time.sleep(0.02)
        with open(self.path(uuid, "console.log"), errors="replace") as f:
            raise MachineError("did not start: " + f.read()[-500:])

    def _watch(self, uuid, process):
        code = process.wait()
        # The kernel ends a PID namespace with SIGHUP for reboot(2) restart,
        # and with SIGINT for halt and power-off.
        if code in (-signal.SIGHUP, 128 + signal.SIGHUP) and self.exists(uuid):
            try:
                self.start(uuid)
            except Exception:
                LOG.exception("machine %s did not restart", uuid)

    def shutdown(self, uuid, timeout):
        """Ask init to power off; whether it did in time."""
        pid = self.pid(uuid)
        if pid:
            self.freeze(uuid, False)
            os.kill(pid, signal.SIGRTMIN + 4)  # systemd: poweroff.target
        deadline = time.monotonic() + timeout
        while self.pid(uuid):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def kill(self, uuid):
        """Cut the power."""
        pid = self.pid(uuid)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.freeze(uuid, False)
            deadline = time.monotonic() + 10
            while self.pid(uuid):
                if time.monotonic() > deadline:
                    raise MachineError(f"process {pid} does not end")
                time.sleep(0.02)

    def stop(self, uuid, timeout=0):
        with self.lock(uuid):
            if timeout:
                self.shutdown(uuid, timeout)
            self.kill(uuid)
            spec = self.load(uuid)
            for nic in spec["nics"]:
                self.bridges.unplug(nic)
            for disk in spec["disks"]:
                self._unloop(uuid, disk["path"])
            self._remove_cgroups(uuid)

    def destroy(self, uuid):
        with self.lock(uuid):
            if self.exists(uuid):
                self.stop(uuid)
            shutil.rmtree(self.path(uuid), ignore_errors=True)
        with self._locks_lock:
            self._locks.pop(uuid, None)

    def freeze(self, uuid, frozen):
        path = os.path.join(self._cgroup(uuid), "cgroup.freeze")
        try:
            with open(path, "w") as f:
                f.write("1" if frozen else "0")
        except FileNotFoundError:
            if frozen:
                raise MachineError("not running") from None

    def _remove_cgroups(self, uuid):
        groups = self._cgroups(uuid)
        deadline = time.monotonic() + 3
        while any(map(os.path.isdir, groups)):
            for group in groups:
                for path, _, _ in os.walk(group, topdown=False):
                    with contextlib.suppress(OSError):
                        os.rmdir(path)
            if time.monotonic() > deadline:
                LOG.warning("%s are left", groups)
                return
            time.sleep(0.02)
        with locked(NETWORK_LOCK):
            for group in groups:
                with contextlib.suppress(OSError):  # other machines run
                    os.rmdir(os.path.dirname(group))

    def _unlink(self, uuid, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(uuid, name))

    # -- network ----------------------------------------------------------
    @staticmethod
    def _ip(pid, command):
        """Run `ip` in the machine's network namespace."""
        run("nsenter", f"--net=/proc/{pid}/ns/net", "ip", *command.split())

    def _plug(self, pid, nic, first):
        self.bridges.plug(nic, pid)
        device = nic["device"]
        self._ip(pid, f"link set {device} mtu {nic['mtu']} up")
        for address in nic["addresses"]:
            version = ipaddress.ip_interface(address).version
            self._ip(pid, f"addr add {address} dev {device} " + ("nodad" if version == 6 else "brd +"))
        for target, via in nic["routes"]:
            version = ipaddress.ip_address(via).version
            if target != "default" or first:
                self._ip(pid, f"-{version} route replace {target} via {via}")

    def attach_nic(self, uuid, nic):
        with self.lock(uuid):
            spec = self.load(uuid)
            used = {n["device"] for n in spec["nics"]}
            device = next(d for d in (f"eth{i}" for i in range(100)) if d not in used)
            nic = dict(nic, device=device)
            pid = self.pid(uuid)
            if pid:
                self._plug(pid, nic, first=not spec["nics"])
            spec["nics"].append(nic)
            self._save(uuid, spec)

    def detach_nic(self, uuid, nic_id):
        with self.lock(uuid):
            spec = self.load(uuid)
            for nic in [n for n in spec["nics"] if n["id"] == nic_id]:
                spec["nics"].remove(nic)
                self._save(uuid, spec)
                self.bridges.unplug(nic)

    # -- disks ------------------------------------------------------------
    @staticmethod
    def _loop(path):
        """The loop device of a file, made if there is none: its numbers.

        One that was taken from a machine while mounted stays until that machine is gone, and is nobody else's.
        """
        found = run("losetup", "--noheadings", "--output", "NAME,AUTOCLEAR", "--associated", path).split()
        kept = [name for name, leaving in zip(found[::2], found[1::2], strict=True) if leaving == "0"]
        name = kept[0] if kept else run("losetup", "--find", "--show", path).strip()
        device = os.stat(name).st_rdev
        return os.major(device), os.minor(device)

    @staticmethod
    def _serial(path):
        """What a virtio disk tells of its volume's id: 20 characters."""
        return os.path.basename(path).removeprefix("volume-")[:20]

    def _unloop(self, uuid, path):
        """Unless another machine that runs has the disk, too; those of the other hosts are in directories beside."""
        for directory in glob.glob(os.path.join(self.directory, "../../*/machines")):
            others = Machines(directory, self.boot)
            if any(other != uuid and others._runs_with(other, path) for other in others.list()):
                return
        for name in run("losetup", "--noheadings", "--output", "NAME", "--associated", path, check=False).split():
            run("losetup", "--detach", name, check=False)

    def _runs_with(self, uuid, path):
        try:
            return self.pid(uuid) is not None and path in [disk["path"] for disk in self.load(uuid)["disks"]]
        except FileNotFoundError:  # destroyed meanwhile
            return False

    def attach_disk(self, uuid, device, path):
        with self.lock(uuid):
            spec = self.load(uuid)
            pid = self.pid(uuid)
            if pid:
                node = f"/proc/{pid}/root/dev/{device}"
                if os.path.exists(node):
                    os.unlink(node)
                os.mknod(node, stat.S_IFBLK | 0o660, os.makedev(*self._loop(path)))
                link = f"/proc/{pid}/root/dev/disk/by-id/virtio-{self._serial(path)}"
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(link)
                os.symlink(f"../../{device}", link)
            spec["disks"] = [d for d in spec["disks"] if d["device"] != device]
            spec["disks"].append({"device": device, "path": path})
            self._save(uuid, spec)

    def detach_disk(self, uuid, path):
        with self.lock(uuid):
            if self.exists(uuid):
                spec = self.load(uuid)
                pid = self.pid(uuid)
                for disk in [d for d in spec["disks"] if d["path"] == path]:
                    spec["disks"].remove(disk)
                    if pid:
                        self._pull_out(pid, f"/proc/{pid}/root/dev/{disk['device']}")
                        with contextlib.suppress(OSError):
                            os.unlink(f"/proc/{pid}/root/dev/{disk['device']}")
                            os.unlink(f"/proc/{pid}/root/dev/disk/by-id/virtio-{self._serial(path)}")
                self._save(uuid, spec)
            self._unloop(uuid, path)

    @staticmethod
    def _pull_out(pid, node):
        """As a disk that leaves a running machine: file systems on it write nothing any more."""
        with contextlib.suppress(OSError):
            number = os.stat(node).st_rdev
            with open(f"/proc/{pid}/mountinfo") as f:
                mounted = [line.split() for line in f]
            for words in mounted:
                if words[2] == f"{os.major(number)}:{os.minor(number)}":
                    place = os.open(f"/proc/{pid}/root{words[4]}", os.O_RDONLY)
                    try:
                        fcntl.ioctl(place, FS_IOC_SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
                    finally:
                        os.close(place)

    def resize_disk(self, path):
        for name in run("losetup", "--noheadings", "--output", "NAME", "--associated", path).split():
            run("losetup", "--set-capacity", name)

    # -- inside -----------------------------------------------------------
    def execute(self, uuid, *command, stdin=None):
        """Run a command inside; its output."""
        pid = self.pid(uuid)
        if not pid:
            raise MachineError("not running")
        return run("nsenter", "--target", str(pid), "--all", "--", *command, stdin=stdin)

    def console(self, uuid, size=65536):
        out = []
        for path in (self.path(uuid, "console.log"), self.path(uuid, "upper/var/log/cloud-init-output.log")):
            try:
                with open(path, "rb") as f:
                    f.seek(max(0, os.path.getsize(path) - size))
                    out.append(f.read())
            except OSError:
                pass
        return b"".join(out)


def main(argv):
    logging.basicConfig(format="%(levelname)s %(message)s")
    usage = f"usage: {argv[0]} DIRECTORY list|stop-all|destroy-all"
    if len(argv) != 3:
        sys.exit(usage)
    machines = Machines(argv[1], None)
    for uuid in machines.list():
        if argv[2] == "list":
            spec = machines.load(uuid)
            addresses = [a for n in spec["nics"] for a in n["addresses"]]
            print(uuid, machines.state(uuid), machines.pid(uuid) or "-", spec["hostname"], *addresses)
        elif argv[2] == "stop-all":
            machines.stop(uuid)
        elif argv[2] == "destroy-all":
            machines.destroy(uuid)
        else:
            sys.exit(usage)


if __name__ == "__main__":
    main(sys.argv)
