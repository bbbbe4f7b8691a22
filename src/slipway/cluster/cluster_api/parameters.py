"""What a package and a request say about a workload cluster: `cluster_api`, in a hook's inputs and in additionalParams.

The package may name the receiver of the credentials once for all its instances; a request goes before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from slipway.cluster.parameters import default_vim_name
from slipway.cluster.schema import Nested, Parameters, Refusal, read
from slipway.cluster.values import Secret, choice, name, secret, text, url, whole
from slipway.model.secrets import find_references
from slipway.outgoing.tls import RefusedPem, check_pem

NAME = "cluster_api"
PATH = f"additionalParams.{NAME}"
RECEIVER = "credentials_receiver"
PLACE = ("url", "ca_certificate")  # of a receiver: another one is another receiver
CLIENT_CERTIFICATE, SERVICE_ACCOUNT_TOKEN = "client_certificate", "service_account_token"
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s.*-----END CERTIFICATE-----\s*", re.DOTALL)


def https_url(value: Any) -> str:
    if not url(value).startswith("https://"):
        raise Refusal("credentials go by HTTPS only", "write it like https://receiver.example.com/credentials")
    return str(value)


def certificates(value: Any) -> str:
    """PEM of the authorities that a server's certificate may come from."""
    if not isinstance(value, str) or not _PEM.fullmatch(value.strip()):
        raise Refusal("it is no certificate", "give it as PEM, from -----BEGIN CERTIFICATE----- on")
    try:
        check_pem(value)
    except RefusedPem as error:
        raise Refusal(f"it {error.what}", error.cure) from None
    return value.strip() + "\n"


class OAuth2Parameters(Parameters, frozen=True, kw_only=True):
    """The grant by client credentials."""

    token_url: Annotated[str, https_url]
    client_id: Annotated[str, text]
    client_secret: Annotated[Secret, secret]


class ReceiverParameters(Parameters, frozen=True, kw_only=True):
    """`timeout` is for one attempt, in seconds; between attempts are pauses that grow."""

    url: Annotated[str, https_url]
    ca_certificate: Annotated[str | None, certificates] = None
    username: Annotated[str | None, text] = None
    password: Annotated[Secret | None, secret] = None
    bearer_token: Annotated[Secret | None, secret] = None
    oauth2: Annotated[OAuth2Parameters | None, Nested(OAuth2Parameters)] = None
    timeout: Annotated[int, whole(1, 120)] = 30
    attempts: Annotated[int, whole(1, 10)] = 5

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        if ("username" in given) != ("password" in given):
            missing = "password" if "username" in given else "username"
            yield missing, Refusal("it is missing beside the other half of the login", "give both or neither")
        if ":" in given.get("username", ""):
            yield "username", Refusal("it has a colon, which ends the name in basic authentication", "leave it out")
        ways = [way for way in ("username", "bearer_token", "oauth2") if given.get(way) is not None]
        if len(ways) > 1:
            yield ways[1], Refusal(f"{ways[0]} says another way to log in", "give one of them")


class VimParameters(Parameters, frozen=True, kw_only=True):
    """`access`: who Slipway is on the workload cluster."""

    name: Annotated[str | None, name] = None
    access: Annotated[str, choice(CLIENT_CERTIFICATE, SERVICE_ACCOUNT_TOKEN)] = CLIENT_CERTIFICATE


class WorkloadClusterParameters(Parameters, frozen=True, kw_only=True):
    credentials_receiver: Annotated[ReceiverParameters | None, Nested(ReceiverParameters)] = None
    register_vim: Annotated[VimParameters | None, Nested(VimParameters)] = None

    def vim_name_for(self, instance_id: str) -> str:
        return (self.register_vim and self.register_vim.name) or default_vim_name(instance_id)


def workload_document(inputs: Mapping[str, Any], stored: Mapping[str, Any], asked: Mapping[str, Any]) -> Any:
    """As it was written, secrets as references: the package, over it the instantiation, over it this request."""
    document: Any = {}
    for given in (inputs, stored, asked):
        document = _over(document, given.get(NAME))
    return document


def keeps_moved_login(stored: Any, given: Any, now: Any) -> bool:
    """Whether secrets of `stored` would go elsewhere by `now` than by `given`, all of them as they were written."""
    kept = set(find_references(_receiver(stored))) & set(find_references(_receiver(now)))
    place = place_of(now)
    return bool(kept) and place[0] is not None and place != place_of(given)


def place_of(document: Any) -> tuple[Any, ...]:
    """Which receiver a login is for, and who gives the tokens for it."""
    found = _receiver(document)
    oauth2 = found.get("oauth2")
    return *(found.get(name) for name in PLACE), oauth2.get("token_url") if isinstance(oauth2, dict) else None


def _receiver(document: Any) -> dict[str, Any]:
    found = document.get(RECEIVER) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def read_workload(document: Any) -> WorkloadClusterParameters:
    """BadRequest names every field that is wrong. What is wrong in a package a request can say right."""
    return read(WorkloadClusterParameters, document, PATH)


def _over(below: Any, above: Any) -> Any:
    if above is None:
        return below
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{part: _part_over(part, below.get(part), value) for part, value in above.items()}}


def _part_over(part: str, below: Any, above: Any) -> Any:
    """A login is for the receiver that it was given with: another URL or trusted authority leaves it behind.

    `oauth2` goes as a whole.
    """
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    moved = part == RECEIVER and any(above.get(name, below.get(name)) != below.get(name) for name in PLACE)
    return above if moved else {**below, **above}
