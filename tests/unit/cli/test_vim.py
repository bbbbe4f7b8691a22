from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.cli.paths import VIMS
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ID, ScriptedServer

VIM: dict[str, Any] = {
    "id": ID,
    "name": "lab",
    "vimType": "SLIPWAY.SIMULATED.V_1",
    "isDefault": True,
    "interfaceInfo": {"endpoint": "sim://lab"},
    "accessInfo": {"password": "***"},
}


@pytest.fixture
def known(server: ScriptedServer) -> ScriptedServer:
    server.answer(f"POST {VIMS}", VIM, 201)
    server.answer(f"GET {VIMS}", [VIM])
    server.answer(f"GET {VIMS}/lab", VIM)
    return server


def test_a_simulated_vim_needs_no_more_than_a_name(known: ScriptedServer, slipway: Slipway) -> None:
    assert slipway("vim", "add", "lab", "--type", "simulated").exit_code == 0
    assert known.sent(f"POST {VIMS}") == [
        {"name": "lab", "vimType": "SLIPWAY.SIMULATED.V_1", "interfaceInfo": {"endpoint": "sim://lab"}}
    ]


def test_a_vim_is_added_with_all_there_is_to_say(known: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    password, access, extra = tmp_path / "password", tmp_path / "access.yaml", tmp_path / "extra.yaml"
    password.write_text("s3cret\n")
    access.write_text("username: me\nproject: old\n")
    extra.write_text("area: north\n")
    result = slipway(
        *(
            "vim",
            "add",
            "stack",
            "--type",
            "ETSINFV.OPENSTACK_KEYSTONE.V_3",
            "--endpoint",
            "https://keystone.example/v3",
        ),
        *("--default", "--description", "the lab", "--interface", "region=one", "--access-file", str(access)),
        *("--access", f"password=@{password}", "--access", "project=007", "--extra-file", str(extra)),
    )

    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert "s3cret" not in result.output
    assert known.sent(f"POST {VIMS}") == [
        {
            "name": "stack",
            "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
            "description": "the lab",
            "isDefault": True,
            "interfaceInfo": {"region": "one", "endpoint": "https://keystone.example/v3"},
            "accessInfo": {"username": "me", "project": "007", "password": "s3cret"},
            "extra": {"area": "north"},
        }
    ]


def test_a_cluster_is_added_with_its_ca_from_a_file(known: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("PEM\n")
    (tmp_path / "oidc.yaml").write_text("oidc_token_url: https://o/token\npassword: s3cret\n")
    result = slipway(
        *("vim", "add", "edge", "--type", "kubernetes", "--endpoint", "https://edge:6443"),
        *("--interface", f"ssl_ca_cert=@{tmp_path / 'ca.crt'}", "--access-file", str(tmp_path / "oidc.yaml")),
    )

    assert result.exit_code == 0, result.output
    assert known.sent(f"POST {VIMS}") == [
        {
            "name": "edge",
            "vimType": "ETSINFV.KUBERNETES.V_1",
            "interfaceInfo": {"ssl_ca_cert": "PEM", "endpoint": "https://edge:6443"},
            "accessInfo": {"oidc_token_url": "https://o/token", "password": "s3cret"},
        }
    ]


def test_a_password_is_read_from_standard_input(known: ScriptedServer, slipway: Slipway) -> None:
    slipway("vim", "add", "lab", "--type", "simulated", "--access", "password=-", input="s3cret\n")

    assert known.sent(f"POST {VIMS}")[0]["accessInfo"] == {"password": "s3cret"}


def test_a_password_on_the_command_line_is_warned_about_but_not_repeated(
    known: ScriptedServer, slipway: Slipway
) -> None:
    result = slipway("vim", "add", "lab", "--type", "simulated", "--access", "password=s3cret")

    assert result.exit_code == 0
    assert "Warning" in result.stderr
    assert "s3cret" not in result.output


def test_a_simulated_vim_is_added_with_its_faults(known: ScriptedServer, slipway: Slipway) -> None:
    known.answer(f"PUT {VIMS}/{ID}/rules", [])
    rule = "call=make_machine,kind=latency,seconds=0.5"

    assert slipway("vim", "add", "lab", "--type", "simulated", "--rule", rule).exit_code == 0
    assert known.sent(f"PUT {VIMS}/{ID}/rules") == [[{"call": "make_machine", "kind": "latency", "seconds": 0.5}]]


def test_a_wrong_rule_adds_no_vim(known: ScriptedServer, slipway: Slipway) -> None:
    assert slipway("vim", "add", "lab", "--type", "simulated", "--rule", "call=find").exit_code == 2
    assert not known.requests


def test_vims_are_listed_shown_removed_and_made_the_default(known: ScriptedServer, slipway: Slipway) -> None:
    known.answer(f"DELETE {VIMS}/lab", None, 204)
    known.answer(f"PATCH {VIMS}/lab", VIM)

    assert "sim://lab" in slipway("vim", "list").stdout
    assert json.loads(slipway("vim", "show", "lab", "-o", "json").stdout) == VIM
    assert "***" not in slipway("vim", "show", "lab").stdout
    assert "Removed" in slipway("vim", "remove", "lab").stdout
    assert slipway("vim", "set-default", "lab").exit_code == 0
    assert known.sent(f"PATCH {VIMS}/lab") == [{"isDefault": True}]


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"ok": True, "detail": "", "fault": None}, 0, "can be used"),
        ({"ok": False, "detail": "Wrong password.", "fault": "auth"}, 1, "can't be used (auth). Wrong password."),
    ],
)
def test_a_check_says_whether_the_vim_can_be_used(
    answer: dict[str, Any], code: int, words: str, server: ScriptedServer, slipway: Slipway
) -> None:
    server.answer(f"POST {VIMS}/lab/check", answer)
    result = slipway("vim", "check", "lab")

    assert result.exit_code == code
    assert words in result.stdout
