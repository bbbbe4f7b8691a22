"""`slipway vnf`: VNF instances as records. What is done with them is in vnf_operations.py."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from slipway.cli.assignments import assignments
from slipway.cli.describe import view
from slipway.cli.errors import CliError
from slipway.cli.lookup import find_package, find_vnf
from slipway.cli.output import facts, table
from slipway.cli.paths import CLUSTERS, DRIFT, INSTANCES, OPERATIONS, WITH_ERRORS, equals, item_path
from slipway.cli.session import Session, command
from slipway.cli.start_operation import Name

app = typer.Typer(no_args_is_help=True)


@command(app, "create", example="slipway vnf create mycluster --package cluster")
def create(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    package: Annotated[
        str | None, typer.Option(help="The package to make it from: its id, or the name it was given.")
    ] = None,
    vnfd: Annotated[str | None, typer.Option(help="The VNFD's id, instead of a package.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Metadata; JSON or text; repeatable.")
    ] = None,
) -> None:
    """Make a VNF's record. Nothing runs until it is instantiated."""
    if (package is None) == (vnfd is None):
        raise typer.BadParameter("name either a package or a VNFD.", param_hint="--package / --vnfd")
    body: dict[str, Any] = {"vnfdId": vnfd or vnfd_of(session, str(package)), "vnfInstanceName": name}
    if description is not None:
        body["vnfInstanceDescription"] = description
    if metadata:
        body["metadata"] = assignments(metadata, "--metadata")
    vnf = session.client.post(INSTANCES, body).body
    session.output.show(vnf, lambda: _facts(vnf))


@command(app, "list", example="slipway vnf list -o json")
def list_vnfs(session: Session) -> None:
    """All VNFs."""
    found = list(session.client.pages(INSTANCES))
    columns = {"ID": "", "NAME": "bold", "PRODUCT": "", "VERSION": "", "STATE": ""}
    session.output.show(found, lambda: table(columns, (_row(vnf) for vnf in found)))


@command(app, "show", example="slipway vnf show mycluster -o yaml")
def show(session: Session, name: Name) -> None:
    """One VNF's record; `-o json` or `-o yaml` gives the standard's whole document."""
    vnf = find_vnf(session.client, name).body
    session.output.show(vnf, lambda: _facts(vnf))


@command(app, "describe", example="slipway vnf describe mycluster")
def describe(session: Session, name: Name) -> None:
    """One VNF on one page: what is wrong first, then what it is, its VNFCs and its last operations."""
    vnf = find_vnf(session.client, name).body
    operations = sorted(
        session.client.pages(OPERATIONS, WITH_ERRORS | equals(vnfInstanceId=vnf["id"])),
        key=lambda operation: str(operation.get("startTime")),
        reverse=True,
    )
    cluster = None
    if "kubernetes" in (vnf.get("vimConnectionInfo") or {}):
        with session.output.until_known(lambda: view(vnf, operations, asking=True)):
            cluster = _cluster(session, vnf)
    drift = _drift(session, vnf) if _has_objects(vnf) else []
    document = {"vnfInstance": vnf, "operations": operations} | ({"cluster": cluster} if cluster else {})
    document |= {"drift": drift} if drift else {}
    session.output.show(document, lambda: view(vnf, operations, cluster, drift=drift))


@command(app, "delete", example="slipway vnf delete mycluster")
def delete(session: Session, name: Name) -> None:
    """Remove a VNF's record, once it is terminated."""
    vnf = find_vnf(session.client, name).body
    session.client.delete(item_path(INSTANCES, vnf["id"]))
    session.output.show({"id": vnf["id"], "deleted": True}, lambda: f"Deleted VNF {name} ({vnf['id']}).")


def _has_objects(vnf: dict[str, Any]) -> bool:
    """Whether it is made of Kubernetes objects, which others may have changed."""
    objects = ((vnf.get("instantiatedVnfInfo") or {}).get("metadata") or {}).get("objects") or ()
    return any("api_version" in one for one in objects)


def _drift(session: Session, vnf: dict[str, Any]) -> list[str]:
    try:
        return list(session.client.get(item_path(DRIFT, vnf["id"], "drift")).body["problems"])
    except CliError as error:
        return [str(error)]


def _cluster(session: Session, vnf: dict[str, Any]) -> dict[str, Any]:
    """How the cluster does that this VNF is: asked now, so it may take a few seconds."""
    try:
        found: dict[str, Any] = session.client.get(item_path(CLUSTERS, vnf["id"])).body
    except CliError as error:
        return {"problems": [str(error)], "nodes": []}
    return found


def vnfd_of(session: Session, name: str) -> str:
    package = find_package(session.client, name)
    if not package.get("vnfdId"):
        raise CliError(f"Package {name!r} is {package['onboardingState']}; it has no VNFD yet.")
    return str(package["vnfdId"])


def _row(vnf: dict[str, Any]) -> tuple[object, ...]:
    return (
        vnf["id"],
        vnf.get("vnfInstanceName"),
        vnf.get("vnfProductName"),
        vnf.get("vnfSoftwareVersion"),
        vnf.get("instantiationState"),
    )


def _facts(vnf: dict[str, Any]) -> Any:
    info = vnf.get("instantiatedVnfInfo") or {}
    scale = [f"{one['aspectId']} {one['scaleLevel']}" for one in info.get("scaleStatus") or ()]
    product = (vnf.get("vnfProvider"), vnf.get("vnfProductName"), vnf.get("vnfSoftwareVersion"))
    return facts(
        [
            ("VNF", vnf["id"]),
            ("Name", vnf.get("vnfInstanceName")),
            ("Description", vnf.get("vnfInstanceDescription")),
            ("Product", " ".join(str(part) for part in product if part)),
            ("VNFD", vnf.get("vnfdId")),
            ("State", vnf.get("instantiationState")),
            ("VNF state", info.get("vnfState")),
            ("Flavour", info.get("flavourId")),
            ("Scale levels", ", ".join(scale)),
            ("VNFCs", len(info["vnfcResourceInfo"]) if info.get("vnfcResourceInfo") else None),
            ("Configurable properties", vnf.get("vnfConfigurableProperties")),
            ("Metadata", vnf.get("metadata")),
            ("Extensions", vnf.get("extensions")),
        ]
    )
