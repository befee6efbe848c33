#!/usr/bin/python3
"""docs/notebook.ipynb is true: this test runs its cells in order and compares what they print and show.

Run as tests/docs/notebook_test.py BUILD_FOLDER; with --write as well it writes what the cells give into the notebook.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs/notebook.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of a cell, in the notebook's own form: what it prints, and its last expression."""
    tree = ast.parse(source)
    shown = None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
    if shown is not None:
        data: dict[str, Any] = {"text/plain": repr(shown).splitlines(True)}
        if hasattr(shown, "_repr_svg_"):
            data["image/svg+xml"] = shown._repr_svg_().splitlines(True)
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    return outputs


def words_of(outputs: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The words that a reader sees, and which outputs are pictures. Coordinates of pictures depend on rounding."""
    texts = [output.get("text") or output["data"]["text/plain"] for output in outputs]
    return [(*text, *sorted(output.get("data", {}))) for text, output in zip(texts, outputs)]


class NotebookTest(unittest.TestCase):
    def test_cells_give_what_the_notebook_shows(self) -> None:
        notebook = json.loads(NOTEBOOK.read_text())
        before = Path.cwd()
        names: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            self.addCleanup(os.chdir, before)
            for place, cell in enumerate(notebook["cells"]):
                if cell["cell_type"] != "code":
                    continue
                outputs = run_cell("".join(cell["source"]), names)
                if WRITE:
                    cell["outputs"] = outputs
                with self.subTest(cell=place):
                    self.assertEqual(words_of(outputs), words_of(cell["outputs"]))
            os.chdir(before)
        pictures = [output for cell in notebook["cells"] for output in cell.get("outputs", ()) if "data" in output]
        self.assertEqual(sum("image/svg+xml" in output["data"] for output in pictures), 3)
        if WRITE:
            NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    WRITE = "--write" in sys.argv
    sys.path.insert(0, str(Path(sys.argv[1]).resolve() / "python"))
    unittest.main(argv=sys.argv[:1])
