"""Where nodes get their programs from, and by which way: the image, packages, files; Helm; a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from slipway.cluster.schema import ListOf, Parameters, Refusal
from slipway.cluster.values import (
    Secret,
    choice,
    flag,
    matching,
    network,
    no_proxy_list,
    package_path,
    proxy_url,
    sha256,
    url,
)
from slipway.cluster.versions import SYNTAX

NEEDED_FILES = ("kubeadm", "kubelet", "kubectl")
OTHER_FILES = ("containerd", "runc", "cni-plugins", "crictl", "images")


class SourceFile(Parameters, frozen=True, kw_only=True):
    """One program, or the archive of images: from a URL or from the package, never without its digest."""

    name: Annotated[str, choice(*NEEDED_FILES, *OTHER_FILES)]
    url: Annotated[str | None, url] = None
    path: Annotated[str | None, package_path] = None
    sha256: Annotated[str, sha256]

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        yield from _one_of_url_and_path(given)


class SourceParameters(Parameters, frozen=True, kw_only=True):
    kind: Annotated[str, choice("image", "packages", "files")] = "image"
    repository: Annotated[str | None, url] = None
    signing_key_path: Annotated[str | None, package_path] = None
    allow_unsigned: Annotated[bool, flag] = False
    files: Annotated[tuple[SourceFile, ...], ListOf(SourceFile)] = ()

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        kind = given.get("kind", "image")
        wanted = {"packages": {"repository", "signing_key_path", "allow_unsigned"}, "files": {"files"}}.get(kind, set())
        for name in sorted(set(given) - wanted - {"kind"}):
            yield name, Refusal(f"it has no meaning when kind is {kind}", "leave it out or change kind")
        if kind == "packages":
            yield from _packages(given)
        if kind == "files":
            yield from _files(given.get("files", ()))


class HelmInstallation(Parameters, frozen=True, kw_only=True):
    install: Annotated[bool, flag] = True
    version: Annotated[str | None, matching(SYNTAX, "a version of Helm", "write it like 3.19.0")] = None
    url: Annotated[str | None, url] = None
    path: Annotated[str | None, package_path] = None
    sha256: Annotated[str | None, sha256] = None

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        if given.get("install", True) or ("url" in given and "path" in given):
            yield from _one_of_url_and_path(given)
        if ("url" in given or "path" in given) and "sha256" not in given:
            yield "sha256", Refusal("it is missing for a program from elsewhere", "give the archive's SHA-256 digest")


class ProxyParameters(Parameters, frozen=True, kw_only=True):
    """`k8s_node_cidr` is the nodes' network, which is reached without the proxy."""

    http_proxy: Annotated[Secret | None, proxy_url] = None
    https_proxy: Annotated[Secret | None, proxy_url] = None
    no_proxy: Annotated[str | None, no_proxy_list] = None
    k8s_node_cidr: Annotated[str | None, network] = None


def _one_of_url_and_path(given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
    if ("url" in given) == ("path" in given):
        yield "url", Refusal("exactly one of url and path is wanted", "say where the file comes from, once")


def _packages(given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
    if "repository" not in given:
        yield "repository", Refusal("it is missing for kind packages", "give the URL of the package repository")
    if "signing_key_path" in given and given.get("allow_unsigned"):
        yield "allow_unsigned", Refusal("it contradicts signing_key_path", "give one of them")


def _files(files: tuple[SourceFile, ...]) -> Iterator[tuple[str, Refusal]]:
    names = [file.name for file in files]
    if missing := [name for name in NEEDED_FILES if name not in names]:
        yield "files", Refusal(f"there is no entry for {', '.join(missing)}", "name each of them once")
    if len(set(names)) != len(names):
        yield "files", Refusal("a file is there twice", "name each of them once")
