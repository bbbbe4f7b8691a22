"""What runs a package's script on a node, run here: its options and variables, its end, and what is told of it."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from slipway.cluster.steps.machine import line
from slipway.cluster.steps.package_script import given

TOKEN, KEY = "abcdef.0123456789abcdef", "0f" * 32
OPTIONS = ["-m", "10.0.0.1,10.0.0.2", "-t", TOKEN, "-k", KEY]
STRANGE = 'it\'s "strange" $(reboot) `reboot` \\ % & ;\n#'


def run(
    directory: Path, text: str, options: list[str], variables: dict[str, str], seconds: str = "20"
) -> subprocess.CompletedProcess[str]:
    place = directory / "script"
    place.mkdir()
    (place / "script").write_text(text)
    (place / "script").chmod(0o700)
    (place / "given").write_text(given(options, variables))
    done = subprocess.run(
        line("own_script", str(place), seconds), capture_output=True, text=True, timeout=60, check=False
    )
    assert not place.exists(), "options and script stayed on the machine"
    return done


def test_it_gets_its_options_and_variables_whatever_is_in_them(tmp_path: Path) -> None:
    text = '#!/bin/sh\nprintf "%s|" "$@"\nprintf "%s" "$http_proxy"\n'
    done = run(tmp_path, text, ["-a", STRANGE, ""], {"http_proxy": STRANGE})
    assert (done.returncode, done.stdout.rstrip("\n")) == (0, f"-a|{STRANGE}||{STRANGE}")


def test_without_options_it_gets_none(tmp_path: Path) -> None:
    assert run(tmp_path, '#!/bin/sh\necho "$#"\n', [], {}).stdout == "0\n"


SAYINGS = (
    f"token: {TOKEN}",
    f"kubeadm join 10.0.0.1:6443 --token {TOKEN} --discovery-token-ca-cert-hash sha256:{KEY}",
    f"--certificate-key {KEY}",
    "TOKEN = whatever it is",
    '"password": "over the hills"',
    "certificate key: over the hills",
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl",
    "fetching by http://me:hills@proxy.example:3128/",
)


@pytest.mark.parametrize("saying", SAYINGS)
def test_secrets_that_it_prints_are_told_to_nobody(saying: str, tmp_path: Path) -> None:
    done = run(
        tmp_path, f"#!/bin/sh\necho before\ncat <<'X'\n{saying}\nX\ncat >&2 <<'X'\n{saying}\nX\nexit 3\n", [], {}
    )
    assert done.returncode == 3
    assert done.stdout.startswith("before\n")
    for printed in (done.stdout, done.stderr):
        assert "***" in printed
        assert not re.search(f"{TOKEN}|{KEY}|hills|whatever|eyJ", printed)


def test_what_is_no_secret_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, "#!/bin/sh\necho 'E: Unable to locate package docker-ce' >&2\nexit 100\n", [], {})
    assert (done.returncode, done.stderr) == (100, "E: Unable to locate package docker-ce\n")


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = run(tmp_path, "#!/bin/sh\necho begun\nsleep 50\n", [], {}, seconds="1")
    assert time.monotonic() - begun < 20
    assert done.returncode == 124
    assert "begun" in done.stdout
    assert "the script did not end within 1 s" in done.stderr


def test_one_that_can_not_be_run_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "#!/nowhere/sh\n", [], {})
    assert done.returncode in (126, 127)
    assert "see that its first line names a program" in done.stderr
