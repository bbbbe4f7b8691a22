"""Every error Slipway raises on purpose, in one tree.

    SlipwayError
    ├── RequestError                what a caller asked can't be done; carries its HTTP status
    │   ├── BadRequest        400   the body, a parameter or a filter is wrong
    │   ├── Unauthorized      401   no token, or not one of ours
    │   ├── Forbidden         403
    │   ├── NotFound          404
    │   ├── NotAcceptable     406
    │   ├── TooSlow           408
    │   ├── Conflict          409   right request, wrong moment
    │   ├── PreconditionFailed 412  the resource changed since it was read
    │   ├── TooLarge          413
    │   ├── UnsupportedMediaType 415
    │   ├── RangeNotSatisfiable 416
    │   ├── Unprocessable     422   understood, but it names something that can't be used
    │   ├── PackageError      422   a package is broken or hostile: file, line, cure
    │   └── Unavailable       503   a service that must be asked first does not answer
    ├── StepError                   a step did not do its work; `temporary` says whether trying again may help
    │   ├── VimError                ... because of the VIM: temporary, permanent, quota or auth
    │   └── KubeError               ... because of a Kubernetes API (kube/errors.py)
    ├── OutgoingRequestError        a request to an address that was given may not be made, or its answer not be taken
    │   └── DownloadError           ... of a package's content (onboarding/download.py)
    ├── LeaseLost                   another worker owns this operation now: stop at once
    └── SettingsError               Slipway itself is set up wrongly

Each says what was tried, what came back and what to do next, and becomes one ProblemDetails everywhere.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class ProblemDetails(msgspec.Struct, omit_defaults=True, rename="camel", frozen=True):
    """RFC 7807, as SOL013 wants it: `status` and `detail` always present."""

    status: int
    detail: str
    title: str | None = None
    type: str | None = None
    instance: str | None = None
    user_script_err_handling_data: dict[str, Any] | None = None  # of an operation: what a script wants at the next try


class SlipwayError(Exception):
    """The root. `detail` is one or two sentences for a person."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    @property
    def problem(self) -> ProblemDetails:
        return ProblemDetails(status=500, title="Internal error", detail=self.detail)


class RequestError(SlipwayError):
    status = 400
    title = "Bad Request"

    @property
    def problem(self) -> ProblemDetails:
        return ProblemDetails(status=self.status, title=self.title, detail=self.detail)


class BadRequest(RequestError):
    pass


class Unauthorized(RequestError):
    status = 401
    title = "Unauthorized"


class Forbidden(RequestError):
    status = 403
    title = "Forbidden"


class NotFound(RequestError):
    status = 404
    title = "Not Found"


class NotAcceptable(RequestError):
    status = 406
    title = "Not Acceptable"


class TooSlow(RequestError):
    status = 408
    title = "Request Timeout"


class Conflict(RequestError):
    status = 409
    title = "Conflict"


class PreconditionFailed(RequestError):
    status = 412
    title = "Precondition Failed"


class TooLarge(RequestError):
    status = 413
    title = "Payload Too Large"


class UnsupportedMediaType(RequestError):
    status = 415
    title = "Unsupported Media Type"


class RangeNotSatisfiable(RequestError):
    status = 416
    title = "Range Not Satisfiable"

    def __init__(self, detail: str, size: int) -> None:
        super().__init__(detail)
        self.size = size


class Unprocessable(RequestError):
    status = 422
    title = "Unprocessable Content"


class PackageError(Unprocessable):
    """What is wrong with a package, where, and how to correct it."""

    title = "Package refused"

    def __init__(self, what: str, *, file: str | None = None, line: int | None = None, cure: str | None = None) -> None:
        self.what, self.file, self.line, self.cure = what, file, line, cure
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(f"{place}{what}" + (f" Cure: {cure}" if cure else ""))


class Unavailable(RequestError):
    status = 503
    title = "Service Unavailable"


class StepError(SlipwayError):
    """A step failed. The engine adds which step, on which node."""

    def __init__(
        self, detail: str, *, temporary: bool = False, cure: str | None = None, data: dict[str, Any] | None = None
    ) -> None:
        super().__init__(f"{detail} Cure: {cure}" if cure else detail)
        self.temporary = temporary
        self.data = data or {}  # stands in the journal as what the step left


class VimFault(StrEnum):
    """The kind of a VIM's failure. Only `temporary` ones are retried."""

    TEMPORARY = "temporary"
    PERMANENT = "permanent"
    QUOTA = "quota"
    AUTH = "auth"


class VimError(StepError):
    def __init__(self, detail: str, fault: VimFault, *, cure: str | None = None) -> None:
        super().__init__(detail, temporary=fault is VimFault.TEMPORARY, cure=cure)
        self.fault = fault


class OutgoingRequestError(SlipwayError):
    """Says which host and why. Whoever was given the address puts the field's name before it."""

    def __init__(self, detail: str, *, temporary: bool = False) -> None:
        super().__init__(detail)
        self.temporary = temporary


class LeaseLost(SlipwayError):
    pass


class SettingsError(SlipwayError):
    pass
