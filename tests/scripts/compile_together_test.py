#!/usr/bin/python3
"""Tests of scripts/compile_together.py on made-up sources. Run as tests/scripts/compile_together_test.py; needs no attnbench."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/compile_together.py"


def source(body: str, includes: str = "") -> str:
    return (
        f"{includes}\nnamespace attnbench {{\nnamespace {{\n\n{body}\n\n}}  // namespace\n}}  // namespace attnbench\n"
    )


class CompileTogether(unittest.TestCase):
    def groups(self, files: dict[str, str], most: int = 8, lines: int = 1000, edited: str = "") -> list[list[str]]:
        """The names of files that are compiled together, in their order; first those of groups."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            # It looks for headers from the folder above its own.
            (root / "scripts").mkdir()
            (root / "scripts/compile_together.py").write_text(SCRIPT.read_text())
            for name, text in files.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)
            (root / "edited.txt").write_text(edited)
            sources = [str(root / name) for name in files if name.endswith(".cpp")]
            command = [sys.executable, str(root / "scripts/compile_together.py"), str(most), str(lines)]
            run = subprocess.run(
                [*command, str(root / "edited.txt"), *sources], check=True, capture_output=True, text=True
            )
            found: dict[str, list[str]] = {}
            for line in run.stdout.splitlines():
                number, path = line.split(" ", 1)
                found.setdefault(path if number == "alone" else number, []).append(Path(path).stem)
        return sorted(found.values(), key=lambda group: (-len(group), group))

    def test_strangers_of_one_folder_form_a_group_up_to_the_limits(self) -> None:
        files = {f"a/{name}.cpp": source(f"int only_{name}() {{ return 1; }}") for name in "pqr"}
        self.assertEqual(self.groups(files), [["p", "q", "r"]])
        self.assertEqual(self.groups(files, most=2), [["p", "q"], ["r"]])
        self.assertEqual(self.groups(files, lines=2 * 9), [["p", "q"], ["r"]])  # nine lines each
        self.assertEqual(self.groups({**files, "b/s.cpp": source("")}), [["p", "q", "r"], ["s"]])

    def test_two_files_that_define_one_name_are_apart(self) -> None:
        files = {"a/p.cpp": source("int width() { return 1; }"), "a/q.cpp": source("int width() { return 2; }")}
        self.assertEqual(self.groups(files), [["p"], ["q"]])

    def test_who_uses_a_word_comes_before_who_defines_it(self) -> None:
        files = {
            "a/p.cpp": source("int width() { return 1; }"),
            "a/q.cpp": source("int area(int width) { return width; }"),
        }
        self.assertEqual(self.groups(files), [["q", "p"]])

    def test_a_name_of_another_files_header_keeps_them_apart(self) -> None:
        header = {"a/h.hpp": "namespace attnbench {\n\nstruct Samples {};\n\n}\n"}
        includes = {"a/p.cpp": source("int one() { return 1; }", '#include "a/h.hpp"')}
        self.assertEqual(self.groups({**header, **includes, "a/q.cpp": source("struct Samples {};")}), [["p"], ["q"]])
        # The definition of what the header declares is no other name.
        defines = {
            "a/q.cpp": '#include "a/h.hpp"\nnamespace attnbench {\n\nstruct Samples sampled() { return {}; }\n\n}\n'
        }
        self.assertEqual(self.groups({**header, **includes, **defines}), [["p", "q"]])

    def test_a_namespace_of_its_own_hides_all_names(self) -> None:
        own = source("int width() { return 1; }").replace("attnbench {", "attnbench::q_method {")
        files = {"a/p.cpp": source("int width() { return 2; }"), "a/q.cpp": own}
        self.assertEqual(self.groups(files), [["q", "p"]])  # the words of q stay words

    def test_edited_files_are_alone(self) -> None:
        files = {f"a/{name}.cpp": source(f"int only_{name}() {{ return 1; }}") for name in "pqr"}
        self.assertEqual(self.groups(files, edited="0123abcd\na/q.cpp\n"), [["p", "r"], ["q"]])


if __name__ == "__main__":
    unittest.main()
