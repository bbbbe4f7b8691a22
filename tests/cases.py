"""Many cases of one test in one world, where making a world for each would take longer than all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable
from functools import wraps
from typing import Any

Test = Callable[..., Coroutine[Any, Any, None]]


def in_one_world(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but all cases are one test with the same fixtures. An error names its case."""
    all_names = (names,) if isinstance(names, str) else names
    values = [(case,) if isinstance(names, str) else tuple(case) for case in cases]

    def decorated(test: Test) -> Test:
        @wraps(test)
        async def each(**fixtures: Any) -> None:
            for case in values:
                try:
                    await test(**fixtures, **dict(zip(all_names, case, strict=True)))
                except BaseException as error:
                    error.add_note(f"in the case {dict(zip(all_names, case, strict=True))}")
                    raise

        whole = inspect.signature(test)
        fixtures = [one for one in whole.parameters.values() if one.name not in all_names]
        each.__signature__ = whole.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return each

    return decorated
