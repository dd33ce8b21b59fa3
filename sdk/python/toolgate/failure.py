"""Why a call has no result. The texts are for the model: what was wrong, and what it can do instead."""

from __future__ import annotations


class ToolError(Exception):
    """The failure of a tool. Raise ``InvalidArguments``, ``Failed`` or ``Unavailable``."""


class InvalidArguments(ToolError):
    """The arguments fit the schema but make no sense."""


class Failed(ToolError):
    """The attempt failed. Repeating it the same way will not help."""


class Unavailable(ToolError):
    """Something that the tool needs is unavailable. Trying again later may help."""


class DeclarationError(Exception):
    """A wrong declaration. It is raised during a build and by tests, never in a call."""

    findings: list[str]
    """One line for each mistake: position, tool, mistake and remedy."""

    def __init__(self, findings: list[str]):
        self.findings = list(findings)
        super().__init__("the declarations are wrong:\n" + "\n".join(f"  {line}" for line in self.findings))
