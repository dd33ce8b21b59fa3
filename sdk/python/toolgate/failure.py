"""Why a call has no result. The text of each is for the model: what was wrong, and what it could do instead."""

from __future__ import annotations


class ToolError(Exception):
    """What a tool raises when it has no result. Raise one of the three below."""


class InvalidArguments(ToolError):
    """The arguments fit the schema and still make no sense."""


class Failed(ToolError):
    """It was tried and did not work; trying again in the same way will not help."""


class Unavailable(ToolError):
    """What the tool needs cannot be reached now; trying again later may help."""


class DeclarationError(Exception):
    """What is declared is wrong. Raised while a plugin is built and by tests, never in a call.

    ``findings`` are the lines: where, the tool, what is wrong and what to write instead.
    """

    def __init__(self, findings: list[str]):
        self.findings = list(findings)
        super().__init__("the declarations are wrong:\n" + "\n".join(f"  {line}" for line in self.findings))
