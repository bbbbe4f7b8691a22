"""SDKs that block: bounded for each project and VIM, and never left running behind an undo."""

from __future__ import annotations

import asyncio
import threading

import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import VimError
from slipway.model.vim import OPENSTACK
from slipway.vim.blocking import BlockingCalls


def to(endpoint: str, project: str = "a") -> VimConnection:
    return VimConnection(OPENSTACK, {"endpoint": endpoint}, {}, {}, project=project)


VIM = to("https://cloud.example:5000/v3")


async def test_a_vim_that_does_not_answer_leaves_threads_to_others() -> None:
    calls, never = BlockingCalls(threads=3, of_one_vim=2), threading.Event()
    stuck = [asyncio.create_task(calls.run(to("https://dead.example"), never.wait)) for _ in range(5)]
    try:
        assert await asyncio.wait_for(calls.run(to("https://alive.example"), lambda: "there"), 10) == "there"
    finally:
        never.set()
        assert await asyncio.gather(*stuck) == [True] * 5
        calls.close()


async def test_a_server_is_one_vim_however_its_address_is_written() -> None:
    calls, never = BlockingCalls(threads=2, of_one_project=2, of_one_vim=1), threading.Event()
    addresses = ("https://dead.example/v3", "https://dead.example/v3/", "https://DEAD.example:443//v3")
    stuck = [asyncio.create_task(calls.run(to(address), never.wait)) for address in addresses]
    try:
        assert await asyncio.wait_for(calls.run(to("https://alive.example"), lambda: "there"), 10) == "there"
    finally:
        never.set()
        await asyncio.gather(*stuck)
        calls.close()


async def test_a_project_with_many_vims_leaves_threads_to_other_projects() -> None:
    calls, never = BlockingCalls(threads=3, of_one_project=2, of_one_vim=1), threading.Event()
    stuck = [asyncio.create_task(calls.run(to(f"https://dead{n}.example"), never.wait)) for n in range(5)]
    try:
        other = to("https://dead1.example", project="b")
        assert await asyncio.wait_for(calls.run(other, lambda: "there"), 10) == "there"
    finally:
        never.set()
        await asyncio.gather(*stuck)
        calls.close()


async def test_too_many_calls_of_a_project_that_wait_are_refused_for_now() -> None:
    calls, never = BlockingCalls(of_one_project=1, most_waiting=2), threading.Event()
    stuck = [asyncio.create_task(calls.run(VIM, never.wait)) for _ in range(3)]
    await asyncio.sleep(0)
    try:
        with pytest.raises(VimError, match="2 calls to VIMs of project a wait already") as raised:
            await calls.run(VIM, lambda: None)
        assert raised.value.temporary
        assert await asyncio.wait_for(calls.run(to("https://cloud.example", "b"), lambda: "there"), 10) == "there"
    finally:
        never.set()
        await asyncio.gather(*stuck)
    assert await calls.run(VIM, lambda: "there") == "there"
    calls.close()


async def test_closing_drops_what_waits() -> None:
    calls, begun, go, ran = BlockingCalls(threads=1, of_one_vim=2), threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        go.wait(10)

    first = asyncio.create_task(calls.run(VIM, work))
    await asyncio.to_thread(begun.wait, 10)
    waiting = [asyncio.create_task(calls.run(VIM, lambda: ran.append("late"))) for _ in range(3)]
    await asyncio.sleep(0)
    calls.close()
    go.set()
    await first
    for late in waiting:
        with pytest.raises(VimError, match="about to stop"):
            await late
    assert ran == []


async def test_what_has_begun_is_waited_for_when_a_step_is_cancelled() -> None:
    calls, begun, go, ended = BlockingCalls(), threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(10)
        ended.set()

    step = asyncio.create_task(calls.run(VIM, work))
    await asyncio.to_thread(begun.wait, 10)
    step.cancel()
    await asyncio.sleep(0)
    assert not step.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert ended.is_set()
    calls.close()


async def test_a_long_call_is_told_to_stop_when_its_step_is_cancelled() -> None:
    calls, begun, stop = BlockingCalls(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert stop.wait(10)

    step = asyncio.create_task(calls.run(VIM, work, stop=stop.set))
    await asyncio.to_thread(begun.wait, 10)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    calls.close()


async def test_what_has_not_begun_is_cancelled_at_once_and_never_runs() -> None:
    calls, go, ran = BlockingCalls(of_one_vim=1), threading.Event(), list[str]()
    first = asyncio.create_task(calls.run(VIM, lambda: go.wait(10)))
    second = asyncio.create_task(calls.run(VIM, lambda: ran.append("second")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    go.set()
    await first
    calls.close()
    assert ran == []


async def test_an_error_is_the_callers() -> None:
    calls = BlockingCalls()
    with pytest.raises(ZeroDivisionError):
        await calls.run(VIM, lambda: 1 / 0)
    assert await calls.run(VIM, lambda: 2) == 2
    calls.close()


async def test_however_often_it_is_cancelled_what_has_begun_ends_first_and_keeps_its_slot() -> None:
    """A worker cancels at every poll; and nothing else of the process may wait for it."""
    calls, begun, go, ran = BlockingCalls(of_one_vim=1), threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        go.wait(10)
        ran.append("first")

    step = asyncio.create_task(calls.run(VIM, work))
    await asyncio.to_thread(begun.wait, 10)
    second = asyncio.create_task(calls.run(VIM, lambda: ran.append("second")))
    for _ in range(3):
        step.cancel()
        await asyncio.sleep(0.01)
    assert not step.done()
    assert ran == []
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await step
    await second
    assert ran == ["first", "second"]
    calls.close()


async def test_closing_does_not_wait_for_a_call_that_hangs() -> None:
    calls, begun, go = BlockingCalls(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(10)

    step = asyncio.create_task(calls.run(VIM, work))
    await asyncio.to_thread(begun.wait, 10)
    calls.close()
    assert not step.done()
    go.set()
    await step
