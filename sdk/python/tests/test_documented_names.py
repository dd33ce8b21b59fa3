"""The page of the public names fails for a kind of name that its reader does not know."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SDK = pathlib.Path(__file__).resolve().parent.parent
READER = SDK.parent.parent / "xtask/src/sdk_docs/python.py"


def read(added: str) -> subprocess.CompletedProcess[str]:
    """Runs the reader on a copy of the SDK whose module `config` has this too."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SDK / "toolgate", pathlib.Path(folder, "toolgate"))
        with open(pathlib.Path(folder, "toolgate/config.py"), "a", encoding="utf-8") as module:
            module.write(added)
        words = [sys.executable, "-B", str(READER)]
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


class UnknownKinds(unittest.TestCase):
    def test_known_kinds_are_read(self) -> None:
        done = read('\n\ndef more() -> int:\n    """More."""\n    return 1\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"more"', done.stdout)

    def test_other_kinds_fail(self) -> None:
        for added, name in [
            ("\nLIMIT = 7\n", "toolgate.config.LIMIT, a int"),
            ('\n\nclass Box:\n    """A box."""\n\n    size = 7\n', "Box.size, a int"),
        ]:
            done = read(added)
            self.assertNotEqual(done.returncode, 0, name)
            self.assertIn(f"does not know this kind of public name: {name}", done.stderr)


if __name__ == "__main__":
    unittest.main()
