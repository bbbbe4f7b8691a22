"""`slipway package`: build and check packages here, upload and look after them there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from slipway.cli.assignments import assignments, secrets
from slipway.cli.errors import CliError, NotReachable, Refused
from slipway.cli.lookup import NAMED, find_package
from slipway.cli.output import Output, facts, short_time, table
from slipway.cli.paths import PACKAGE_WARNINGS, PACKAGES, item_path
from slipway.cli.session import Session, command
from slipway.model.package import PackageWarning

if TYPE_CHECKING:
    from slipway.package.reader import Package

app = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="PACKAGE", help="Its id, its VNFD's id, or the name it was given.")]
SHORTEST, LONGEST = 0.05, 1.0
Upload = Callable[[Session, str], None]  # of the content, to the package at a path


@command(
    app,
    "build",
    example="slipway package build samples/cluster-simulated -o cluster.csar",
    local=True,
    formats=False,
)
def build(
    session: Session,
    source: Annotated[Path, typer.Argument(metavar="DIR", help="The package's source tree.")],
    to: Annotated[Path, typer.Option("--to", "-o", metavar="FILE", help="The CSAR to write.")],
) -> None:
    """Make a CSAR from a source tree, and check it as the server would."""
    from slipway.package.build import build_package

    _show_local(session.output, _local(lambda: build_package(source, to)))


@command(app, "check", example="slipway package check cluster.csar", local=True)
def check(session: Session, file: Annotated[Path, typer.Argument(metavar="FILE", help="The CSAR to check.")]) -> None:
    """Check a CSAR here as the server would: structure, digests, signature, VNFD. Warnings do not refuse it."""
    from slipway.package.reader import read_package

    _show_local(session.output, _local(lambda: read_package(file)))


@command(app, "upload", example="slipway package upload cluster.csar --name cluster")
def upload(
    session: Session,
    what: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="The CSAR; with --from an empty package to fill, if not a new one."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name to call it by afterwards.")] = None,
    data: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="User defined data; repeatable.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="URL", help="Where the server gets the CSAR, instead of a file.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="Who the server is there; with --from.")] = None,
    password_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="That user's password; or FILE is -, to be asked.")
    ] = None,
) -> None:
    """Create a package, upload its content and wait until it can be used. A refused one is removed again."""
    own = assignments(data, "--data") | ({"name": name} if name else {})
    send = _from_file(what, user, password_file) if source is None else _from_url(source, user, password_file)
    filled = what if source else None
    if filled and own:
        raise typer.BadParameter("the package is there already.", param_hint="--name" if name else "--data")
    if filled:
        package = find_package(session.client, filled)
    else:
        package = session.client.post(PACKAGES, {"userDefinedData": own} if own else {}).body
    path = item_path(PACKAGES, package["id"])
    try:
        send(session, path)
        package = _onboarded(session, path)
    except (Refused, KeyboardInterrupt):
        if not filled:
            _remove_quietly(session, path)
        raise
    except NotReachable:
        session.output.note(f"Look at it when the server is back: slipway package show {package['id']}")
        raise
    _show(session, package)


@command(app, "list", example="slipway package list -o json")
def list_packages(session: Session) -> None:
    """All packages."""
    found = list(session.client.pages(PACKAGES, NAMED))
    columns = {"ID": "", "NAME": "bold", "PRODUCT": "", "VERSION": "", "VNFD": "", "STATE": "", "USE": ""}
    session.output.show(found, lambda: table(columns, (_row(package) for package in found)))


@command(app, "show", example="slipway package show cluster")
def show(session: Session, package: Name) -> None:
    """One package with all that is known about it."""
    found = find_package(session.client, package)
    _show(session, session.client.get(item_path(PACKAGES, found["id"])).body)


@command(app, "enable", example="slipway package enable cluster")
def enable(session: Session, package: Name) -> None:
    """Let new VNFs be made from it."""
    _set_state(session, package, "ENABLED")


@command(app, "disable", example="slipway package disable cluster")
def disable(session: Session, package: Name) -> None:
    """Let no new VNFs be made from it. Those that exist go on."""
    _set_state(session, package, "DISABLED")


@command(app, "delete", example="slipway package delete cluster")
def delete(session: Session, package: Name) -> None:
    """Remove a package that is disabled and not in use."""
    found = find_package(session.client, package)
    session.client.delete(item_path(PACKAGES, found["id"]))
    session.output.show({"id": found["id"], "deleted": True}, lambda: f"Deleted package {found['id']}.")


@command(app, "download", example="slipway package download cluster --to cluster.csar")
def download(
    session: Session,
    package: Name,
    to: Annotated[Path | None, typer.Option("--to", metavar="FILE", help="Where to write it; or ID.csar here.")] = None,
) -> None:
    """Fetch a package's content."""
    found = find_package(session.client, package)
    target = to or Path(f"{found['id']}.csar")
    size = session.client.download(item_path(PACKAGES, found["id"], "package_content"), target)
    session.output.show({"file": str(target), "size": size}, lambda: f"Wrote {target}, {size} bytes.")


def _onboarded(session: Session, path: str) -> dict[str, Any]:
    """Wait until the server has read the package, or CliError with its reason."""
    pause = SHORTEST
    while True:
        package: dict[str, Any] = session.client.get(path).body
        if package["onboardingState"] == "ONBOARDED":
            return package
        if failure := package.get("onboardingFailureDetails"):
            raise Refused({"status": 422, "detail": "The server does not say why."} | failure)
        session.environment.sleep(pause)
        pause = min(LONGEST, pause * 1.5)


def _remove_quietly(session: Session, path: str) -> None:
    """The reason for the removal is what the caller needs to see; a leftover is a note."""
    try:
        session.client.delete(path)
    except CliError as error:
        session.output.note(f"The empty package stays behind: {error.detail}")


def _set_state(session: Session, name: str, state: str) -> None:
    found = find_package(session.client, name)
    answer = session.client.patch(item_path(PACKAGES, found["id"]), {"operationalState": state}).body
    session.output.show(answer or {"operationalState": state}, lambda: f"Package {found['id']} is {state}.")


def _row(package: dict[str, Any]) -> tuple[object, ...]:
    return (
        package["id"],
        (package.get("userDefinedData") or {}).get("name"),
        package.get("vnfProductName"),
        package.get("vnfSoftwareVersion"),
        package.get("vnfdId"),
        f"{package['onboardingState']} {package['operationalState']}",
        package.get("usageState"),
    )


def _show(session: Session, package: dict[str, Any]) -> None:
    """With what is contradictory in it, which the standard's record has no attribute for."""
    warnings = session.client.get(item_path(PACKAGE_WARNINGS, package["id"], "warnings")).body
    session.output.show(package | ({"warnings": warnings} if warnings else {}), lambda: _facts(package, warnings))


def _facts(package: dict[str, Any], warnings: list[dict[str, Any]]) -> Any:
    product = (package.get("vnfProvider"), package.get("vnfProductName"), package.get("vnfSoftwareVersion"))
    failure = package.get("onboardingFailureDetails") or {}
    return facts(
        [
            ("Failure", failure.get("detail")),
            ("Package", package["id"]),
            ("Product", " ".join(str(part) for part in product if part)),
            ("VNFD", package.get("vnfdId")),
            ("VNFD version", package.get("vnfdVersion")),
            ("State", f"{package['onboardingState']} {package['operationalState']} {package['usageState']}"),
            ("User defined data", package.get("userDefinedData")),
            ("Checksum", (package.get("checksum") or {}).get("hash")),
            ("Images", ", ".join(sorted({str(image.get("name")) for image in package.get("softwareImages") or ()}))),
            ("Artifacts", len(package.get("additionalArtifacts") or ())),
            ("Created", short_time(package.get("createdAt"))),
            *_warnings(msgspec.convert(warnings, tuple[PackageWarning, ...])),
        ]
    )


def _warnings(warnings: tuple[PackageWarning, ...]) -> list[tuple[str, str]]:
    return [("Warning", str(warning)) for warning in warnings]


def _local(read: Any) -> Package:
    try:
        package: Package = read()
    except OSError as error:
        raise CliError(f"{error.filename or 'A file'} can't be used: {error.strerror}.") from None
    return package


def _show_local(output: Output, package: Package) -> None:
    descriptor = package.descriptor
    document = {
        "file": str(package.path),
        "vnfdId": descriptor.vnfd_id,
        "vnfProvider": descriptor.provider,
        "vnfProductName": descriptor.product_name,
        "vnfSoftwareVersion": descriptor.software_version,
        "vnfdVersion": descriptor.vnfd_version,
        "checksum": {"algorithm": package.checksum.algorithm, "hash": package.checksum.hash},
        "signed": package.signature is not None,
        "flavours": {
            name: {"levels": list(flavour.levels), "aspects": list(flavour.aspects), "vdus": list(flavour.vdus)}
            for name, flavour in descriptor.flavours.items()
        },
        "warnings": msgspec.to_builtins(package.warnings),
    }
    product = f"{descriptor.provider} {descriptor.product_name} {descriptor.software_version}"
    flavours = [
        (f"Flavour {name}", f"levels: {', '.join(one.levels) or 'none'}; aspects: {', '.join(one.aspects) or 'none'}")
        for name, one in descriptor.flavours.items()
    ]
    lines = [("File", document["file"]), ("Product", product), ("VNFD", descriptor.vnfd_id), *flavours]
    lines += [("Checksum", package.checksum.hash), ("Signed", "yes" if package.signature else "no")]
    lines += _warnings(package.warnings)
    output.show(document, lambda: facts(lines))


def _from_file(file: str | None, user: str | None, password_file: Path | None) -> Upload:
    for option, value in (("--user", user), ("--password-file", password_file)):
        if value is not None:
            raise typer.BadParameter("it goes with --from.", param_hint=option)
    if file is None or not Path(file).is_file():
        problem = f"there is no file {file}." if file else "name the CSAR, or where it is with --from."
        raise typer.BadParameter(problem, param_hint="FILE")
    return lambda session, path: session.client.upload(f"{path}/package_content", Path(file))


def _from_url(url: str, user: str | None, password_file: Path | None) -> Upload:
    if password_file and not user:
        raise typer.BadParameter("it goes with --user.", param_hint="--password-file")
    body = {"addressInformation": url} | ({"userName": user} if user else {})
    if password_file:
        given = "-" if str(password_file) == "-" else f"@{password_file}"
        body |= secrets([f"password={given}"], "--password-file")[0]

    def upload_from_uri(session: Session, path: str) -> None:
        session.client.post(f"{path}/package_content/upload_from_uri", body)
        session.output.note("The server fetches it.")

    return upload_from_uri
