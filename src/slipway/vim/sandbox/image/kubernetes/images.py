"""Which container images a node needs, from which programs: those of every node, and those of masters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from slipway.vim.sandbox.image.kubernetes import programs
from slipway.vim.sandbox.image.kubernetes.oci import Image, Layer, SymbolicLink, layer, layer_of
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.image.kubernetes.programs import HYPERKUBE, SERVERS
from slipway.vim.sandbox.image.kubernetes.versions import FLANNEL, REPOSITORY, TOOLS, Release

BIN = "usr/local/bin"


class Images:
    """The images of some releases. Layers are written to `work`, each once, when they are wanted."""

    def __init__(self, releases: Sequence[Release], program_cache: ProgramCache, tools: Path, work: Path) -> None:
        self._releases, self._program_cache, self._work = releases, program_cache, work
        self._built = program_cache.built
        self._tools = layer(tools, work / "tools.zst")
        self._layers: dict[str, Layer] = {}

    def of_nodes(self) -> list[Image]:
        flanneld = self._layer("flanneld", {"opt/bin/flanneld": self._built(programs.flannel())})
        plugin = self._layer("plugin", {"flannel": self._built(programs.flannel_plugin())})
        return [
            *(
                _image(
                    "kube-proxy",
                    f"v{one.version}",
                    [self._tools, self._server(one, "kube-proxy")],
                    f"/{BIN}/kube-proxy",
                )
                for one in self._releases
            ),
            *(self._pause(tag) for tag in sorted({one.pause for one in self._releases})),
            *(self._coredns(tag) for tag in sorted({one.coredns for one in self._releases})),
            _image("flannel", FLANNEL, [self._tools, flanneld], "/opt/bin/flanneld"),
            _image("flannel-cni-plugin", FLANNEL, [self._tools, plugin]),
            Image(f"{REPOSITORY}/tools:{TOOLS}", [self._tools], {"Cmd": ["/bin/sh"]}),
        ]

    def of_masters(self) -> list[Image]:
        """What they need more."""
        servers = [
            _image(name, f"v{one.version}", [self._scratch(), self._server(one, name)], f"/{BIN}/{name}")
            for one in self._releases
            for name in SERVERS[:3]
        ]
        return [*servers, *(self._etcd(version) for version in sorted({one.etcd for one in self._releases}))]

    def _scratch(self) -> Layer:
        return self._layer("scratch", {"tmp": None})

    def _server(self, release: Release, name: str) -> Layer:
        """One layer for all servers of a release if they are one program, so that a node has it once."""
        kubernetes = self._program_cache.kubernetes(release)
        if kubernetes.one_server is None:
            return self._layer(f"{name}-{release.version}", {f"{BIN}/{name}": kubernetes.files[name]})
        links: dict[str, Path | SymbolicLink | None] = {
            f"{BIN}/{server}": SymbolicLink(HYPERKUBE) for server in SERVERS
        }
        return self._layer(f"servers-{release.version}", {f"{BIN}/{HYPERKUBE}": kubernetes.one_server, **links})

    def _etcd(self, version: str) -> Image:
        newest = self._releases[-1].etcd  # its etcdctl speaks to older ones
        files = {f"{BIN}/etcd": programs.etcd(version), f"{BIN}/etcdctl": programs.etcdctl(newest)}
        layer = self._layer(f"etcd-{version}", {path: self._built(program) for path, program in files.items()})
        return _image("etcd", f"{version}-0", [self._scratch(), layer], f"/{BIN}/etcd")

    def _coredns(self, tag: str) -> Image:
        return _image(
            "coredns", tag, [self._layer("coredns", {"coredns": self._built(programs.coredns())})], "/coredns"
        )

    def _pause(self, tag: str) -> Image:
        program = self._layer("pause", {"pause": self._built(programs.pause())})
        return Image(f"{REPOSITORY}/pause:{tag}", [program], {"Entrypoint": ["/pause"], "User": "65535:65535"})

    def _layer(self, name: str, entries: Mapping[str, Path | SymbolicLink | None]) -> Layer:
        if name not in self._layers:
            self._layers[name] = layer_of(self._work / f"{name}.zst", entries)
        return self._layers[name]


def _image(name: str, tag: str, layers: list[Layer], program: str | None = None) -> Image:
    return Image(f"{REPOSITORY}/{name}:{tag}", layers, {"Entrypoint": [program]} if program else {})
