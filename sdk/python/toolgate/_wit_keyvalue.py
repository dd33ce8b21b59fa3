"""A bucket of wasi:keyvalue, through the bindings of the interfaces `store` and `atomics`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

from componentize_py_types import Err

from .keyvalue import AccessDenied, NoSuchBucket, StoreUnavailable


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Err as error:
        raise _known(error.value) from None


def _known(error: Any) -> Exception:
    name = type(error).__name__
    if name == "Error_NoSuchStore":
        return NoSuchBucket("the host has no such key-value bucket")
    if name == "Error_AccessDenied":
        return AccessDenied("the key-value bucket may not be used by this plugin")
    return StoreUnavailable(f"the key-value store cannot be used now: {getattr(error, 'value', error)}")


class Bucket:
    """The backend of ``toolgate.keyvalue.Bucket``."""

    def __init__(self, store: Any, atomics: Any, name: str):
        self.atomics = atomics
        with _translated():
            self.bucket = store.open(name)

    def get(self, key: str) -> bytes | None:
        with _translated():
            return self.bucket.get(key)

    def set(self, key: str, value: bytes) -> None:
        with _translated():
            self.bucket.set(key, value)

    def delete(self, key: str) -> None:
        with _translated():
            self.bucket.delete(key)

    def exists(self, key: str) -> bool:
        with _translated():
            return self.bucket.exists(key)

    def increment(self, key: str, by: int) -> int:
        with _translated():
            return self.atomics.increment(self.bucket, key, by)

    def list_keys(self, cursor: str | None) -> tuple[list[str], str | None]:
        with _translated():
            page = self.bucket.list_keys(cursor)
        return page.keys, page.cursor

    def cas(self, key: str) -> Swap:
        with _translated():
            return Swap(self.atomics, self.atomics.Cas.new(self.bucket, key))


class Swap:
    """One attempt to change a value. ``swap`` returns ``None``, or the next attempt after a lost race."""

    def __init__(self, atomics: Any, cas: Any):
        self.atomics, self.cas = atomics, cas

    def current(self) -> bytes | None:
        with _translated():
            return self.cas.current()

    def swap(self, value: bytes) -> Swap | None:
        try:
            self.atomics.swap(self.cas, value)
        except Err as error:
            if type(error.value).__name__ == "CasError_CasFailed":
                return Swap(self.atomics, error.value.value)
            raise _known(error.value.value) from None
        return None
