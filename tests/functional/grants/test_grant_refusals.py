"""An NFVO that refuses, decides late, is in trouble or does not answer: nothing is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from slipway.model.operation import CancelMode, OperationType, State
from tests.functional.grants.grant_world import FORCEFUL, INSTANTIATE, OUT, machines, refused, settings_for, standing
from tests.functional.rig import Rig, rig_in
from tests.functional.small_nfvo import GRANTS, SmallNfvo, placed, small_nfvo, yes_there
from tests.unit.outgoing.loopback_server import Answer, document

pytestmark = pytest.mark.sqlite_suffices


async def test_a_refusal_ends_rolled_back_with_the_words_of_the_nfvo(rig: Rig, nfvo: SmallNfvo) -> None:
    nfvo.decide = lambda _: document({"title": "No", "status": 403, "detail": "quota of \x1b[31mtenant t"}, 403)
    why = await refused(rig)
    assert why == rf"The NFVO at {nfvo.url}{GRANTS} refused the grant: No: quota of \x1b[31mtenant t"
    assert len(nfvo.requests) == 1


async def test_a_refusal_later_leaves_all_as_it_was(rig: Rig, nfvo: SmallNfvo) -> None:
    instance_id = await standing(rig)
    before = await rig.instance(instance_id)
    nfvo.decide = lambda _: document({"status": 403, "detail": "not now"}, 403)
    for kind, request in ((OperationType.SCALE, OUT), (OperationType.TERMINATE, FORCEFUL)):
        operation = await rig.run(kind, instance_id, request)
        assert operation.operation_state is State.ROLLED_BACK
    assert await rig.instance(instance_id) == before
    assert len(await machines(rig, instance_id)) == 3


@pytest.mark.parametrize(
    ("status", "cure"),
    [(400, "compare docs/grants.md"), (401, "correct nfvo_auth"), (404, "give nfvo_url"), (200, "compare"), (307, "")],
)
async def test_any_other_answer_is_told_with_a_cure(rig: Rig, nfvo: SmallNfvo, status: int, cure: str) -> None:
    nfvo.decide = lambda _: Answer(status, {"Location": "http://127.0.0.1:1/"}, b"plain words\0")
    why = await refused(rig)
    assert why.startswith(rf"The NFVO at {nfvo.url}{GRANTS} answered {status}: plain words\x00. Cure: {cure}")
    assert len(nfvo.requests) == 1


@pytest.mark.parametrize("relative", [True, False])
async def test_an_nfvo_that_decides_later_is_looked_at_until_it_has(rig: Rig, nfvo: SmallNfvo, relative: bool) -> None:
    place = f"{GRANTS}/g1"

    def look() -> Answer:
        if nfvo.looks == 1:
            return Answer(202)
        return Answer(503) if nfvo.looks == 2 else document(placed(nfvo.requests[-1], "az-late"))

    nfvo.decide = lambda _: Answer(202, {"Location": place if relative else nfvo.url + place})
    nfvo.look = look
    instance_id = await standing(rig)
    assert (len(nfvo.requests), nfvo.looks) == (1, 3)
    assert {one.zone for one in (await machines(rig, instance_id)).values()} == {"az-late"}


@pytest.mark.parametrize("location", ["", "http://127.0.0.1:1/grant/v1/grants/g1", "http://[", "file:///etc/passwd"])
async def test_nobody_is_led_away_from_the_nfvo(rig: Rig, nfvo: SmallNfvo, location: str) -> None:
    nfvo.decide = lambda _: Answer(202, {"Location": location} if location else {})
    assert "Location" in await refused(rig)


async def test_a_refusal_may_come_late(rig: Rig, nfvo: SmallNfvo) -> None:
    nfvo.decide = lambda _: Answer(202, {"Location": f"{GRANTS}/g1"})
    nfvo.look = lambda: document({"status": 403, "detail": "thought about it"}, 403)
    assert (await refused(rig)).endswith("refused the grant: thought about it")


async def test_an_nfvo_in_trouble_is_asked_again(rig: Rig, nfvo: SmallNfvo) -> None:
    nfvo.decide = lambda request: Answer(503) if len(nfvo.requests) < 3 else yes_there(request)
    await standing(rig)
    assert len(nfvo.requests) == 3
    assert nfvo.requests[0] == nfvo.requests[1] == nfvo.requests[2]


async def silent(_: dict[str, Any]) -> Answer:
    await asyncio.sleep(60)
    return Answer(500)


@pytest.mark.parametrize(
    ("decide", "last"),
    [
        (silent, ""),
        (lambda _: document({"detail": "database is down"}, 500), " The last: it answered 500: database is down."),
        (lambda _: Answer(202, {"Location": GRANTS}), " The last: it"),
    ],
    ids=["silent", "broken", "undecided"],
)
async def test_patience_has_an_end(
    decide: Callable[[dict[str, Any]], Any], last: str, database_url: URL, tmp_path: Path, nfvo: SmallNfvo
) -> None:
    nfvo.decide, nfvo.look = decide, lambda: Answer(202)
    async with rig_in(settings_for(database_url, tmp_path, nfvo, grant_seconds=0.6)) as rig:
        why = await refused(rig)
    assert why.startswith(f"The NFVO at {nfvo.url}{GRANTS} gave no grant within 0.6 s.{last}")
    assert "raise grant_seconds" in why


async def test_a_dead_nfvo(database_url: URL, tmp_path: Path) -> None:
    async with small_nfvo() as nfvo:
        settings = settings_for(database_url, tmp_path, nfvo, grant_seconds=0.6)
    async with rig_in(settings) as rig:
        why = await refused(rig)
    assert "The last: it cannot be reached" in why


@pytest.mark.parametrize("mode", list(CancelMode))
async def test_a_cancelled_operation_does_not_wait_for_the_nfvo(
    database_url: URL, tmp_path: Path, nfvo: SmallNfvo, mode: CancelMode
) -> None:
    heard = asyncio.Event()

    async def hear(request: dict[str, Any]) -> Answer:
        heard.set()
        return await silent(request)

    nfvo.decide = hear
    async with rig_in(settings_for(database_url, tmp_path, nfvo, grant_seconds=3600.0)) as rig:
        begun = await rig.slipway.lcm.start_operation(OperationType.INSTANTIATE, await rig.create(), INSTANTIATE)
        await heard.wait()
        await rig.slipway.lcm.cancel(begun.id, mode)
        assert (await rig.rest(begun.id)).operation_state is State.ROLLED_BACK
        assert await rig.inventory() == {}
