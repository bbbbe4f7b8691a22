"""All settings: one TOML file, each also as SLIPWAY_<NAME> in the environment, each documented in docs/settings.md."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from slipway.model.errors import SettingsError

Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]


def default_data_dir() -> Path:
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "slipway"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 9890
    base_url: str | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    data_dir: Path = msgspec.field(default_factory=default_data_dir)
    database_url: str | None = None
    auth: bool = True
    token_file: Path | None = None
    keystone_url: str | None = None
    keystone_user: str | None = None
    keystone_password_file: Path | None = None
    keystone_user_domain: str = "Default"
    keystone_project: str = "service"
    keystone_project_domain: str = "Default"
    keystone_roles: tuple[str, ...] = ("admin=admin", "member=operator", "reader=reader")
    keystone_ca_file: Path | None = None
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_role_claim: str = "roles"
    oidc_project_claim: str = "project"
    oidc_roles: tuple[str, ...] = ("admin=admin", "operator=operator", "reader=reader")
    oidc_ca_file: Path | None = None
    key_file: Path | None = None
    package_dir: Path | None = None
    sandbox: bool | None = None
    sandbox_dir: Path | None = None
    sandbox_sockets: tuple[str, ...] = ()
    helm_program: Path | None = None
    secret_parameters: tuple[str, ...] = ()
    allowed_networks: tuple[str, ...] = ()
    unsigned_packages: Literal["accept", "refuse"] = "accept"
    trusted_certificates: Path | None = None
    callback_test: bool = True
    callback_ca_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    notification_hours: Seconds = 24.0
    nfvo_url: str | None = None
    nfvo_auth: Literal["none", "basic", "oauth2"] = "none"
    nfvo_user: str | None = None
    nfvo_password_file: Path | None = None
    nfvo_token_url: str | None = None
    nfvo_client_id: str | None = None
    nfvo_client_secret_file: Path | None = None
    nfvo_ca_file: Path | None = None
    grant_seconds: Seconds = 300.0
    page_size: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    max_body_bytes: Count = 8 * 1024 * 1024
    max_package_bytes: Count = 20 * 1024**3
    max_project_packages: Count = 1000
    max_project_package_bytes: Count = 200 * 1024**3
    max_project_subscriptions: Count = 1000
    max_project_vims: Count = 1000
    lease_seconds: Seconds = 15.0
    poll_seconds: Seconds = 0.5
    operations_at_once: Count = 100
    steps_at_once: Count = 64
    journal_retention_days: Seconds = 30.0
    drift_seconds: Annotated[float, Meta(ge=0)] = 300.0
    script_user: str = "nobody"
    script_seconds: Annotated[float, Meta(gt=0, le=86400)] = 600.0
    script_memory_bytes: Annotated[int, Meta(ge=64 * 1024 * 1024)] = 512 * 1024 * 1024
    script_network: bool = True
    shutdown_seconds: Annotated[float, Meta(ge=0)] = 10.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    metrics_port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    metrics_public: bool = False
    traces_endpoint: str | None = None

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir / 'slipway.db'}"

    def listens_at(self, port: int) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls_certificate is None else 'https'}://{shown}:{port}"

    def api_address(self, port: int | None = None) -> str:
        """What links begin with. `port`: the one that is taken, where the setting leaves it open."""
        return self.base_url or self.listens_at(self.port if port is None else port)

    @property
    def token_path(self) -> Path:
        return self.token_file or self.data_dir / "token"

    @property
    def key_path(self) -> Path:
        return self.key_file or self.data_dir / "secrets.key"

    @property
    def packages_path(self) -> Path:
        return self.package_dir or self.data_dir / "packages"

    @property
    def sandbox_path(self) -> Path:
        return self.sandbox_dir or self.data_dir / "sandbox"

    @property
    def reached_from_this_machine_only(self) -> bool:
        """Whether the API listens on a loopback address, and no `base_url` names a proxy in front of it."""
        own = self.base_url is None or _is_loopback(urlsplit(self.base_url).hostname or "")
        return own and _is_loopback(self.host)

    def sandbox_is_on(self, *, listens: bool = True) -> bool:
        """As it was set; else only where the API is reachable from this machine alone.

        Who manages an identity service is not always an admin of this machine. A worker does not listen, and can't
        know who asks its API processes.
        """
        if self.sandbox is not None:
            return self.sandbox
        own_tokens = self.keystone_url is None and self.oidc_issuer is None
        return listens and own_tokens and self.reached_from_this_machine_only

    @property
    def simulated_path(self) -> Path:
        return self.data_dir / "simulated"


def load_settings(
    config_file: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The file, then the environment, then the command line; the last one wins."""
    environment = os.environ if environment is None else environment
    values = _from_file(config_file) if config_file else {}
    values |= _from_environment(environment)
    values |= {name: value for name, value in (overrides or {}).items() if value is not None}
    try:
        settings = msgspec.convert(values, Settings, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise SettingsError(f"A setting is wrong: {error}. docs/settings.md lists them all.") from None
    if not settings.auth and not _is_loopback(settings.host):
        raise SettingsError(
            f"Without authentication Slipway listens on a loopback address only, not on {settings.host!r}. "
            "Leave out --no-auth, or use --host 127.0.0.1."
        )
    return settings


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise SettingsError(f"There is no settings file {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}.") from None


# For the command line as a client of a server that may be elsewhere.
CLIENT_ONLY = {"SLIPWAY_URL", "SLIPWAY_TOKEN", "SLIPWAY_CA_FILE", "SLIPWAY_CLIENT_CERT", "SLIPWAY_CLIENT_KEY"}
LISTS = {
    "secret_parameters",
    "allowed_networks",
    "keystone_roles",
    "oidc_roles",
    "sandbox_sockets",
}  # in the environment: a,b,c


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in environment.items():
        if name.startswith("SLIPWAY_") and name not in CLIENT_ONLY:
            field = name.removeprefix("SLIPWAY_").lower()
            values[field] = tuple(text.split(",")) if field in LISTS else text
    return values


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str | Path):
        return Path(value).expanduser()
    raise NotImplementedError(f"settings of type {kind}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
