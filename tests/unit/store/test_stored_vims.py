from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from slipway.model.errors import Conflict, NotFound
from slipway.model.vim import Vim
from slipway.store import vims
from slipway.store.database import Database

New = Callable[..., Vim]


def test_a_vim_is_found_by_id_and_by_name(database: Database, new_vim: New) -> None:
    vim = new_vim("edge", interface_info={"endpoint": "http://x"})
    other = new_vim(vim.id)  # named like the id of the first
    for one in (vim, other):
        database.write_now(vims.insert, one)
    assert database.read_now(vims.get, vim.id) == vim
    assert database.read_now(vims.get_by_name, "edge") == vim
    assert database.read_now(vims.get_by_name, vim.id) == vim
    assert database.read_now(vims.list_all) == [vim, other]


def test_a_new_default_ends_the_old_ones_time(database: Database, new_vim: New) -> None:
    assert database.read_now(vims.default) is None
    first, second = new_vim("first", is_default=True), new_vim("second", is_default=True)
    database.write_now(vims.insert, first)
    database.write_now(vims.insert, second)
    assert database.read_now(vims.default) == second
    assert not database.read_now(vims.get, first.id).is_default
    database.write_now(vims.update, first)
    assert [vim.name for vim in database.read_now(vims.list_all) if vim.is_default] == ["first"]
    database.write_now(vims.update, msgspec.structs.replace(first, is_default=False))
    assert database.read_now(vims.default) is None


def test_names_are_unique_and_the_other_is_named(database: Database, new_vim: New) -> None:
    first, second = new_vim("a"), new_vim("b")
    database.write_now(vims.insert, first)
    database.write_now(vims.insert, second)
    with pytest.raises(Conflict, match=f"VIM {first.id} has the name 'a' already"):
        database.write_now(vims.insert, new_vim("a"))
    with pytest.raises(Conflict, match=first.id):
        database.write_now(vims.update, msgspec.structs.replace(second, name="a"))
    with pytest.raises(Conflict, match=f"There is a VIM {first.id} already"):
        database.write_now(vims.insert, msgspec.structs.replace(first, name="c"))


def test_what_is_not_there_is_named(database: Database, new_vim: New) -> None:
    vim = new_vim("edge")
    with pytest.raises(NotFound, match=vim.id):
        database.write_now(vims.update, vim)
    with pytest.raises(NotFound, match=vim.id):
        database.read_now(vims.get, vim.id)
    database.write_now(vims.insert, vim)
    with pytest.raises(NotFound, match="'other'; registered are: edge"):
        database.read_now(vims.get_by_name, "other")
    database.write_now(vims.delete, vim.id)
    with pytest.raises(NotFound, match=vim.id):
        database.write_now(vims.delete, vim.id)
