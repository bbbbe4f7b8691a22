"""The base of user data of the first form: its methods answer Heat parameters.

Beside `instantiate` a class may have `heal` and `scale`; without them the stack keeps its parameters.
"""

from __future__ import annotations

import abc
from typing import Any

from tacker.extensions.vnfm import LCMUserDataFailed


class AbstractUserData(abc.ABC):
    @staticmethod
    @abc.abstractmethod
    def instantiate(*given: Any, **named: Any) -> Any:
        raise LCMUserDataFailed(reason="the class has no instantiate() of its own")
