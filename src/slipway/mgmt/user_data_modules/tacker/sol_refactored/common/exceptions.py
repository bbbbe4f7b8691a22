"""What helpers raise, and what user data of the second form may raise."""

from __future__ import annotations


class SolException(Exception):
    title = "User data failed"

    def __init__(self, *, sol_detail: str | None = None, **named: object) -> None:
        more = ", ".join(f"{name}={value}" for name, value in named.items())
        super().__init__(sol_detail or more or self.title)


class SolHttpError422(SolException):
    pass


class InvalidVnfdFormat(SolHttpError422):
    title = "The package has no VNFD in Definitions/"


class UserDataClassNotImplemented(SolHttpError422):
    title = "The class has no method of its own for this operation"


class DeltaMissingInVnfd(SolHttpError422):
    title = "The VNFD has no number of instances for a delta"
