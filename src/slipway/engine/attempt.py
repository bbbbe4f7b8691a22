"""One step, tried until it works, can't work, or has been tried often enough."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from slipway.model.action import Action, StepContext
from slipway.model.errors import SlipwayError, StepError
from slipway.model.machine import Outcome

log = logging.getLogger(__name__)

FIRST_WAIT = 0.2
LONGEST_WAIT = 30.0


async def attempt(
    action: Action[Any],
    hand: Callable[[Any, StepContext], Awaitable[Outcome]],
    args: dict[str, Any],
    limit: float,
    context: StepContext,
    tried: Callable[[int, StepError], Awaitable[None]],
) -> Outcome:
    """Run `hand` (the action's run or undo). `tried` is told of each attempt that will be followed by another."""
    typed = msgspec.convert(args, action.args)
    for number in range(1, action.attempts + 1):
        try:
            return await _once(hand, typed, context, limit)
        except StepError as error:
            if not error.temporary or number == action.attempts:
                raise
            await tried(number, error)
        await asyncio.sleep(_wait(number))
    raise AssertionError("unreachable: the last attempt returns or raises")


async def _once(
    hand: Callable[[Any, StepContext], Awaitable[Outcome]], args: Any, context: StepContext, limit: float
) -> Outcome:
    try:
        async with asyncio.timeout(limit):
            return await hand(args, context)
    except TimeoutError:
        raise StepError(f"No end after {limit:g} s.", temporary=True) from None
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


def _wait(number: int) -> float:
    """Back off, with jitter so that many nodes do not knock at the same moment."""
    longest: float = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (number - 1))
    return random.uniform(longest / 2, longest)  # noqa: S311 - not for secrecy


def _without_text(error: Exception) -> tuple[type[Exception], Exception, Any]:
    return (Exception, Exception(type(error).__name__), error.__traceback__)
