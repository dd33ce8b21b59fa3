#!/usr/bin/env python3
"""Runs a page of this folder as its reader would: python3 docs/write-tools/run.py PAGE.md… (with `toolgate` in the PATH)

In an empty folder, and in one shell from the first block to the last, so that `cd`, variables and background jobs last:
  ```sh              is run; it has to end well
  ```text            after it is what it printed: these lines, in this order, others between them; `…` stands for anything
  ```LANG file=NAME  is written to that file, in the folder in which the shell is by then
Other blocks are for reading.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 1800
"""For a whole page: a first build installs its tools."""


def script(page: str) -> str:
    """All blocks of a page as one script, whose standard output has a line `@N` before that of each block."""
    lines = ["set -eu"]
    for number, (language, file, content) in enumerate(BLOCK.findall(page)):
        lines.append(f"echo; echo '@{number}'")
        if file:
            lines += [f"cat > {file} << 'END OF FILE'", content.rstrip("\n"), "END OF FILE"]
        elif language == "sh":
            lines.append(content.rstrip("\n"))
    # What a page leaves running would keep its folder, and its port.
    return "\n".join(["trap 'kill $(jobs -p) 2> /dev/null || true' EXIT", *lines]) + "\n"


def printed(output: str) -> dict[int, str]:
    """What each block printed, by its number."""
    parts = re.split(r"^@(\d+)\n", output, flags=re.MULTILINE)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2])}


def absent(expected: str, text: str) -> str | None:
    """The first expected line that was not printed after those before it."""
    lines = iter(text.splitlines())
    for line in expected.splitlines():
        pattern = re.compile(".*".join(map(re.escape, line.rstrip().split("…"))))
        if not any(pattern.fullmatch(one.rstrip()) for one in lines):
            return line
    return None


def findings(page: str, output: str) -> list[str]:
    """What should have been printed and was not."""
    texts, found, last = printed(output), [], ""
    for number, (language, file, content) in enumerate(BLOCK.findall(page)):
        if language == "sh":
            last = texts.get(number, "")
        elif language == "text" and not file and (line := absent(content, last)) is not None:
            found.append(f"expected, and not printed: {line}\n--- but this:\n{last.strip()}")
    return found


def run(path: Path) -> bool:
    """Runs a page; says what is wrong with it, and whether nothing is."""
    page = path.read_text()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["bash", "-c", script(page)], cwd=folder, text=True, timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
    found = findings(page, done.stdout)
    if done.returncode:
        found.append(f"a block failed with {done.returncode}:\n{done.stdout[-3000:]}")
    for one in found:
        print(f"{path}: {one}", file=sys.stderr)
    print(f"{path}: {'fails' if found else 'fine'}")
    return not found


if __name__ == "__main__":
    sys.exit(0 if all([run(Path(page)) for page in sys.argv[1:]]) and len(sys.argv) > 1 else 1)
