"""An entry of OpenStack's own `clouds.yaml`, as what a VIM wants to know."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from slipway.cli.errors import CliError

FILE = "clouds.yaml"
SECURE = "secure.yaml"
PLACES = (Path("/etc/openstack"),)
AUTH_TYPES = ("password", "v3password", "v3applicationcredential")

_ACCESS = {
    "username": "username",
    "user_id": "userId",
    "password": "password",
    "user_domain_name": "userDomain",
    "user_domain_id": "userDomainId",
    "project_name": "project",
    "tenant_name": "project",
    "project_id": "projectId",
    "tenant_id": "projectId",
    "project_domain_name": "projectDomain",
    "project_domain_id": "projectDomainId",
    "application_credential_id": "applicationCredentialId",
    "application_credential_name": "applicationCredentialName",
    "application_credential_secret": "applicationCredentialSecret",
}

Document = dict[str, Any]


def clouds_file(
    given: Path | None, environment: Mapping[str, str], here: Path, places: Iterable[Path] = PLACES
) -> Path:
    """The file that was named, or the first of the usual ones that exists."""
    named = given or (Path(text) if (text := environment.get("OS_CLIENT_CONFIG_FILE")) else None)
    if named is not None:
        return named
    configuration = Path(environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME", "/")) / ".config")
    usual = [here / FILE, configuration / "openstack" / FILE, *(place / FILE for place in places)]
    for path in usual:
        if path.is_file():
            return path
    raise CliError(
        f"There is no {FILE}. It is looked for at: {', '.join(map(str, usual))}. Or name it by --clouds-file."
    )


def read_cloud(path: Path, cloud: str, read: Callable[[Path], Document]) -> tuple[Document, Document]:
    """interfaceInfo and accessInfo of a cloud, with the secrets that stand in a file beside it."""
    entry = _entry(read(path), cloud, path)
    beside = path.with_name(SECURE)
    if beside.is_file():
        entry = _merged(entry, _clouds(read(beside)).get(cloud))
    return info_of(entry, cloud)


def info_of(entry: Document, cloud: str) -> tuple[Document, Document]:
    auth = entry.get("auth")
    if not isinstance(auth, dict):
        raise CliError(f"Cloud {cloud} has no auth; it wants auth_url, username, password and project_name there.")
    kind = entry.get("auth_type", AUTH_TYPES[0])
    if kind not in AUTH_TYPES:
        raise CliError(f"Cloud {cloud} logs in by auth_type {kind!r}; possible are: {', '.join(AUTH_TYPES)}.")
    for name in ("cert", "key"):
        if entry.get(name):
            raise CliError(f"Cloud {cloud} shows a client certificate ({name}) to Keystone, which Slipway can't.")
    access = {ours: value for name, ours in _ACCESS.items() if (value := _text(auth, name, f"{cloud}: auth.{name}"))}
    for name, ours in _ACCESS.items():  # domains also stand outside of auth
        if "domain" in name and (value := _text(entry, name, f"{cloud}: {name}")):
            access.setdefault(ours, value)
    if default := _text(auth, "default_domain", f"{cloud}: auth.default_domain"):
        for of in ("user", "project"):
            if not {f"{of}Domain", f"{of}DomainId"} & access.keys():
                access[f"{of}DomainId"] = default
    access |= _place(entry, cloud)
    return _interface(entry, auth, cloud), access


def _interface(entry: Document, auth: Document, cloud: str) -> Document:
    url = _text(auth, "auth_url", f"{cloud}: auth.auth_url")
    if not url:
        raise CliError(f"Cloud {cloud} has no auth.auth_url: the URL of Keystone, such as https://host:5000/v3.")
    found: Document = {"endpoint": url}
    verify = entry.get("verify", True)
    if not isinstance(verify, bool):
        raise CliError(f"Cloud {cloud}: verify is true or false.")
    if not verify or entry.get("insecure") is True:
        found["skipCertificateVerification"] = True
    elif ca := _text(entry, "cacert", f"{cloud}: cacert"):
        found["ssl_ca_cert"] = _read_text(Path(ca).expanduser(), f"{cloud}: cacert")
    return found


def _place(entry: Document, cloud: str) -> Document:
    """Of several regions none is chosen for anybody."""
    found: Document = {}
    region, regions = _text(entry, "region_name", f"{cloud}: region_name"), entry.get("regions")
    if not region and isinstance(regions, list) and len(regions) == 1:
        only = regions[0]
        name = only.get("name") if isinstance(only, dict) else only
        region = name if isinstance(name, str) else None
    if region:
        found["region"] = region
    if interface := _text(entry, "interface", f"{cloud}: interface"):
        found["interface"] = interface
    return found


def _entry(document: Document, cloud: str, path: Path) -> Document:
    clouds = _clouds(document)
    entry = clouds.get(cloud)
    if not isinstance(entry, dict):
        known = ", ".join(sorted(map(str, clouds))) or "none"
        raise CliError(f"{path} has no cloud {cloud!r}; it has: {known}.")
    if entry.get("profile") and not (entry.get("auth") or {}).get("auth_url"):
        raise CliError(f"Cloud {cloud} refers to the profile {entry['profile']!r}; write its auth_url into {path}.")
    return entry


def _clouds(document: Document) -> Document:
    clouds = document.get("clouds")
    return clouds if isinstance(clouds, dict) else {}


def _merged(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: _merged(base.get(key), value) for key, value in over.items()}}
    return base if over is None else over


def _text(part: Document, name: str, where: str) -> str | None:
    """YAML takes a password of digits for a number, and loses its leading zeros."""
    value = part.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise CliError(f"Cloud {where} is no text; put it in quotes.")
    return value


def _read_text(path: Path, where: str) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it is no PEM"
        raise CliError(f"Cloud {where}: {path} can't be read: {reason}.") from None
