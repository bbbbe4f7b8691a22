"""What user data of the first form raises."""


class LCMUserDataFailed(Exception):
    def __init__(self, reason: object = "") -> None:
        super().__init__(reason)
