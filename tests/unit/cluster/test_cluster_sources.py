from __future__ import annotations

import subprocess
import tomllib

import pytest

from slipway.cluster.containerd_config import RegistryLogin, containerd_toml, with_logins
from slipway.cluster.schema import Refusal
from slipway.cluster.source_parameters import SourceParameters
from slipway.cluster.steps.setup import exports
from slipway.cluster.steps.sources import APT_LIST, KEYRING, repository_files
from slipway.cluster.values import url

REPOSITORY = "https://packages.example.com/v1.34/deb"


def source(*, allow_unsigned: bool = False) -> SourceParameters:
    return SourceParameters(kind="packages", repository=REPOSITORY, allow_unsigned=allow_unsigned)


def test_a_repository_is_trusted_by_the_key_of_the_package_alone() -> None:
    armoured = repository_files(source(), b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n...")
    assert armoured[APT_LIST] == f"deb [signed-by={KEYRING}.asc] {REPOSITORY} /\n"
    assert armoured[f"{KEYRING}.asc"].startswith(b"-----BEGIN")  # type: ignore[arg-type]
    assert repository_files(source(), b"\x99\x01")[APT_LIST] == f"deb [signed-by={KEYRING}.gpg] {REPOSITORY} /\n"


def test_without_a_key_a_repository_is_trusted_only_when_that_was_said() -> None:
    assert repository_files(source(allow_unsigned=True), None) == {APT_LIST: f"deb [trusted=yes] {REPOSITORY} /\n"}
    assert repository_files(source(), None) == {APT_LIST: f"deb {REPOSITORY} /\n"}


@pytest.mark.parametrize("given", ["https://me:hills@example.com/x", "https://a b", "ftp://example.com", "https://"])
def test_a_url_that_all_may_read_has_no_login_in_it(given: str) -> None:
    with pytest.raises(Refusal) as caught:
        url(given)
    assert "hills" not in str(caught.value)


def test_variables_arrive_in_a_shell_as_they_are() -> None:
    value = "http://me:it's $(no) `joke`@proxy:3128"
    script = exports({"HTTP_PROXY": value}) + 'printf "%s" "$http_proxy"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == value


@pytest.mark.parametrize(("version", "plugin"), [(2, "io.containerd.grpc.v1.cri"), (3, "io.containerd.cri.v1.images")])
def test_logins_are_in_containerds_own_configuration(version: int, plugin: str) -> None:
    password = 'quotes " and \\ and ü'
    logins = {"10.0.0.9:5000": RegistryLogin("puller", password)}
    before = containerd_toml("3.10", config_version=version)
    after = with_logins(before, logins, ours=[])
    registry = tomllib.loads(after)["plugins"][plugin]["registry"]
    assert registry["configs"] == {"10.0.0.9:5000": {"auth": {"username": "puller", "password": password}}}
    assert password not in repr(logins)
    assert with_logins(after, logins, ours=["10.0.0.9:5000"]) == after
    assert tomllib.loads(with_logins(after, {}, ours=["10.0.0.9:5000"])) == tomllib.loads(before)
