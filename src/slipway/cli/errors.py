"""What can go wrong on this side of the wire, as a branch of Slipway's one tree of errors.

    SlipwayError
    └── CliError              exit code 1   the thing asked for failed
        ├── Refused           exit code 1   the server said no; carries its ProblemDetails
        ├── NotFound          exit code 1   nothing, or more than one thing, has this name
        ├── NotReachable      exit code 3   no server answers there
        └── NotAllowed        exit code 3   the server does not know the token (a Refused, too)

A wrong command line is Typer's own BadParameter: exit code 2.
"""

from __future__ import annotations

from typing import Any

from slipway.model.errors import SlipwayError


class CliError(SlipwayError):
    exit_code = 1

    @property
    def document(self) -> dict[str, Any]:
        """What `-o json` prints: a problem in the API's own shape."""
        return {"title": type(self).__name__, "detail": self.detail}


class Refused(CliError):
    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(str(problem["detail"]))
        self.status = int(problem["status"])
        self._problem = problem

    @property
    def document(self) -> dict[str, Any]:
        return self._problem


class ItemNotFound(CliError):
    pass


class NotReachable(CliError):
    exit_code = 3


class NotAllowed(Refused):
    exit_code = 3

    def __init__(self, problem: dict[str, Any], cure: str) -> None:
        super().__init__({**problem, "detail": f"{problem['detail']} {cure}"})


def exit_code(error: SlipwayError) -> int:
    return error.exit_code if isinstance(error, CliError) else 1


def document(error: SlipwayError) -> dict[str, Any]:
    if isinstance(error, CliError):
        return error.document
    problem = error.problem
    return {"status": problem.status, "title": problem.title, "detail": problem.detail}
