"""Readers of single values: what each kind of parameter may look like, and what to write instead.

A value that ends up in a command, a file or an address on a node is narrowed here, once, for all places that use it.
Refusals never repeat a value, unless its kind can't hold a secret.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any

from slipway.cluster.schema import Refusal, kind_of_value
from slipway.model.secrets import REFERENCE, is_reference

LONGEST = 4096
InstallNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
_SERVER = re.compile(rf"({_HOST}|\[[0-9A-Fa-f:.]+\])(?::([0-9]{{1,5}}))?")
_HOSTNAME = re.compile(_HOST)
_REPOSITORY = re.compile(rf"{_HOST}(?::[0-9]{{1,5}})?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_TAG = r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_IMAGE = re.compile(rf"{_PART}(?:/{_PART})*{_TAG}")
_PULLED = re.compile(rf"{_HOST}(?::[0-9]{{1,5}})?(?:/{_PART})+{_TAG}")
_URL = re.compile(r"https?://[^\s\"'<>\\^`{|}]+")
_PLAIN_URL = re.compile(r"https?://[^\s\"'<>\\^`{|}@/]+(?:/[^\s\"'<>\\^`{|}]*)?")  # all may read it: no login in it
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]{0,63}")
_PACKAGE_PATH = re.compile(r"[A-Za-z0-9_.@+][A-Za-z0-9_.@+-]*(?:/[A-Za-z0-9_.@+][A-Za-z0-9_.@+-]*)*")
_NODE_PATH = re.compile(r"(?:/[A-Za-z0-9_.@+-]+)+")
_SYSTEM = frozenset(  # with all below
    ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin", "sys", "tmp", "usr",
     "var/lock", "var/run", "var/spool/cron",
     *(f"var/lib/{name}" for name in ("apt", "cloud", "dpkg", "nfs", "private", "slipway", "systemd"))]
)  # fmt: skip
_SYSTEM_VAR = frozenset(["var", *(f"var/{name}" for name in ("cache", "lib", "log", "mail", "spool", "tmp"))])
_HOST_KEY = re.compile(r"(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) [A-Za-z0-9+/]{60,}={0,2}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Secret:
    """A secret, or a reference to a stored one. Opaque: only the step that uses it opens it, and it never prints."""

    __slots__ = ("_document",)

    def __init__(self, document: str | dict[str, str]) -> None:
        self._document = document

    @property
    def document(self) -> str | dict[str, str]:
        """What may stand in a step's arguments: the reference, or the text itself where it was given in clear."""
        return self._document

    def opened(self, value_of: Callable[[str], Any]) -> str:
        """`value_of` gives a stored secret by its id."""
        value = self._document if isinstance(self._document, str) else value_of(self._document[REFERENCE])
        if not isinstance(value, str):
            raise TypeError("a stored secret is not text")
        return value

    def __repr__(self) -> str:
        return "Secret(...)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._document == other._document

    def __hash__(self) -> int:
        return hash(str(self._document))


def text(value: Any) -> str:
    """One line of anything."""
    if not isinstance(value, str):
        raise Refusal(f"must be text, not {kind_of_value(value)}", "write it in quotes")
    if not value:
        raise Refusal("it is empty", "give it a value or leave it out")
    if len(value) > LONGEST:
        raise Refusal(f"it has {len(value)} characters", f"give at most {LONGEST}")
    if _CONTROL.search(value):
        raise Refusal("it has a line break or a control character in it", "write it on one line")
    return value


def name(value: Any) -> str:
    """What something in a VNFD or a VIM is called."""
    if len(text(value)) > 255:
        raise Refusal("it has more than 255 characters", "give the name as the VNFD or the VIM has it")
    return str(value)


def optional_text(value: Any) -> str | None:
    """Empty text says nothing, as packages for other managers write it."""
    return None if value == "" else text(value)


def secret(value: Any) -> Secret:
    """A password: one line."""
    return _secret(value, _CONTROL, LONGEST)


def key_text(value: Any) -> Secret:
    """A private key: its line breaks belong to it."""
    return _secret(value, _CONTROL_BUT_LINES, LONGEST * 4)


def _secret(value: Any, unwanted: re.Pattern[str], longest: int) -> Secret:
    if is_reference(value):
        return Secret(dict(value))
    if not isinstance(value, str) or not value:
        raise Refusal(f"must be text, not {'nothing' if value == '' else kind_of_value(value)}", "write it in quotes")
    if len(value) > longest:
        raise Refusal("it is too long", f"give at most {longest} characters")
    if unwanted.search(value):
        raise Refusal("it has a control character in it", "leave the control character out")
    return Secret(value)


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refusal(f"must be true or false, not {kind_of_value(value)}", "write true or false without quotes")
    return value


def whole(lowest: int, highest: int) -> Callable[[Any], int]:
    """A whole number, also as text: some documents write "1"."""

    def read(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value, re.ASCII):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refusal(f"must be a whole number, not {kind_of_value(value)}", f"give {lowest} to {highest}")
        if not lowest <= value <= highest:
            raise Refusal("the number is out of range", f"give {lowest} to {highest}")
        return value

    return read


def choice(*possible: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in possible or not isinstance(value, str):
            raise Refusal("unknown value", f"must be one of: {', '.join(possible)}")
        return value

    return read


def matching(pattern: re.Pattern[str], what: str, cure: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not pattern.fullmatch(text(value)):
            raise Refusal(f"it is not {what}", cure)
        return str(value)

    return read


def network(value: Any) -> str:
    """A network, host bits cleared: documents write 192.168.3.0/16 and mean 192.168.0.0/16."""
    given = text(value)
    try:
        made = ipaddress.ip_network(given, strict=False)
    except ValueError:
        raise Refusal("it is not a network", "write it like 192.168.0.0/16 or fd00:10::/56") from None
    if "/" not in given or made.prefixlen == 0 or "%" in given:
        raise Refusal("it is not a network with a usable size", "write it like 192.168.0.0/16 or fd00:10::/56")
    return str(made)


def address(value: Any) -> str:
    given = text(value)
    try:
        made = ipaddress.ip_address(given)
    except ValueError:
        raise Refusal("it is not an address", "write it like 10.10.0.5 or fd00::5") from None
    if "%" in given:  # behind it anything may stand
        raise Refusal(
            "it has a zone, which counts on one machine only", "write it like fd00::5, within the nodes' network"
        )
    if made.is_loopback or made.is_multicast or made.is_unspecified or made.is_link_local:
        raise Refusal("it is an address that no other machine reaches", "give an address of the nodes' network")
    return str(made)


def package_path(value: Any) -> str:
    """A file in the package: relative, within it."""
    given = text(value).removeprefix("./")
    if not _PACKAGE_PATH.fullmatch(given) or {".", ".."} & set(given.split("/")):
        raise Refusal("it is not a path within the package", "write it like Scripts/install.sh, without / before or ..")
    return given


def optional_package_path(value: Any) -> str | None:
    return None if value == "" else package_path(value)


def node_path(value: Any) -> str:
    """A directory on a node: absolute, without surprises."""
    if not _NODE_PATH.fullmatch(text(value)) or {".", ".."} & set(value.split("/")):
        raise Refusal("it is not an absolute path", "write it like /volume/nfs, without . or ..")
    return str(value)


def data_directory(value: Any) -> str:
    """A directory for data on a node: none that the system itself lives in."""
    if text(value).strip("/") == "":
        raise Refusal("it is all of the machine", "choose a directory for the data, like /volume")
    given = node_path(value)
    places = given.strip("/").split("/")
    if "/".join(places) in _SYSTEM_VAR or _SYSTEM & {"/".join(places[:depth]) for depth in (1, 2, 3)}:
        raise Refusal("the system itself lives there", "choose a directory for the data, like /volume")
    if places[0] == "home" and (len(places) <= 2 or places[2].startswith(".")):
        raise Refusal("users have the keys that let us in there", "choose a directory for the data, like /volume")
    return given


def proxy_url(value: Any) -> Secret:
    """It may hold a password, so it is a secret."""
    made = secret(value)
    if isinstance(made.document, str) and not _URL.fullmatch(made.document):
        raise Refusal("it is not the URL of a proxy", "write it like http://user:password@proxy.example:3128")
    return made


def server(value: Any) -> str:
    """host[:port]"""
    match = _SERVER.fullmatch(text(value))
    if not match or (match[2] and not 1 <= int(match[2]) <= 65535) or not _bracketed_is_address(match[1]):
        raise Refusal("it is not a server", "write it like registry.example.com or 192.168.0.10:5000, without http://")
    return str(value)


def hosts_line(value: Any) -> str:
    """`<address> <name> ...` as in /etc/hosts."""
    first, *names = text(value).split(" ")
    if not names or not all(_HOSTNAME.fullmatch(name) and len(name) <= 253 for name in names):
        raise Refusal("it is not a line of /etc/hosts", "write it like 192.168.0.20 registry.example.com")
    if any(name.lower() == "localhost" for name in names):
        raise Refusal("localhost is the node's own name for itself", "name the registry only")
    return " ".join([address(first), *names])


def no_proxy_list(value: Any) -> str | None:
    """Names, addresses and networks between commas."""
    given = optional_text(value)
    if given is not None and not re.fullmatch(r"[A-Za-z0-9.:/*_\[\], -]+", given):
        raise Refusal(
            "it is not a list of hosts and networks", "write it like 10.0.0.1,192.168.0.0/24,registry.example.com"
        )
    return given


def _bracketed_is_address(host: str) -> bool:
    if not host.startswith("["):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).version == 6
    except ValueError:
        return False


def registry_user(value: Any) -> str:
    """A user of a registry: HTTP sends name and password with a colon between them."""
    if ":" in text(value):
        raise Refusal("it has a colon in it, which no login by HTTP can have", "give the user's name alone")
    return str(value)


user = matching(_USER, "a user name", "write letters, digits and . _ - @, beginning with a letter")
host_key = matching(_HOST_KEY, "a host key", "write it like ssh-ed25519 AAAA..., without a comment")
sha256 = matching(_SHA256, "a SHA-256 digest", "write 64 hexadecimal digits in lower case")
url = matching(_PLAIN_URL, "a URL without a login", "write it like https://example.com/path")
host_name = matching(_HOSTNAME, "a host name", "write it like registry.example.com")
pulled_image = matching(_PULLED, "an image with its registry and tag", "write it like docker.io/library/registry:2")
image = matching(
    _IMAGE, "an image of that registry", "write it like tools/shell:1, with its tag and without the registry"
)
image_repository = matching(
    _REPOSITORY, "a place of images", "write it like registry.example.com/kubernetes, without https://"
)
