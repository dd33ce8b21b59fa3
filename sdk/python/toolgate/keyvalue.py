"""A key-value store that outlasts the call. The plugin asks for it in ``toolgate-plugin.toml``: ``[wants.keyvalue]``.

Each plugin has a bucket of its own. Calls run in instances of their own and at the same time, and a host may be killed
between any two writes: ``Bucket.update`` is the one way to change a value that others change too, and a tool that needs
several writes finds out from what is stored how far an earlier attempt came.
"""

from __future__ import annotations

import json
from typing import Any, Callable

from . import _host
from ._encode import to_json
from .failure import Failed, Unavailable

_MAX_SWAPS = 1000
"""So many swaps in a row that others won mean that something is wrong, not that the key is popular."""


class NoSuchBucket(Failed):
    """The host has no bucket of this name."""


class AccessDenied(Failed):
    """The plugin may not use the bucket."""


class Malformed(Failed):
    """What is stored under a key is not what the tool expects there."""


class StoreUnavailable(Unavailable):
    """The store could not do it now."""


class Bucket:
    """The plugin's key-value pairs. Values are what JSON can hold; dataclasses are stored as objects."""

    def __init__(self, inner: Any):
        self._inner = inner

    def get(self, key: str, default: Any = None) -> Any:
        """The value under a key, or the default."""
        found = self._inner.get(key)
        return default if found is None else _decode(key, found)

    def get_bytes(self, key: str) -> bytes | None:
        """The bytes under a key, as they are."""
        return self._inner.get(key)

    def set(self, key: str, value: Any) -> None:
        """Puts a value under a key. Where several calls may write one key, use ``update``."""
        self._inner.set(key, to_json(value).encode())

    def set_bytes(self, key: str, value: bytes) -> None:
        """Puts bytes under a key."""
        self._inner.set(key, bytes(value))

    def delete(self, key: str) -> None:
        """Removes a key; one that is not there is fine."""
        self._inner.delete(key)

    def exists(self, key: str) -> bool:
        """Whether there is something under a key."""
        return self._inner.exists(key)

    def increment(self, key: str, by: int = 1) -> int:
        """Adds to the number under a key, 0 where there is none, and gives the sum. No call gets between; but a call that is
        dispatched again adds again, so this is for numbers that need not be exact."""
        return self._inner.increment(key, by)

    def keys(self, prefix: str = "") -> list[str]:
        """All keys that begin with a prefix, in order. Reads every key of the bucket."""
        found: set[str] = set()
        cursor: str | None = None
        while True:
            page, cursor = self._inner.list_keys(cursor)
            found.update(key for key in page if key.startswith(prefix))
            if cursor is None:
                return sorted(found)

    def update(self, key: str, change: Callable[[Any], Any], default: Any = None) -> Any:
        """Changes the value under a key by compare-and-swap, and gives the new one.

        Hands the value (the default where there is none) to ``change`` and writes what that returns, but only if nobody
        else wrote meanwhile; otherwise starts again with what they wrote. ``change`` may therefore run several times and
        should do nothing else. What it leaves unchanged is not written; what it raises ends the call, with nothing written.
        """
        cas = self._inner.cas(key)
        for _ in range(_MAX_SWAPS):
            before = cas.current()
            after = change(_decode(key, before) if before is not None else _copy(default))
            text = to_json(after).encode()
            if text == before:
                return after
            again = cas.swap(text)
            if again is None:
                return after
            cas = again
        raise StoreUnavailable(f"`{key}` is being changed by too many calls at once")


def open(name: str = "default") -> Bucket:  # noqa: A001: the word that the interface has
    """The plugin's own bucket."""
    return Bucket(_host.current().open_bucket(name))


def _decode(key: str, value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        raise Malformed(f"what is stored under `{key}` is not JSON: {error}") from None


def _copy(default: Any) -> Any:
    """So that ``change`` may change a default list or dict in its place and still start again from the same."""
    return json.loads(to_json(default))
