"""Loads modules before a component loses access to files, and seeds random numbers in each call.

The standard library imports some modules inside of functions. In a component such an import finds no file. So these
modules are loaded during the build: ``datetime.strptime`` needs ``_strptime``, ``str.encode("cp1252")`` needs its codec.
"""

from __future__ import annotations

import _strptime  # noqa: F401
import codecs
import decimal  # noqa: F401
import encodings.idna  # noqa: F401
import linecache
import locale  # noqa: F401
import random
import stringprep  # noqa: F401
import tokenize  # noqa: F401
import traceback
import unicodedata  # noqa: F401
import warnings

_CODECS = ("ascii", "latin-1", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "cp437")
_CODECS += ("iso8859-15", "mac-roman", "punycode", "unicode-escape", "raw-unicode-escape", "hex", "base64", "rot13")


def finish() -> None:
    """Loads modules that are usually loaded on demand, and the sources of loaded modules, which tracebacks show."""
    for name in _CODECS:
        codecs.lookup(name)
    try:
        raise ValueError
    except ValueError as error:
        traceback.format_exception(type(error), error, error.__traceback__)
    warnings.simplefilter("ignore", ImportWarning)
    linecache.checkcache = lambda filename=None: None  # type: ignore[assignment]


def begin() -> None:
    """Runs at the start of a call. A generator that was seeded during the build would repeat itself in each call."""
    random.seed()
