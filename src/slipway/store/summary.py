"""What a list shows of a document, kept beside it as text, so that a list takes no document apart."""

from __future__ import annotations

import msgspec

from slipway.model.instance import VnfInstance
from slipway.model.operation import Operation


def summary(document: VnfInstance | Operation) -> str:
    whole = msgspec.to_builtins(document)
    return msgspec.json.encode({name: value for name, value in whole.items() if name not in document.details}).decode()
