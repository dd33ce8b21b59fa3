"""What has to be in memory before a component is cut off from files, and what must not be the same in every instance.

The standard library imports some modules inside of functions. In a component such an import finds no file, so they are
loaded while it is built: ``datetime.strptime`` would fail without ``_strptime``, ``str.encode("cp1252")`` without its codec.
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
    """Loads what is loaded on demand, and reads the sources of loaded modules, which tracebacks show."""
    for name in _CODECS:
        codecs.lookup(name)
    try:
        raise ValueError
    except ValueError as error:
        traceback.format_exception(type(error), error, error.__traceback__)
    warnings.simplefilter("ignore", ImportWarning)
    linecache.checkcache = lambda filename=None: None  # type: ignore[assignment]


def begin() -> None:
    """At the start of a call: a generator that was seeded while the component was built would repeat itself in each call."""
    random.seed()
