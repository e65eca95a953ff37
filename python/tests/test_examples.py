"""The examples of the documentation run."""

import ast
import json
import logging
import os
import runpy
import tempfile
import unittest

from golden import REPOSITORY

try:
    import torch
except ImportError:
    torch = None

EXAMPLES = REPOSITORY / "docs/examples/python"


class Examples(unittest.TestCase):
    def test_the_notebook_runs_and_shows_what_it_says(self):
        notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text())
        self.addCleanup(os.chdir, os.getcwd())
        self.addCleanup(logging.getLogger("cfaa").setLevel, logging.NOTSET)
        space = {}
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for cell in notebook["cells"]:
                if cell["cell_type"] != "code":
                    continue
                tree = ast.parse("".join(cell["source"]))
                shown = ast.Expression(tree.body.pop().value)

                exec(compile(tree, cell["id"], "exec"), space)
                value = eval(compile(shown, cell["id"], "eval"), space)

                self.assertEqual("text/html" in cell["outputs"][0]["data"],
                                 hasattr(value, "_repr_html_"), cell["id"])
            os.chdir(REPOSITORY)
        self.assertGreater(space["vertical"], 0)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_the_losses_take_the_place_of_an_adversary(self):
        example = runpy.run_path(str(EXAMPLES / "adversary.py"))

        for method in ("source alone", "adversary", "alignment"):
            self.assertGreater(example["train"](method, steps=3), 0)


if __name__ == "__main__":
    unittest.main()
