"""A key-value store whose data outlives the call. The plugin requests it in ``toolgate-plugin.toml``:
``[wants.keyvalue]``.

Each plugin has its own bucket. Calls run at the same time in separate instances, and a host may be killed between any
two writes. Use ``Bucket.update`` to change a value that other calls change too. A tool that needs several writes must
find out from the stored data how far an earlier attempt came.
"""

from __future__ import annotations

import json
from typing import Any, Callable

from . import _host
from ._encode import to_json
from .failure import Failed, Unavailable

_MAX_SWAPS = 1000
"""More lost swaps than this in a row mean that something is wrong. A busy key alone does not cause them."""


class NoSuchBucket(Failed):
    """The host has no bucket with this name."""


class AccessDenied(Failed):
    """The plugin may not use the bucket."""


class Malformed(Failed):
    """The stored value does not have the expected form."""


class StoreUnavailable(Unavailable):
    """The store is not available now."""


class Bucket:
    """The plugin's key-value pairs. Values are JSON. Dataclasses are stored as objects. ``open`` makes one."""

    def __init__(self, _inner: Any):
        self._inner = _inner

    def get(self, key: str, default: Any = None) -> Any:
        """The value under a key, or the default.

        Raises:
            Malformed: The stored value is not JSON.
            StoreUnavailable: The store is not available now.
        """
        found = self._inner.get(key)
        return default if found is None else _decode(key, found)

    def get_bytes(self, key: str) -> bytes | None:
        """The bytes under a key, unchanged.

        Raises:
            StoreUnavailable: The store is not available now.
        """
        return self._inner.get(key)

    def set(self, key: str, value: Any) -> None:
        """Stores a value under a key. If several calls may write the key, use ``update``.

        Raises:
            Failed: The value has no form in JSON.
            StoreUnavailable: The store is not available now.
        """
        self._inner.set(key, to_json(value).encode())

    def set_bytes(self, key: str, value: bytes) -> None:
        """Stores bytes under a key.

        Raises:
            StoreUnavailable: The store is not available now.
        """
        self._inner.set(key, bytes(value))

    def delete(self, key: str) -> None:
        """Removes a key, if it exists.

        Raises:
            StoreUnavailable: The store is not available now.
        """
        self._inner.delete(key)

    def exists(self, key: str) -> bool:
        """Whether the key exists.

        Raises:
            StoreUnavailable: The store is not available now.
        """
        return self._inner.exists(key)

    def increment(self, key: str, by: int = 1) -> int:
        """Adds to the number under a key atomically, and returns the sum. A missing key counts as 0. A call that is
        dispatched again adds again, so use this only for numbers that need not be exact.

        Raises:
            StoreUnavailable: The value is not a number, or the store is not available now.
        """
        return self._inner.increment(key, by)

    def keys(self, prefix: str = "") -> list[str]:
        """All keys with this prefix, sorted. It reads every key of the bucket.

        Raises:
            StoreUnavailable: The store is not available now.
        """
        found: set[str] = set()
        cursor: str | None = None
        while True:
            page, cursor = self._inner.list_keys(cursor)
            found.update(key for key in page if key.startswith(prefix))
            if cursor is None:
                return sorted(found)

    def update(self, key: str, change: Callable[[Any], Any], default: Any = None) -> Any:
        """Changes the value under a key by compare-and-swap, and returns the new one.

        Calls ``change`` with the value, or with the default if the key is missing. It writes the returned value only if
        no other call changed it meanwhile. Otherwise it starts again with the new value. So ``change`` may run several
        times and should have no other effect. An unchanged value is not written. An exception of ``change`` is passed
        on, with nothing written.

        Raises:
            Malformed: The stored value is not JSON.
            Failed: The new value has no form in JSON.
            StoreUnavailable: The store is not available now, or other calls change the key too often.
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


def open(name: str = "default") -> Bucket:  # noqa: A001: the name that the interface has
    """The plugin's own bucket.

    Raises:
        NoSuchBucket: The host has no bucket with this name.
        AccessDenied: The plugin may not use the bucket.
        StoreUnavailable: The store is not available now.
        RuntimeError: The component was built without ``[wants.keyvalue]``.
    """
    return Bucket(_host.current().open_bucket(name))


def _decode(key: str, value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        raise Malformed(f"the value of `{key}` is not JSON: {error}") from None


def _copy(default: Any) -> Any:
    """Copies the default, because ``change`` may modify it and a new try must start from the original."""
    return json.loads(to_json(default))
