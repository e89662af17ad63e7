"""One way to log in, for the API and for the page: throttled, and few password checks at a time."""

from __future__ import annotations

import asyncio

from podwarden.domain.access import Token
from podwarden.errors import Refused, Unauthenticated
from podwarden.web.face import Access
from podwarden.web.problems import TooMany
from podwarden.web.throttle import Throttle

AT_ONCE = 2  # a check costs memory and CPU on purpose


class Logins:
    def __init__(self, access: Access, throttle: Throttle) -> None:
        self._access = access
        self._throttle = throttle
        self._checks = asyncio.Semaphore(AT_ONCE)

    async def login(self, name: str, password: str, address: str) -> tuple[Token, str]:
        """A session token and its secret. Unauthenticated says how many tries are left, TooMany how long
        the pause is. The try is counted before the check, so that tries in parallel count too.
        """
        key = (name, address)
        wait = self._throttle.wait(key)
        if wait > 0:
            raise TooMany(
                f"Too many wrong tries. The next one is possible in {max(1, round(wait))} s.",
                after=wait,
            )
        left = self._throttle.failed(key)
        try:
            async with self._checks:
                made = await self._access.login(name, password)
        except Unauthenticated as error:
            raise Unauthenticated(_wrong(left)) from error
        except Refused:
            raise Unauthenticated(_wrong(left)) from None
        self._throttle.succeeded(key)
        return made


def _wrong(left: int) -> str:
    if left == 0:
        return "Name or password is wrong. The next try is possible after a pause of 1 min."
    tries = "1 try" if left == 1 else f"{left} tries"
    return f"Name or password is wrong. {tries} left, then a pause of 1 min."
