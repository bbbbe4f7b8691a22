"""Why a registry can't be used from a node, from what curl and containerd say: name, connection, TLS, login or image.

Pure: the commands are run by cluster/steps/registries.py.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote, urlsplit

from slipway.cluster.containerd_config import registry_url
from slipway.cluster.parameters import HTTPS, RegistryParameters
from slipway.model.errors import StepError
from slipway.remote.output import Result, readable

CHECK = "slipway-check:none"  # an image that no registry has: asking for it shows that there is a way to all others
CONNECT_SECONDS, WHOLE_SECONDS = 10, 30


class Trouble(StrEnum):
    NAME = "name resolution"
    CONNECTION = "connection"
    TLS = "TLS"
    LOGIN = "login"
    IMAGE = "image"


CURES = {
    Trouble.NAME: "give its address by hosts_string, or see that the node's DNS knows it.",
    Trouble.CONNECTION: "see that the registry runs, and that nodes reach it (routes, security groups, no_proxy); then "
    "retry.",
    Trouble.TLS: "give the CA of the registry's certificate by certificate_path, and call the registry as its "
    "certificate does.",
    Trouble.LOGIN: "correct username and password.",
    Trouble.IMAGE: "push the image, or name another one.",
}
_CURL: Mapping[int, tuple[Trouble, bool]] = {  # by exit code: what it was, and whether it may be gone the next time
    5: (Trouble.NAME, True),
    6: (Trouble.NAME, True),
    7: (Trouble.CONNECTION, True),
    28: (Trouble.CONNECTION, True),
    35: (Trouble.TLS, True),  # a handshake that was cut: the registry may just be starting
    51: (Trouble.TLS, False),
    52: (Trouble.CONNECTION, True),
    55: (Trouble.CONNECTION, True),
    56: (Trouble.CONNECTION, True),
    58: (Trouble.TLS, False),
    59: (Trouble.TLS, False),
    60: (Trouble.TLS, False),
    77: (Trouble.TLS, False),
}
_PLAIN_HTTP = re.compile(r"wrong version number|packet length too long|record layer failure|unexpected message", re.I)
_SAID = (  # what containerd says of a pull, most telling first
    (re.compile(r"no such host|server misbehaving|lookup \S+ on|Temporary failure in name"), Trouble.NAME, True),
    (re.compile(r"x509:|certificate|HTTP response to HTTPS"), Trouble.TLS, False),
    (re.compile(r"TLS handshake timeout|tls: |unexpected EOF|: EOF"), Trouble.TLS, True),
    (re.compile(r"\b401\b|\b403\b|unauthorized|authorization failed|authentication required|denied"),
     Trouble.LOGIN, False),
    (re.compile(r"connection refused|connection reset|i/o timeout|no route to host|network is unreachable|\b50[0-9]\b"
                r"|context deadline exceeded"), Trouble.CONNECTION, True),
    (re.compile(r"not found|manifest unknown|name unknown|no match for platform"), Trouble.IMAGE, False),
)  # fmt: skip
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,16384}")


class NoAccess(StepError):
    """`trouble`: at what it ended."""

    def __init__(
        self, registry: RegistryParameters, node: str, trouble: Trouble, said: str, *, temporary: bool
    ) -> None:
        what = f"{node} can't use the registry {registry.server} ({trouble}): {said.strip().rstrip('.')}."
        super().__init__(what, temporary=temporary, cure=CURES[trouble])
        self.trouble = trouble


@dataclass(frozen=True)
class RegistryResponse:
    """Of a registry: a status, and the challenge when it wants a login."""

    status: int
    challenge: str = ""
    body: str = field(default="", repr=False)


def curl_config(
    url: str, registry: RegistryParameters, certificate: str | None, proxy: Mapping[str, str], *, login: bool
) -> str:
    """For `curl --config -`: nothing of it is in an argument. Its output is the headers, and then the body."""
    options = {
        "url": url,
        "dump-header": "-",
        "connect-timeout": str(CONNECT_SECONDS),
        "max-time": str(WHOLE_SECONDS),
        "max-filesize": str(1 << 20),
        "proto": "=http,https",
        "proxy": proxy.get("HTTPS_PROXY" if url.startswith("https:") else "HTTP_PROXY", ""),
        "noproxy": proxy.get("NO_PROXY", ""),
    }
    if certificate is not None:
        options["cacert"] = certificate
    if registry.hosts_string:
        address, *names = registry.hosts_string.split(" ")
        port = _port(url)  # whoever gives the tokens may be at another one
        lines = [f'resolve = "{_quoted(f"{name}:{port}:{address}")}"' for name in names]
    else:
        lines = []
    if login and registry.username and registry.password:
        options["user"] = f"{registry.username}:{registry.password.opened(str)}"
    lines += [f'{name} = "{_quoted(value)}"' for name, value in options.items()]
    return "\n".join([*lines, "silent", "show-error", "globoff", ""])


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _port(url: str) -> int:
    """ValueError when that is none."""
    split = urlsplit(url)
    return split.port or (443 if split.scheme == "https" else 80)


def _can_be_asked(url: str) -> bool:
    try:
        return re.fullmatch(r"https?://[^\s\"'\\<>]+", url) is not None and _port(url) > 0
    except ValueError:
        return False


def read_answer(registry: RegistryParameters, node: str, result: Result) -> RegistryResponse:
    """NoAccess when there was none."""
    if not result.ok:
        said = _reason(result.stderr) or f"curl ended with {result.exit_code}"
        if result.exit_code == 35 and _PLAIN_HTTP.search(said):
            said += ", so the server speaks no TLS there: connection_type 0 is for HTTP"
            raise NoAccess(registry, node, Trouble.TLS, said, temporary=False)
        trouble, temporary = _CURL.get(result.exit_code, (Trouble.CONNECTION, False))
        raise NoAccess(registry, node, trouble, said, temporary=temporary)
    text = result.stdout.decode(errors="replace").replace("\r\n", "\n")
    head, _, body = text.partition("\n\n")
    while re.match(r"HTTP/\S+ 1\d\d|HTTP/\S+ 200 [Cc]onnection established", head) and body.startswith("HTTP/"):
        head, _, body = body.partition("\n\n")
    status = re.match(r"HTTP/\S+ (\d{3})", head)
    challenge = re.search(r"^www-authenticate:\s*(.+)$", head, re.MULTILINE | re.IGNORECASE)
    return RegistryResponse(int(status[1]) if status else 0, challenge[1].strip() if challenge else "", body)


def check_answer(registry: RegistryParameters, node: str, answer: RegistryResponse) -> str | None:
    """The URL of a token to ask for, if the registry wants one; else None, when all is well. NoAccess if it is not."""
    if answer.status == 200:
        return None
    if answer.status == 401 and answer.challenge.lower().startswith("bearer "):
        return _token_url(registry, node, answer.challenge)
    if answer.status in (401, 403):
        who = f"it refused the user {registry.username!r}" if registry.username else "it wants a login"
        raise NoAccess(registry, node, Trouble.LOGIN, f"{who} (HTTP {answer.status})", temporary=False)
    if answer.status == 400 and "HTTPS" in answer.body:
        said = "the server wants HTTPS there: connection_type 1"
        raise NoAccess(registry, node, Trouble.TLS, said, temporary=False)
    if answer.status >= 500:
        raise NoAccess(registry, node, Trouble.CONNECTION, f"it answered HTTP {answer.status}", temporary=True)
    said = f"{registry_url(registry)}/v2/ answered HTTP {answer.status}, as no registry does"
    raise NoAccess(registry, node, Trouble.CONNECTION, said, temporary=False)


def _token_url(registry: RegistryParameters, node: str, challenge: str) -> str:
    asked = dict(_CHALLENGE.findall(challenge))
    realm = asked.get("realm", "")
    if not _can_be_asked(realm):
        said = "it names no URL where tokens are given"
        raise NoAccess(registry, node, Trouble.LOGIN, said, temporary=False)
    if realm.startswith("http:") and registry.connection_type == HTTPS:
        said = "it wants the password to be sent elsewhere by HTTP, without TLS"
        raise NoAccess(registry, node, Trouble.TLS, said, temporary=False)
    repository = (registry.image or CHECK).rpartition(":")[0]
    scope = quote(f"repository:{repository}:pull", safe="")
    return f"{realm}{'&' if '?' in realm else '?'}service={quote(asked.get('service', ''), safe='')}&scope={scope}"


def token_of(registry: RegistryParameters, node: str, status: int, given: object) -> str:
    """Out of the answer of whoever gives tokens: a JSON document."""
    if status in (401, 403):
        raise NoAccess(registry, node, Trouble.LOGIN, f"no token for the user {registry.username!r}", temporary=False)
    found = (given.get("token") or given.get("access_token")) if isinstance(given, dict) else None
    if status != 200 or not isinstance(found, str) or not _TOKEN.fullmatch(found):
        said = f"whoever gives its tokens answered HTTP {status}"
        raise NoAccess(registry, node, Trouble.LOGIN, said, temporary=status >= 500)
    return found


def basic_authorization(registry: RegistryParameters) -> str | None:
    if registry.username is None or registry.password is None:
        return None
    login = f"{registry.username}:{registry.password.opened(str)}"
    return "Basic " + base64.b64encode(login.encode()).decode()


def pull_failed(registry: RegistryParameters, node: str, image: str, said: str) -> NoAccess:
    """What containerd said when it did not pull an image."""
    said = _last_word(said)
    plain = said.replace(image, "the image").replace(registry.server, "the registry")
    for pattern, trouble, temporary in _SAID:
        if pattern.search(plain):
            told = f"{image} can't be pulled: {_tail(said)}"
            return NoAccess(registry, node, trouble, told, temporary=temporary)
    # What nobody knows is no reason to believe that the registry was reached.
    return NoAccess(registry, node, Trouble.CONNECTION, f"{image} can't be pulled: {_tail(said)}", temporary=False)


def _last_word(said: str) -> str:
    """Of several lines (" | " is between them) the one that ends it: those before tell what was tried meanwhile."""
    found = [at for at in (said.rfind("ctr: "), said.rfind("FATA["), said.rfind("level=fatal")) if at >= 0]
    return said[max(found) :] if found else said


def _tail(said: str) -> str:
    return said[-500:].lstrip()


def _reason(printed: bytes) -> str:
    """Of what curl says: about certificates it goes on for some lines."""
    lines = [line.strip() for line in readable(printed).splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith("curl: ")), lines[-1] if lines else "")
    return told[:300].removeprefix("curl: ")
