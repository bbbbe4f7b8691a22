"""The receiver of credentials: a web server of the user's, told by HTTPS POST (docs/cluster-api.md has the contract).

What is sent is never logged, and no error repeats a word of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.cluster.cluster_api.credentials import WorkloadCluster
from slipway.model.errors import OutgoingRequestError, StepError
from slipway.outgoing.guard import Guard
from slipway.outgoing.oauth2 import ClientCredentials, TokenCache, TokenError, is_token
from slipway.waiting import Backoff

if TYPE_CHECKING:
    import httpx

Pauses = tuple[float, float]  # seconds between two attempts: the first, and the longest
PAUSES: Pauses = (1.0, 30.0)
TRY_AGAIN = frozenset({408, 425, 429})  # beside all of 5xx
CURE = "see that the receiver runs and answers with 2xx, then retry the operation."


@dataclass(frozen=True)
class Receiver:
    """Where credentials go, secrets in clear: made for one step."""

    url: str
    ca: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    bearer_token: str | None = field(default=None, repr=False)
    oauth2: ClientCredentials | None = None
    timeout: float = 30.0
    attempts: int = 5


class RefusedByReceiver(Exception):
    """Why an attempt failed, for a person. `temporary`: another may succeed."""

    def __init__(self, reason: str, *, temporary: bool) -> None:
        super().__init__(reason)
        self.temporary = temporary


def message(instance_id: str, operation_id: str | None, cluster: WorkloadCluster, digest: str) -> dict[str, Any]:
    """The body: what a receiver needs to register a VIM, and the kubeconfig itself. No operation: between two."""
    found = cluster.credentials
    user = {"clientCertificate": found.client_certificate, "clientKey": found.client_key, "bearerToken": found.token}
    return {
        "vnfInstanceId": instance_id,
        **({"vnfLcmOpOccId": operation_id} if operation_id else {}),
        "credentialsId": digest,
        "cluster": {"name": cluster.name, "namespace": cluster.namespace},
        "server": found.server,
        **({"tlsServerName": found.server_name} if found.server_name else {}),
        "certificateAuthority": found.ca,
        **{name: value for name, value in user.items() if value},
        "kubeconfig": cluster.kubeconfig,
    }


async def send(
    guard: Guard,
    to: Receiver,
    body: dict[str, Any],
    digest: str,
    project: str,
    pauses: Pauses = PAUSES,
    cure: str = CURE,
) -> None:
    """The same digest is the same content: a receiver that has it may answer at once."""
    backoff = Backoff(*pauses, factor=2.0, jitter=True)
    for attempt in range(1, to.attempts + 1):
        try:
            await _attempt(guard, to, body, digest, project)
        except RefusedByReceiver as refused:
            if not refused.temporary or attempt == to.attempts:
                tried = f" ({attempt} attempts)" if attempt > 1 else ""
                raise StepError(f"The credentials were not delivered: {refused}{tried}.", cure=cure) from None
            await backoff.pause()
        else:
            return


async def _attempt(guard: Guard, to: Receiver, body: dict[str, Any], digest: str, project: str) -> None:
    import httpx

    place = _place(to.url)
    try:
        async with (
            asyncio.timeout(to.timeout),
            guard.client(timeout=to.timeout, verify=to.ca or True) as client,
            client.stream(
                "POST",
                to.url,
                content=msgspec.json.encode(body),
                headers={"Content-Type": "application/json", "Idempotency-Key": digest, **_bearer(to)},
                auth=_auth(to, client, project),
            ) as response,
        ):
            status = response.status_code
    except TokenError as error:
        gave = "gave no token" if error.status == httpx.codes.OK else f"answered {error.status}"
        raise RefusedByReceiver(
            f"the token endpoint {_place(error.token_url)} {gave}", temporary=_try_again(error.status)
        ) from None
    except OutgoingRequestError as error:
        raise RefusedByReceiver(error.detail.rstrip("."), temporary=error.temporary) from None
    except (TimeoutError, httpx.TimeoutException):
        raise RefusedByReceiver(f"{place} did not answer within {to.timeout:g} s", temporary=True) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RefusedByReceiver(f"{place} cannot be reached: {_reason(error)}", temporary=True) from None
    if not 200 <= status < 300:
        raise RefusedByReceiver(f"{place} answered {status} instead of 2xx", temporary=_try_again(status))


def _auth(to: Receiver, client: httpx.AsyncClient, project: str) -> httpx.Auth | tuple[str, str] | None:
    if to.oauth2:
        from slipway.outgoing.bearer_auth import BearerAuth

        return BearerAuth(TokenCache(), f"{project}\n{to.url}", to.oauth2, client)
    return (to.username, to.password) if to.username is not None and to.password is not None else None


def _bearer(to: Receiver) -> dict[str, str]:
    if to.bearer_token is None:
        return {}
    if not is_token(to.bearer_token):
        raise RefusedByReceiver("its bearer_token has characters that no token has", temporary=False)
    return {"Authorization": f"Bearer {to.bearer_token}"}


def _try_again(status: int) -> bool:
    return status in TRY_AGAIN or status >= 500


def _reason(error: Exception) -> str:
    """A certificate that is not trusted is said so: all else by its kind."""
    said = str(error)
    return (
        said[said.index("CERTIFICATE_VERIFY_FAILED") :][:150]
        if "CERTIFICATE_VERIFY_FAILED" in said
        else (type(error).__name__)
    )


def _place(url: str) -> str:
    """Without the query, which may hold a secret."""
    return url.partition("?")[0][:200]
