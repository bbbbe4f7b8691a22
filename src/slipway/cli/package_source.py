"""Where a package's content comes from: a file that is here, or an address that the server asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from slipway.cli.assignments import secrets
from slipway.cli.session import Session

Begin = Callable[[Session, str], None]  # makes the content come to the package at a path


def from_file(file: str | None, user: str | None, password_file: Path | None) -> Begin:
    for option, value in (("--user", user), ("--password-file", password_file)):
        if value is not None:
            raise typer.BadParameter("it goes with --from.", param_hint=option)
    if file is None or not Path(file).is_file():
        problem = f"there is no file {file}." if file else "name the CSAR, or where it is with --from."
        raise typer.BadParameter(problem, param_hint="FILE")
    return lambda session, path: session.client.upload(f"{path}/package_content", Path(file))


def from_url(url: str, user: str | None, password_file: Path | None) -> Begin:
    if password_file and not user:
        raise typer.BadParameter("it goes with --user.", param_hint="--password-file")
    body = {"addressInformation": url} | ({"userName": user} if user else {})
    if password_file:
        asked = "-" if str(password_file) == "-" else f"@{password_file}"
        body |= secrets([f"password={asked}"], "--password-file")[0]

    def begin(session: Session, path: str) -> None:
        session.client.post(f"{path}/package_content/upload_from_uri", body)
        session.output.note("The server fetches it.")

    return begin
