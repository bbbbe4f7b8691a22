"""Errors of a Kubernetes API, for a person: what was asked, what came back, what to do."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from slipway.model.errors import StepError
from slipway.outgoing.responses import LONGEST, server_message

MOST = 600  # characters of what a server says
TAIL = 250  # of those, from the end of a message
_SHORTEST_SECRET = 4  # a shorter one would blank out half of any text

# An API server that has just started knows no roles yet, and refuses even the administrator whom kubeadm made.
_NO_ROLES_YET = 'User "kubernetes-admin" cannot '

# What server-side apply says of a manifest that does not fit the schema, with status 500; the other of a value that is
# of the right type and yet none: a quantity, a time, bytes as base64.
NOT_THE_SCHEMA = ("failed to create typed patch object", "failed to convert new object")
ASK_FOR_LESS = "ask for less, by a selector."
QUOTA = "exceeded quota:"
DENIED = re.compile(r"admission webhook .* denied the request|ValidatingAdmissionPolicy .* denied request")
_ACCOUNT = re.compile(r'\b[Uu]ser "')  # whom roles don't allow something; admission plugins name the object alone
BUDGET = "DisruptionBudget"
TERMINATING = "NamespaceTerminating"


@dataclass(frozen=True)
class Cause:
    """One of the reasons in a Status: `reason` for programs, `message` for people, and the field that it is about."""

    reason: str
    message: str
    field: str = ""


class KubeError(StepError):
    """`status` is None when there was no answer. `reason` and `causes` are those of the Status that came back."""

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        reason: str = "",
        causes: tuple[Cause, ...] = (),
        temporary: bool = False,
        cure: str | None = None,
    ) -> None:
        super().__init__(detail, temporary=temporary, cure=cure)
        self.status, self.reason, self.causes = status, reason, causes

    def cause(self, reason: str) -> Cause | None:
        return next((cause for cause in self.causes if cause.reason == reason), None)


class AnswerTooLarge(KubeError):
    """A single answer: a page of fewer objects may be small enough."""

    def __init__(self, asked: str, most: str) -> None:
        super().__init__(f"{asked}: the answer is larger than {most}.", cure=ASK_FOR_LESS)


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


def refused(asked: str, status: int, body: bytes, secrets: Iterable[str] = ()) -> KubeError:
    """From an answer other than 2xx. `asked` names verb, path and server."""
    said = _status(body)
    hidden = list(secrets)
    causes = said.details.causes if said.details and said.details.causes else []
    message = _ends(said.message or body.decode(errors="replace"), hidden) or "no reason given"
    return KubeError(
        f"{asked} was answered with {status}{f' {short(said.reason)}' if said.reason else ''}: {message}.",
        status=status,
        reason=said.reason,
        causes=tuple(
            Cause(short(cause.reason), _ends(cause.message, hidden), short(cause.field)) for cause in causes[:10]
        ),
        temporary=_is_temporary(status, said.message),
        cure=_cure(status, said.reason, said.message),
    )


def unreachable(asked: str, error: BaseException) -> KubeError:
    """No connection, or one that broke. A certificate that does not fit will not fit the next time either."""
    if isinstance(certificate := _root(error, ssl.SSLCertVerificationError), ssl.SSLCertVerificationError):
        return KubeError(
            f"{asked}: the server's certificate was not accepted: {short(certificate.verify_message)}.",
            cure="give this cluster's CA (/etc/kubernetes/pki/ca.crt), and a server name that is in its certificate.",
        )
    return KubeError(f"{asked}: {short(str(error)) or type(error).__name__}.", temporary=True)


def too_slow(asked: str, limit: float) -> KubeError:
    return KubeError(f"{asked} was not answered within {limit:g} s.", temporary=True)


def too_large(asked: str, most: str) -> KubeError:
    return KubeError(f"{asked}: the answer is larger than {most}.", cure=ASK_FOR_LESS)


def packed(asked: str) -> KubeError:
    """Unpacked, it could be of any size."""
    return KubeError(f"{asked}: the answer is compressed, which was not asked for.", cure="let it answer as asked.")


def not_kubernetes(asked: str, body: bytes) -> KubeError:
    return KubeError(
        f"{asked}: the answer is not a Kubernetes object: {short(body[:MOST].decode(errors='replace'))}",
        cure="give the address of the API server itself.",
    )


def unknown_kind(api_version: str, kind: str, server: str, served: Sequence[str] = ()) -> KubeError:
    """`served`: versions of the group that have the kind."""
    versions = short(", ".join(served))
    why = f"served versions: {versions}" if versions else "no CustomResourceDefinition there serves it"
    cure = (
        f"write one of these as apiVersion: {versions}; or install a CustomResourceDefinition that serves the other."
        if versions
        else "correct apiVersion and kind, or install the CustomResourceDefinition first."
    )
    return KubeError(
        f"{server} knows no {short(kind)} in {short(api_version)}; {why}.", status=404, reason="NotFound", cure=cure
    )


def short(text: str, secrets: Iterable[str] = ()) -> str:
    """A server's message on one line, bounded; secrets in it are masked."""
    return server_message(text, (one for one in secrets if len(one) >= _SHORTEST_SECRET), most=MOST)


def _ends(text: str, secrets: Iterable[str]) -> str:
    """As `short`, but of a long message the middle is left out: API servers put a whole object before what is wrong."""
    whole = server_message(text, (one for one in secrets if len(one) >= _SHORTEST_SECRET), most=LONGEST)
    return whole if len(whole) <= MOST else f"{whole[: MOST - TAIL]} … {whole[-TAIL:]}"


def secrets_of(body: Any) -> list[str]:
    """What a Secret holds: a server that refuses one may repeat it."""
    if not isinstance(body, dict) or body.get("kind") != "Secret":
        return []
    parts = [body.get(name) for name in ("data", "stringData")]
    return [value for part in parts if isinstance(part, dict) for value in part.values() if isinstance(value, str)]


def _status(body: bytes) -> _Status:
    """Not every answer is a Status: proxies and the API server's own filters answer with plain text."""
    try:
        return msgspec.json.decode(body, type=_Status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _Status()


def _is_temporary(status: int, message: str) -> bool:
    if status == 403:
        return _NO_ROLES_YET in message
    return (status == 429 or status >= 500) and not _is_of_the_schema(message)


def _is_of_the_schema(message: str) -> bool:
    return any(said in message for said in NOT_THE_SCHEMA)


def is_admission(status: int | None, message: str) -> bool:
    """A rule of the cluster refuses what was asked (PodSecurity, LimitRange, a policy), whoever asks for it."""
    return status == 403 and " is forbidden: " in message and not _ACCOUNT.search(message)


def _cure(status: int, reason: str, message: str) -> str | None:
    if _is_of_the_schema(message):
        return "correct the field that is named."
    if status == 403 and QUOTA in message:
        return "free some of the quota that is named, or have it raised."
    if status in (400, 403) and DENIED.search(message):
        return "correct what the admission webhook or policy names."
    if is_admission(status, message):
        return "correct what is named: a rule of the cluster refuses it, whoever asks."
    if status == 409:
        return (
            "remove the one that is there, or give another name."
            if reason == "AlreadyExists"
            else "it was changed in the meantime: try again."
        )
    return {
        401: "give credentials that this cluster knows; a token may have expired.",
        403: "let a role binding allow it to the user that is named.",
        404: "correct the name, or make it first.",
        405: "objects of this kind can't be kept: leave it out of the manifests.",
        415: "give a cluster whose API server knows server-side apply, as Kubernetes does from 1.22 on.",
        422: "correct the field that is named.",
    }.get(status)


def _root(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """The error behind an error, at most ten levels deep."""
    found: BaseException | None = error
    for _ in range(10):
        if found is None or isinstance(found, kind):
            break
        found = found.__cause__ or found.__context__
    return found
