"""Messages are not translated here."""


def _(message: str) -> str:
    return message
