"""What type checkers and editors see, where mypy is installed."""

import ast
import importlib.util
import inspect
import pathlib
import subprocess
import sys
import tempfile
import unittest

import cfaa
import cfaa.baselines

USE = """
import numpy as np
import cfaa

zs = np.zeros((4, 3), np.float32)
value, (gs, gt) = cfaa.vertical_loss(zs, zs, k=2)
reveal_type(value)
reveal_type(gs)
reveal_type(cfaa.horizontal_loss(zs, zs, gradients=False))
reveal_type(cfaa.coupling(zs, zs).plan)
reveal_type(cfaa.train("data").recommend("A1B2", top=10))
cfaa.train("data", out=3)
"""


class Types(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("mypy") is None, "mypy is not installed")
    def test_a_users_code_is_checked_and_the_package_has_no_error(self):
        def mypy(*arguments):
            # pandas and tqdm have their types in packages of their own.
            return subprocess.run([sys.executable, "-P", "-m", "mypy", "--cache-dir", folder,
                                   "--disable-error-code", "import-untyped", *arguments],
                                  capture_output=True, text=True, cwd=folder).stdout

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "use.py")
            file.write_text(USE)
            seen = mypy(file)
            package = mypy("-p", "cfaa")

        for words in ('"float"', "ndarray[", "cfaa.tables.Recommendation", "1 error",
                      'Argument "out" to "train" has incompatible type "int"'):
            self.assertIn(words, seen)
        self.assertNotIn('"Any"', seen)
        self.assertIn("no issues found", package)

    def test_the_stubs_name_what_the_module_has(self):
        stubs = pathlib.Path(cfaa.__file__).with_name("_native.pyi").read_text()

        named = {node.name for node in ast.parse(stubs).body if hasattr(node, "name")}

        self.assertEqual(named | {"version"},
                         {name for name in vars(cfaa._native) if not name.startswith("__")})

    def test_everything_public_says_what_it_is(self):
        public = {name: getattr(cfaa, name) for name in cfaa.__all__}
        public |= dict(inspect.getmembers(cfaa.baselines, inspect.isfunction))
        for kind in (cfaa.Data, cfaa.Encoder, cfaa.Run, cfaa.Table):
            public |= dict(inspect.getmembers(kind))
        own = {name: thing for name, thing in public.items() if not name.startswith("_") and
               getattr(thing, "__module__", "").startswith("cfaa")}

        self.assertGreater(len(own), 30)
        for name, thing in own.items():
            self.assertTrue(inspect.getdoc(thing), name)


if __name__ == "__main__":
    unittest.main()
