"""Errors of an API server: a code, and a Status that gives the reasons, in the words of a real one."""

from __future__ import annotations

import json

from slipway.kube.interface import Object
from slipway.simulator.cluster.api.kinds import Kind


class ApiError(Exception):
    def __init__(self, code: int, reason: str, message: str, causes: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.code = code
        status: Object = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        status |= {"message": message, "reason": reason, "details": {"causes": causes or []}}
        self.body = json.dumps(status).encode()


class NoSuchPath(ApiError):
    """Answered by no group, so it is not a Status either."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found")
        self.body = b"404 page not found\n"


def no_such_resource() -> ApiError:
    """In a group that there is."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def not_found(kind: Kind, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{kind.full} "{name}" not found')


def already_exists(kind: Kind, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{kind.full} "{name}" already exists')


def modified(kind: Kind, name: str) -> ApiError:
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {kind.full} "{name}": the object has been modified; please apply your '
        "changes to the latest version and try again",
    )


def uid_mismatch(kind: Kind, name: str, wanted: str, found: str) -> ApiError:
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {kind.full} "{name}": the UID in the precondition ({wanted}) does not match '
        f"the UID in record ({found}). The object might have been deleted and then recreated",
    )


def version_mismatch(kind: Kind, name: str, wanted: str, found: str) -> ApiError:
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {kind.full} "{name}": the ResourceVersion in the precondition '
        f"({wanted}) does not match the ResourceVersion in record ({found}). The object might have been modified",
    )


def invalid(kind: Kind, name: str, field: str, why: str) -> ApiError:
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return ApiError(422, "Invalid", f'{kind.name} "{name}" is invalid: {field}: {why}', causes)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def too_short(seconds: int) -> ApiError:
    """Of the time that a token is asked for."""
    field, why = "spec.expirationSeconds", f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    return ApiError(422, "Invalid", f'TokenRequest.authentication.k8s.io "" is invalid: {field}: {why}', causes)
