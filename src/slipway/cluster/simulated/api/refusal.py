"""How an API server says no: a code, and a Status that gives the reasons, in the words of a real one."""

from __future__ import annotations

import json

from slipway.cluster.simulated.api.kinds import Kind
from slipway.kube.seam import Object


class Refused(Exception):
    def __init__(self, code: int, reason: str, message: str, causes: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.code = code
        status: Object = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        status |= {"message": message, "reason": reason, "details": {"causes": causes or []}}
        self.body = json.dumps(status).encode()


class NoSuchPath(Refused):
    """Answered by no group, so it is not a Status either."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found")
        self.body = b"404 page not found\n"


def no_such_resource() -> Refused:
    """In a group that there is."""
    return Refused(404, "NotFound", "the server could not find the requested resource")


def not_found(kind: Kind, name: str) -> Refused:
    return Refused(404, "NotFound", f'{kind.full} "{name}" not found')


def already_exists(kind: Kind, name: str) -> Refused:
    return Refused(409, "AlreadyExists", f'{kind.full} "{name}" already exists')


def changed(kind: Kind, name: str) -> Refused:
    return Refused(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {kind.full} "{name}": the object has been modified; please apply your '
        "changes to the latest version and try again",
    )


def another(kind: Kind, name: str, wanted: str, found: str) -> Refused:
    return Refused(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {kind.full} "{name}": the UID in the precondition ({wanted}) does not match '
        f"the UID in record ({found}). The object might have been deleted and then recreated",
    )


def invalid(kind: Kind, name: str, field: str, why: str) -> Refused:
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return Refused(422, "Invalid", f'{kind.name} "{name}" is invalid: {field}: {why}', causes)


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def too_short(seconds: int) -> Refused:
    """Of the time that a token is asked for."""
    field, why = "spec.expirationSeconds", f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return Refused(422, "Invalid", f'TokenRequest.authentication.k8s.io "" is invalid: {field}: {why}', causes)
