"""An entry of OpenStack's own `clouds.yaml`, or its variables of an openrc file, as what a VIM wants to know.

openstacksdk reads them, with profiles, regions and secrets beside, as OpenStack's own commands do.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slipway.cli.errors import CliError

ENVIRONMENT = "envvars"  # what OpenStack's own commands call the cloud of the variables OS_...
AUTH_TYPES = ("password", "v3password", "v3applicationcredential")

_ACCESS = {
    "username": "username",
    "user_id": "userId",
    "password": "password",
    "user_domain_name": "userDomain",
    "user_domain_id": "userDomainId",
    "project_name": "project",
    "project_id": "projectId",
    "project_domain_name": "projectDomain",
    "project_domain_id": "projectDomainId",
    "application_credential_id": "applicationCredentialId",
    "application_credential_name": "applicationCredentialName",
    "application_credential_secret": "applicationCredentialSecret",
}
_DEFAULT_DOMAIN = ("default_domain_id", "default_domain")

Document = dict[str, Any]


def read_cloud(given: Path | None, cloud: str, read: Callable[[Path], Document]) -> tuple[Document, Document]:
    """interfaceInfo and accessInfo of a cloud. `given`: the file, instead of the first of the usual ones there is."""
    from openstack.config import OpenStackConfig, loader
    from openstack.exceptions import SDKException

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a CA beside `verify: false`, and of old names
        try:
            if cloud == ENVIRONMENT and given is None:
                known = OpenStackConfig(load_yaml_config=False)
            else:
                path = given or _usual_file(loader.CONFIG_FILES)
                secure = [path.with_name("secure.yaml"), *map(Path, loader.SECURE_FILES)]
                for file in (path, *(file for file in secure[:1] if file.is_file())):
                    _check_quotes(read(file), cloud)
                known = OpenStackConfig([str(path)], secure_files=[str(file) for file in secure], load_envvars=False)
            if cloud not in known.get_cloud_names():
                names = ", ".join(sorted(known.get_cloud_names())) or "none"
                raise CliError(f"{known.config_filename or 'The environment'} has no cloud {cloud!r}; it has: {names}.")
            found = known.get_one(cloud, validate=False)
            entry = {**found.config, "auth": _auth(found.config)}
            return _interface(cloud, entry, *found.get_requests_verify_args()), _access(cloud, entry)
        except SDKException as error:
            raise CliError(f"Cloud {cloud}: {error}") from None


def _usual_file(usual: list[str]) -> Path:
    named = os.environ.get("OS_CLIENT_CONFIG_FILE")
    for path in map(Path, [named] if named else usual):
        if path.is_file() or named:
            return path
    raise CliError(f"There is no clouds.yaml. It is looked for at: {', '.join(usual)}. Or name it by --clouds-file.")


def _check_quotes(document: Document, cloud: str) -> None:
    """YAML takes a password of digits for a number, and loses its leading zeros."""
    clouds = document.get("clouds")
    entry = clouds.get(cloud) if isinstance(clouds, dict) else None
    auth = entry.get("auth") if isinstance(entry, dict) else None
    if not isinstance(auth, dict | None):
        raise CliError(f"Cloud {cloud}: auth wants auth_url, username, password and project_name in it.")
    for name, value in (auth or {}).items():
        if value is not None and not isinstance(value, str):
            raise CliError(f"Cloud {cloud}: auth.{name} must be a string; put it in quotes.")


def _auth(entry: Document) -> Document:
    """What belongs into `auth` may stand beside it, and does in the environment."""
    beside = {name: entry[name] for name in ("auth_url", *_ACCESS, *_DEFAULT_DOMAIN) if entry.get(name)}
    return {**beside, **entry["auth"]}


def _access(cloud: str, entry: Document) -> Document:
    if (kind := entry["auth_type"]) not in AUTH_TYPES:
        raise CliError(f"Cloud {cloud} has auth_type {kind!r}; it must be one of: {', '.join(AUTH_TYPES)}.")
    auth = entry["auth"]
    access = {ours: auth[name] for name, ours in _ACCESS.items() if auth.get(name)}
    if default := next((auth[name] for name in _DEFAULT_DOMAIN if auth.get(name)), None):
        for of in ("user", "project"):
            if not {f"{of}Domain", f"{of}DomainId"} & access.keys():
                access[f"{of}DomainId"] = default
    if region := entry.get("region_name"):
        access["region"] = region
    if (interface := entry.get("interface", "public")) != "public":
        access["interface"] = interface
    return access


def _interface(cloud: str, entry: Document, verify: object, cert: object) -> Document:
    if not (url := entry["auth"].get("auth_url")):
        profile = f", nor does its profile {name!r} have one" if (name := entry.get("profile")) else ""
        raise CliError(f"Cloud {cloud} has no auth.auth_url, such as https://host:5000/v3{profile}.")
    if cert:
        raise CliError(f"Cloud {cloud} shows a client certificate (cert) to Keystone, which Slipway can't.")
    if isinstance(verify, str):
        return {"endpoint": url, "ssl_ca_cert": _read_text(Path(verify), f"{cloud}: cacert or verify")}
    return {"endpoint": url} | ({} if verify else {"skipCertificateVerification": True})


def _read_text(path: Path, where: str) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it is not PEM"
        raise CliError(f"Cloud {where}: {path} can't be read: {reason}.") from None
