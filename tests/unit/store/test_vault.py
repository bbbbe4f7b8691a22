from __future__ import annotations

import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Connection, func, select

from slipway.model.errors import Forbidden, SettingsError, SlipwayError
from slipway.model.secrets import find_references, is_reference
from slipway.store.database import Database
from slipway.store.secrets import ROTATED_AT_ONCE, Vault
from slipway.store.tables import secrets

CANARY = "canary-7c1f"
DOCUMENT = {
    "vimConnectionInfo": {"vim1": {"vimType": "t", "accessInfo": {"username": "u", "password": CANARY}}},
    "additionalParams": {"nodes": [{"ssh_password": CANARY + "2", "name": "n"}], "token": {"deep": [CANARY, 1]}},
}


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "secrets.key"


@pytest.fixture
def vault(key_file: Path) -> Vault:
    key_file.parent.mkdir()
    return Vault(key_file)


def key_ids(connection: Connection) -> set[str]:
    return set(connection.scalars(select(secrets.c.key_id)))


def count(connection: Connection) -> int:
    return connection.scalar(select(func.count()).select_from(secrets)) or 0


def test_a_hidden_document_holds_references_and_comes_back_whole(database: Database, vault: Vault) -> None:
    hidden = database.write_now(vault.encrypt_secrets, "i1", DOCUMENT)
    assert CANARY not in str(hidden)
    assert is_reference(hidden["vimConnectionInfo"]["vim1"]["accessInfo"]["password"])
    assert hidden["vimConnectionInfo"]["vim1"]["accessInfo"]["username"] == "u"
    assert database.read_now(vault.decrypt_secrets, ["i1"], hidden) == DOCUMENT


def test_further_names_are_hidden_when_a_setting_gives_them(database: Database, vault: Vault) -> None:
    hidden = database.write_now(vault.encrypt_secrets, "i1", {"pin": "1234"}, ["pin"])
    assert is_reference(hidden["pin"])


def test_a_document_without_secrets_needs_no_rows(database: Database, vault: Vault) -> None:
    document = {"a": [1, {"b": "c"}]}
    assert database.write_now(vault.encrypt_secrets, "i1", document) == document
    assert database.read_now(vault.decrypt_secrets, ["i1"], document) is document
    assert database.read_now(count) == 0


def test_the_secrets_of_others_are_refused(database: Database, vault: Vault) -> None:
    hidden = database.write_now(vault.encrypt_secrets, "i1", DOCUMENT)
    with pytest.raises(Forbidden, match="does not belong to i2 or o2") as refused:
        database.read_now(vault.decrypt_secrets, ["i2", "o2"], hidden)
    assert CANARY not in str(refused.value)
    assert database.read_now(vault.decrypt_secrets, ["i2", "i1"], hidden) == DOCUMENT


def test_secrets_go_with_their_owner_and_when_nothing_refers_to_them(database: Database, vault: Vault) -> None:
    first = database.write_now(vault.encrypt_secrets, "i1", {"password": "a", "token": "b"})
    database.write_now(vault.encrypt_secrets, "i2", {"password": "c"})
    database.write_now(vault.forget_unused, "i1", {"password": first["password"]})
    assert database.read_now(count) == 2
    with pytest.raises(Forbidden, match="is gone"):
        database.read_now(vault.decrypt_secrets, ["i1"], first)
    database.write_now(vault.forget, "i1")
    assert database.read_now(count) == 1


def test_no_secret_and_no_key_is_found_in_files_and_texts(database: Database, vault: Vault, key_file: Path) -> None:
    hidden = database.write_now(vault.encrypt_secrets, "i1", DOCUMENT)
    key = key_file.read_text().strip()
    stored = database.read_now(lambda connection: str(connection.execute(select(secrets)).all()))
    if database.is_sqlite and database.url.database:
        place = Path(database.url.database)
        stored += "".join(file.read_bytes().decode("latin-1") for file in place.parent.glob(place.name + "*"))
    texts = [stored, repr(vault), repr(vars(vault)), str(hidden)]
    database.write_now(lambda connection: connection.execute(secrets.update().values(ciphertext=b"broken")))
    with pytest.raises(SlipwayError, match="is damaged") as damaged:
        database.read_now(vault.decrypt_secrets, ["i1"], hidden)
    texts += [repr(damaged.value), str(damaged.value)]
    key_file.write_text(f"{key}\nnot-a-key-{CANARY}\n")
    with pytest.raises(SettingsError, match="line 2: not a key") as unreadable:
        Vault(key_file)
    texts += [repr(unreadable.value), str(unreadable.value)]
    assert not [text for text in texts if CANARY in text or key in text]


def test_the_key_file_is_made_once_for_its_owner_only(vault: Vault, key_file: Path) -> None:
    content = key_file.read_bytes()
    Vault(key_file)
    assert key_file.read_bytes() == content
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_read_is_refused_with_the_cure(vault: Vault, key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    with pytest.raises(SettingsError, match=f"chmod 600 {key_file}"):
        Vault(key_file)


def test_a_key_file_of_another_database_is_refused_with_the_cure(
    database: Database, vault: Vault, key_file: Path
) -> None:
    hidden = database.write_now(vault.encrypt_secrets, "i1", {"password": CANARY})
    key_file.write_bytes(Fernet.generate_key())
    with pytest.raises(SettingsError, match="Put back the key file"):
        database.read_now(Vault(key_file).decrypt_secrets, ["i1"], hidden)


def test_many_processes_may_make_the_key_file_at_once(key_file: Path) -> None:
    key_file.parent.mkdir()
    script = """
import sys, pathlib
from slipway.store.keyring import Keyring
print(Keyring(pathlib.Path(sys.argv[1])).newest()[0])
"""
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(key_file)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate()[0] for process in started}) == 1


def test_rotation_moves_all_rows_to_a_new_key_and_drops_the_old(
    database: Database, vault: Vault, key_file: Path
) -> None:
    many = {f"p{number}_password": number for number in range(ROTATED_AT_ONCE + 50)}
    hidden = database.write_now(vault.encrypt_secrets, "i1", many)
    other_process = Vault(key_file)
    before = database.read_now(key_ids)
    assert vault.rotate(database) == len(many)
    assert len(key_file.read_text().split()) == 1
    assert not database.read_now(key_ids) & before
    assert database.read_now(other_process.decrypt_secrets, ["i1"], hidden) == many
    again = database.write_now(other_process.encrypt_secrets, "i1", {"token": "x"})
    assert database.read_now(Vault(key_file).decrypt_secrets, ["i1"], again) == {"token": "x"}


class Killed(BaseException):
    pass


@pytest.mark.parametrize(
    ("point", "time"),
    [("key added", 1), ("some moved", 1), ("some moved", 2), ("nothing left", 1), ("old keys dropped", 1)],
)
def test_a_rotation_killed_anywhere_leaves_all_secrets_readable_and_can_be_done_again(
    database: Database, vault: Vault, key_file: Path, point: str, time: int
) -> None:
    many = {f"p{number}_password": number for number in range(ROTATED_AT_ONCE + 5)}
    hidden = database.write_now(vault.encrypt_secrets, "i1", many)
    reached: list[str] = []

    def die(here: str) -> None:
        reached.append(here)
        if here == point and reached.count(here) == time:
            raise Killed

    with pytest.raises(Killed):
        vault.rotate(database, die)
    assert database.read_now(Vault(key_file).decrypt_secrets, ["i1"], hidden) == many
    assert database.read_now(vault.decrypt_secrets, ["i1"], hidden) == many
    Vault(key_file).rotate(database)
    assert database.read_now(vault.decrypt_secrets, ["i1"], hidden) == many
    assert len(key_file.read_text().split()) == 1


def test_a_key_file_half_written_is_never_seen(vault: Vault, key_file: Path) -> None:
    draft = key_file.with_name(key_file.name + ".new")
    draft.write_bytes(b"half a k")  # a process was killed here
    content = key_file.read_bytes()
    Vault(key_file)
    assert key_file.read_bytes() == content


def test_secrets_written_and_read_while_keys_rotate_are_never_lost(
    database: Database, vault: Vault, key_file: Path
) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []
    written: list[tuple[Any, Any]] = []

    def work(name: str) -> None:
        mine = Vault(key_file)
        try:
            while not stop.is_set():
                document = {"password": f"{name} {len(written)}"}
                hidden = database.write_now(mine.encrypt_secrets, name, document)
                written.append((hidden, document))
                assert database.read_now(mine.decrypt_secrets, [name], hidden) == document
        except (SlipwayError, AssertionError) as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(5):
        Vault(key_file).rotate(database)
    stop.set()
    for worker in workers:
        worker.join()
    assert failures == []
    fresh = Vault(key_file)
    for hidden, document in written:
        assert database.read_now(fresh.decrypt_secrets, ["w0", "w1", "w2"], hidden) == document
    assert len(set(find_references([hidden for hidden, _ in written]))) == len(written)


def test_no_lock_file_is_readable_by_others(vault: Vault, key_file: Path) -> None:
    for file in key_file.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
