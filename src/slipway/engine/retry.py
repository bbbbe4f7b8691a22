"""One step with its time limit, retried with back-off while its errors are temporary."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from slipway.model.action import Action, StepContext
from slipway.model.errors import SlipwayError, StepError
from slipway.model.machine import Outcome
from slipway.waiting import Backoff

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0


async def run_with_retries(
    action: Action[Any],
    function: Callable[[Any, StepContext], Awaitable[Outcome]],
    args: dict[str, Any],
    limit: float,
    context: StepContext,
    tried: Callable[[int, StepError], Awaitable[None]],
) -> Outcome:
    """Run `function` (the action's run or undo). `tried` is told of each attempt that will be followed by another."""
    typed = msgspec.convert(args, action.args)
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, factor=2.0, jitter=True)  # so that nodes do not retry all at once
    for number in range(1, action.attempts + 1):
        try:
            return await _once(function, typed, context, limit)
        except StepError as error:
            if not error.temporary or number == action.attempts:
                raise
            await tried(number, error)
        await backoff.pause()
    raise AssertionError("unreachable: the last attempt returns or raises")


async def _once(
    function: Callable[[Any, StepContext], Awaitable[Outcome]], args: Any, context: StepContext, limit: float
) -> Outcome:
    try:
        async with asyncio.timeout(limit):
            return _as_stored(await function(args, context))
    except TimeoutError:
        raise StepError(f"Timed out after {limit:g} s.", temporary=True) from None
    except StepError:
        raise
    except SlipwayError as error:
        raise StepError(error.detail) from error
    except Exception as error:  # an edge: whatever an action raises becomes a named failure
        # The text may hold anything, secrets too: the type is enough for a person, the log has the place.
        log.error("unexpected %s in a step", type(error).__name__, exc_info=_without_text(error))
        raise StepError(
            f"Unexpected {type(error).__name__}.", cure="look at the server's log; this is a fault in Slipway."
        ) from None


def _as_stored(outcome: Outcome) -> Outcome:
    """As the journal will give it back. One that it could not would leave an operation that nobody can end."""
    try:
        return msgspec.json.decode(msgspec.json.encode(outcome), type=Outcome)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise StepError(
            f"What the step leaves is nothing that can be recorded: {error}.",
            cure="what is named there came from the VIM or a script, and must be of that type.",
        ) from None


def _without_text(error: Exception) -> tuple[type[Exception], Exception, Any]:
    return (Exception, Exception(type(error).__name__), error.__traceback__)
