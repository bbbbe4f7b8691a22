"""The programs a cluster is made of, as what the Go toolchain is told to build."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from slipway.vim.sandbox.image.kubernetes.versions import COREDNS, FLANNEL, FLANNEL_PLUGIN, PAUSE, Release

GO = Path(__file__).parent / "go"
SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet")
COMMANDS = ("kubeadm", "kubectl")
HYPERKUBE = "hyperkube"  # all servers in one


@dataclass(frozen=True)
class Program:
    name: str
    module: str  # directory under `go`
    version: str  # of the pinned modules
    package: str = "."
    flags: tuple[str, ...] = ()  # for the linker
    main_from: str = ""  # module whose main.go is taken
    main_without: str = ""  # what stands in the lines of it that are left out
    note: str = ""  # how long it takes
    go: Path = field(default=GO, repr=False)  # where the pins are; the digest is of what is in them

    @property
    def pins(self) -> tuple[Path, Path]:
        base = self.go / self.module
        return base / f"{self.version}.mod", base / f"{self.version}.sum"

    @property
    def main(self) -> Path | None:
        """Our own main package."""
        path = self.go / self.module / "main.go"
        return path if path.exists() and self.package == "." else None

    @property
    def title(self) -> str:
        return f"{self.name} {self.version.removeprefix('v')}"

    @property
    def digest(self) -> str:
        digest = sha256(repr(self).encode())
        for file in (*self.pins, *filter(None, [self.main])):
            digest.update(b"\0" + file.read_bytes())
        return digest.hexdigest()[:12]


def servers(release: Release) -> Program:
    return Program(
        HYPERKUBE,
        "kubernetes",
        f"v{release.version}",
        flags=_version_flags(release),
        note="about 14 minutes of CPU the first time, cached afterwards",
    )


def command(release: Release, name: str) -> Program:
    """kubeadm, kubectl."""
    package = f"k8s.io/kubernetes/cmd/{name}"
    return Program(name, "kubernetes", f"v{release.version}", package, _version_flags(release))


def etcd(version: str) -> Program:
    return Program("etcd", "etcd", f"v{version}", "go.etcd.io/etcd/server/v3", note="a minute of CPU the first time")


def etcdctl(version: str) -> Program:
    return Program("etcdctl", "etcd", f"v{version}", "go.etcd.io/etcd/etcdctl/v3")


def coredns() -> Program:
    return Program("coredns", "coredns", COREDNS, note="some minutes of CPU the first time")


def flannel() -> Program:
    """Without its UDP backend, the one part that is written in C."""
    version = f"-X github.com/flannel-io/flannel/pkg/version.Version={FLANNEL}"
    source = "github.com/flannel-io/flannel"
    return Program("flanneld", "flannel", FLANNEL, ".", (version,), source, 'pkg/backend/udp"')


def flannel_plugin() -> Program:
    package = "github.com/containernetworking/plugins/plugins/meta/flannel"
    return Program("flannel", "flannel-cni", FLANNEL_PLUGIN, package)


def pause() -> Program:
    return Program("pause", "pause", PAUSE)


def _version_flags(release: Release) -> tuple[str, ...]:
    """What a release build tells its programs about themselves."""
    major, minor, _ = release.version.split(".")
    values = {
        "gitVersion": f"v{release.version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return tuple(f"-X {package}.{name}={value}" for package in packages for name, value in values.items())
