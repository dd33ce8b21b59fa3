"""The options of a declaration: the keys of ``options`` in ``plugin.wit``, and their mistakes."""

from __future__ import annotations

import datetime
import re
from typing import Any

from ._encode import encode
from .failure import ToolError

_BOUNDS_MS = {"timeout": ("timeout_ms", 86_400_000), "expires": ("expires_ms", 31_536_000_000)}
_RISKS = ("low", "medium", "high", "critical")
_RECOVERIES = ("retry", "ask", "fail")
_EXPIRIES = ("error", "deny", "approve")
_TAKEN = ("open", "expired", "withdrawn")
_HINTS = ("read_only", "destructive", "idempotent", "open_world")
_SEVERAL = ("editable", "responses", "context_keys")
_NAME = re.compile(r"^[A-Za-z0-9_-]+$")


def to_options(given: dict[str, Any], parameters: dict[str, Any], found: list[str]) -> dict[str, Any]:
    """Converts options to the form of the interface. Mistakes are added to ``found``.

    ``given`` contains the explicit arguments of a decorator, under the decorator's names.
    """
    options: dict[str, Any] = {}
    properties = parameters.get("properties", {})
    for name in ("title", "prompt", "risk", "recovery", "on_expiry", "editable", "responses", "context_keys"):
        if name in given:
            value = given[name]
            several = name in _SEVERAL and not isinstance(value, str) and hasattr(value, "__iter__")
            options[name] = list(value) if several else value
    for name, (key, most) in _BOUNDS_MS.items():
        if name in given:
            options[key] = _milliseconds(name, given[name], most, found)
    if "durable" in given:
        options["durable"] = given["durable"]
    if "answer_on_expiry" in given:
        try:
            options["on_expiry"] = {"answer": encode(given["answer_on_expiry"])}
        except ToolError as error:
            found.append(f"`answer_on_expiry`: {error}")
    _put(options, "retention", _retention(given, found))
    _put(options, "hints", {name: given[name] for name in _HINTS if name in given})
    _check(options, properties, found)
    return options


def _put(options: dict[str, Any], name: str, members: dict[str, Any]) -> None:
    if members:
        options[name] = members


def _milliseconds(name: str, value: Any, most: int, found: list[str]) -> int:
    seconds = value.total_seconds() if isinstance(value, datetime.timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        found.append(f"`{name}` is a number of seconds or a timedelta")
        return 1
    if not 0.001 <= seconds <= most / 1000:
        found.append(f"`{name}` is 0.001 to {most // 1000} seconds")
        return 1
    return round(seconds * 1000)


_BOUNDS = (
    ("keep_for_turns", "max_age_turns"),
    ("keep_latest", "max_count"),
    ("remove_after_days", "max_age_days"),
)


def _retention(given: dict[str, Any], found: list[str]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, key in _BOUNDS:
        if name in given:
            if isinstance(given[name], bool) or not isinstance(given[name], int) or given[name] < 1:
                found.append(f"`{name}` is an integer from 1")
            members[key] = given[name]
    if given.get("never_evict"):
        if members:
            found.append("`never_evict` contradicts `keep_for_turns`, `keep_latest` and `remove_after_days`")
        members["never_evict"] = True
    return members


def _check(options: dict[str, Any], properties: dict[str, Any], found: list[str]) -> None:
    if options.get("durable", True) is not True:
        found.append("`durable` is True or False")
    title = options.get("title")
    if title is not None and not (isinstance(title, str) and 1 <= len(title) <= 128):
        found.append("`title` has 1 to 128 characters")
    for name, known in (("risk", _RISKS), ("recovery", _RECOVERIES)):
        if name in options and options[name] not in known:
            found.append(f"`{name}` is one of " + ", ".join(f'"{value}"' for value in known))
    expiry = options.get("on_expiry")
    if isinstance(expiry, str) and expiry not in _EXPIRIES:
        found.append("`on_expiry` is one of " + ", ".join(f'"{value}"' for value in _EXPIRIES))
    hints = options.get("hints", {})
    for name, value in hints.items():
        if not isinstance(value, bool):
            found.append(f"`{name}` is True or False")
    if hints.get("read_only") and hints.get("destructive"):
        found.append("a tool cannot be both `read_only` and `destructive`")
    _check_lists(options, properties, found)
    if "prompt" in options:
        found.extend(prompt_problems(options["prompt"], properties))


def _check_lists(options: dict[str, Any], properties: dict[str, Any], found: list[str]) -> None:
    editable = options.get("editable")
    if isinstance(editable, list):
        if not editable or len(set(map(str, editable))) != len(editable):
            found.append("`editable` names at least one argument, each once")
        found.extend(f"`editable` names `{name}`, which is not an argument" for name in editable if name not in properties)
    elif editable is not None and editable not in ("all", "none"):
        found.append('`editable` is "all", "none" or a list of arguments')
    responses = options.get("responses")
    if responses is not None and not _distinct_texts(responses, 1, 16, 64):
        found.append("`responses` are 1 to 16 distinct texts of 1 to 64 characters")
    elif responses is not None:
        found.extend(f"`responses` has `{name}`, which the host uses itself" for name in responses if name in _TAKEN)
    keys = options.get("context_keys")
    if keys is not None and not _distinct_texts(keys, 0, 64, 128):
        found.append("`context_keys` are at most 64 distinct names of 1 to 128 characters")


def _distinct_texts(values: Any, least: int, most: int, length: int) -> bool:
    if not isinstance(values, list) or not least <= len(values) <= most:
        return False
    return all(isinstance(text, str) and 1 <= len(text) <= length for text in values) and len(set(values)) == len(values)


def prompt_problems(prompt: Any, properties: dict[str, Any]) -> list[str]:
    """The mistakes in a template: its size, its braces, and the arguments that it names."""
    if not isinstance(prompt, str):
        return ["`prompt` is a text"]
    problems = ["`prompt` is over 4096 bytes"] if len(prompt.encode("utf-8", "replace")) > 4096 else []
    at = 0
    while at < len(prompt):
        if prompt[at : at + 2] in ("{{", "}}"):
            at += 2
        elif prompt[at] == "}":
            return [*problems, "`prompt` has a `}` without a `{`; write `}}` for a brace"]
        elif prompt[at] == "{":
            end = prompt.find("}", at)
            if end < 0:
                return [*problems, "`prompt` has a `{` without a `}`; write `{{` for a brace"]
            problems += _placeholder(prompt[at + 1 : end], properties)
            at = end + 1
        else:
            at += 1
    return problems


def _placeholder(inside: str, properties: dict[str, Any]) -> list[str]:
    if inside.startswith("/"):
        name = inside[1:].split("/")[0].replace("~1", "/").replace("~0", "~")
    elif _NAME.match(inside):
        name = inside
    else:
        return [f"`prompt` has `{{{inside}}}`, which is neither an argument's name nor a JSON Pointer"]
    return [] if name in properties else [f"`prompt` shows `{name}`, which is not an argument"]
