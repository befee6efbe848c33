#!/usr/bin/python3
"""Tests that documents, comments and the program's messages avoid the phrases that CONTRIBUTING.md warns of.

Code and quotations ("...") are exempt. Run as tests/scripts/english_test.py; needs no attnbench.
"""

from __future__ import annotations

import re
import unittest
from collections.abc import Iterator
from typing import NamedTuple

from markdown_text import ROOT, blank, prose, tracked_files
from source_text import Passage, comments, language, strings


class Phrase(NamedTuple):
    pattern: re.Pattern[str]
    instead: str
    examples: tuple[str, ...]


# The beginning of a sentence, of a heading, of a list's item or of a table's cell.
BEGIN = r"(?:^|(?<=[.!?:;|] )|(?<=[.!?]\n)|(?<=\n\n)|(?<=# )|(?<=[-*] )|(?<=\*\*))"

PHRASES = [
    Phrase(
        re.compile(r"\b(?:is|are|was|were|be)\s+none\b"),
        "say what it is: NaN, missing, empty",
        ("Numbers that are none throw.", "a number is none", "a line that was\nnone"),
    ),
    Phrase(
        re.compile(
            r"\b(?:that|which|this|these|it|they|what)\s+(?:is|are)\s+no\b(?!\s+longer|\s+more|\s+less)", re.IGNORECASE
        ),
        '"is not a ..."',
        ("A file that is no plugin is refused.", "They are no sample of one."),
    ),
    Phrase(
        re.compile(BEGIN + r"What\b", re.MULTILINE),
        "begin with the subject",
        (
            "What cannot be loaded is the answer.",
            "It ends. What is left is timed.",
            "## What happens",
            "- What an entry claims",
            "| a | What it does |",
            "It ends.\nWhat is left is timed.",
        ),
    ),
    Phrase(re.compile(r"\bwhatever\b", re.IGNORECASE), "name it, or: for every", ("Scratch is small, whatever n.",)),
    Phrase(re.compile(r"\banew\b", re.IGNORECASE), "again", ("Every merge makes it anew.",)),
    Phrase(
        re.compile(r"\bmend(?:s|ed|ing)?\b", re.IGNORECASE), "fix, repair", ("how to mend it", "The command mends it.")
    ),
    Phrase(
        re.compile(r"\bst(?:ands?|anding|ood)\b(?!-ins?\b|\s+for\b)", re.IGNORECASE),
        "is, is written",
        ("The text stands in its file.", "It stands with the statement.", "as they stand"),
    ),
    Phrase(
        re.compile(BEGIN + r"Else\b|\belse,", re.MULTILINE),
        "otherwise, and the condition",
        ("Else a Krylov space is used.",),
    ),
    Phrase(re.compile(r"\bbelongs?\s+into\b"), "belongs in", ("It belongs into the folder.",)),
    Phrase(re.compile(r"\bha(?:s|ve)\s+not\s+got\b"), "lacks", ("A cell that has not got it",)),
    Phrase(re.compile(r"\bwhoever\b", re.IGNORECASE), "name the actor", ("Whoever started it waits.",)),
    Phrase(
        re.compile(r"\bfor\s+what\s+(?:is|are|was|were|has|have)\b"),
        "name the thing",
        ("Throws for what is wrong.", "a gap for what\nhas failed"),
    ),
    Phrase(re.compile(r"\bof\s+which\s+what\b"), "two sentences", ("of which what it says takes the place",)),
]

QUOTATION = re.compile(r'"[^"]*"')
SOURCES = (".cpp", ".hpp", ".py", ".pyi", ".js", ".sh")
PROGRAM = ("approximations/", "experiments/", "harness/")


def own_words(text: str) -> str:
    """The prose, with spaces in place of quotations. A quotation ends in the paragraph that it begins in."""
    paragraphs = re.split(r"(\n\s*\n)", prose(text))
    return "".join(blank(part, QUOTATION) if part.count('"') % 2 == 0 else part for part in paragraphs)


def found_in(file: str, passage: Passage) -> Iterator[str]:
    words = own_words(passage.text)
    for phrase in PHRASES:
        for found in phrase.pattern.finditer(words):
            shown = " ".join(words[found.start() : found.end() + 40].split())
            yield f"{file}:{passage.line(found.start())}: '{shown}'; {phrase.instead}"


def found_in_document(file: str, text: str) -> Iterator[str]:
    yield from found_in(file, Passage(list(enumerate(text.splitlines(keepends=True), start=1))))


def found_in_source(file: str, text: str) -> Iterator[str]:
    """In comments; in the sources of the program in its strings too, but for those of one or two words."""
    passages = list(comments(file, text))
    if file.startswith(PROGRAM) and language(file) in (".cpp", ".hpp"):
        passages += [literal for literal in strings(text) if len(literal.text.split()) >= 3]
    for passage in passages:
        yield from found_in(file, passage)


# Words of others, in a recipe file.
OF_OTHERS = re.compile(
    r'\b(?:quotation|source|reference|quoted\w*) = (?:""".*?"""|"(?:[^"\\]|\\.)*"|' r"'''.*?''')", re.DOTALL
)
WORDS = re.compile(r'#[^\n]*|""".*?"""|"(?:[^"\\\n]|\\.)*"', re.DOTALL)


def found_in_recipe(file: str, text: str) -> Iterator[str]:
    """In comments, and in texts of three words or more."""
    for words in WORDS.finditer(blank(text, OF_OTHERS)):
        if len(words[0].split()) >= 3:
            first = text.count("\n", 0, words.start()) + 1
            lines = words[0].strip('#"').splitlines(keepends=True)
            yield from found_in(file, Passage(list(enumerate(lines, start=first))))


class English(unittest.TestCase):
    def test_recipes_avoid_the_phrases(self) -> None:
        paths = sorted((ROOT / "experiments/recipes").glob("*.toml"))
        self.assertGreaterEqual(len(paths), 50)
        found: list[str] = []
        for path in paths:
            found += found_in_recipe(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
        self.assertEqual(found, [], "\n".join(found))
        words = (
            'text = """\nIt throws for what\nis wrong"""\nquotation = "for what is wrong there"\n# for what is wrong\n'
        )
        self.assertEqual({line.split(":")[1] for line in found_in_recipe("a.toml", words)}, {"2", "5"})

    def test_the_documents_avoid_the_phrases(self) -> None:
        paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
        self.assertGreaterEqual(len(paths), 10)
        found: list[str] = []
        for path in paths:
            found += found_in_document(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
        self.assertEqual(found, [], "\n".join(found))

    def test_comments_and_messages_avoid_the_phrases(self) -> None:
        paths = [path for path in tracked_files(*SOURCES, ".in") if language(path.name) in SOURCES]
        self.assertGreaterEqual(len(paths), 500)
        found: list[str] = []
        for path in paths:
            found += found_in_source(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
        self.assertEqual(found, [], "\n".join(found))

    def test_each_phrase_is_found_where_it_is_written(self) -> None:
        for phrase in PHRASES:
            for example in phrase.examples:
                with self.subTest(example=example):
                    text = f"One sentence.\n\n{example}\n"
                    self.assertEqual([at.endswith(phrase.instead) for at in found_in_document("a.md", text)], [True])
                    self.assertTrue(next(found_in_document("a.md", text)).startswith("a.md:"))

    def test_plain_sentences_code_and_quotations_pass(self) -> None:
        for text in (
            "A method produced NaN or infinity. The runner records it as invalid.",
            "The line says what was given, what was expected and how to fix it.",
            "Workers hold stand-ins. A code stands for a normal law. You understand the standard.",
            "There is no GPU, and it is no longer needed. None of them runs. An amendment follows.",
            "`--else, whatever` is code.\n\n```sh\nWhat stands anew\n```\n",
            'The source says "What is known\nstands" and no more.',
        ):
            with self.subTest(text=text):
                self.assertEqual(list(found_in_document("a.md", text)), [])

    def test_a_quotation_mark_without_its_other_one_hides_nothing(self) -> None:
        text = 'An inch is 1".\n\nIt stands alone.\n\nAnother inch is 1".\n'
        self.assertEqual(len(list(found_in_document("a.md", text))), 1)


class Sources(unittest.TestCase):
    """Comments and strings are found by the language of a file; code is not."""

    def lines(self, file: str, text: str) -> list[int]:
        """The lines of the findings."""
        return sorted(int(at.split(":")[1]) for at in found_in_source(file, text))

    def test_each_phrase_is_found_in_comments_docstrings_and_strings(self) -> None:
        for phrase in PHRASES:
            for example in phrase.examples:
                texts = {
                    "tests/a.cpp": "int a;\n" + "".join(f"  // {line}\n" for line in example.split("\n")),
                    "tests/b.cpp": f"int a;\n/* {example} */\n",
                    "a.js": "a();\n" + "".join(f"  // {line}\n" for line in example.split("\n")),
                    "a.sh": "a\n" + "".join(f"# {line}\n" for line in example.split("\n")),
                    "a.py": "a = 1\n" + "".join(f"# {line}\n" for line in example.split("\n")),
                    "b.py": f'def f() -> None:\n    """{example}"""\n',
                    "a.py.in": f'class A:\n    """{example}"""\n',
                    "harness/a.cpp": "f(\n"
                    + "\n".join(f'"{line}\\n"' for line in f"{example} 1 2".split("\n"))
                    + ");\n",
                }
                # Every text has the example from its second line on.
                expected = [int(at.split(":")[1]) + 1 for at in found_in_document("a.md", example)]
                self.assertEqual(len(expected), 1)
                for file, text in texts.items():
                    with self.subTest(example=example, file=file):
                        self.assertEqual(self.lines(file, text), expected)

    def test_code_passes(self) -> None:
        for file, text in (
            ("harness/a.cpp", "bool is_none = what; if (is none) anew(1'000, '\"', whatever);  // The answer.\n"),
            ("harness/a.cpp", '#include "stands/anew.hpp"\nauto a = "stands anew";  // of two words\n'),
            ("tests/a.cpp", 'auto a = "It stands in its file.", b = R"(// It stands.\n)";\n'),
            ("a.py", 'a = "# It stands."\nf(\n    "It stands in its file."\n)\nanew = mend(stands)\n'),
            ("a.js", 'a = \'// It stands.\'; b = "// It stands."; c = `\n// ${anew}`; d(/[/]"// anew/, stands);\n'),
            ("harness/a.py.in", 'a = "It stands in its file."\n'),
            ("a.sh", "#!/usr/bin/stands\nanew $# ${stands#anew}\n"),
            ("tests/a.cpp", "// `It stands` is code.\n"),
        ):
            with self.subTest(file=file, text=text):
                self.assertEqual(self.lines(file, text), [])

    def test_marks_of_strings_in_code_hide_no_comment(self) -> None:
        for file, text in (
            ("a.cpp", 'f(\'"\');  // It stands in "quotes".\n'),
            ("a.cpp", "f(1'000);  // It isn't where it stands.\n"),
            ("a.cpp", 'f("//", "\\"");  // It stands.\ng("a");\n'),
            ("a.cpp", 'f(R"x(")" )x");  // It stands.\ng("a");\n'),
            ("a.js", "f(x => /`/.test(x));  // It stands.\ng(`a`);\n"),
            ("a.js", "f(/['\"]/, 1 / 2 / 3);  // It stands, isn't it?\n"),
            ("a.js", "f(a, /* It stands. */ b);\n"),
            ("a.py", "f('#', '\"');  # It stands.\n"),
            ("a.sh", "f $# '#';  # It stands.\n"),
        ):
            with self.subTest(file=file, text=text):
                self.assertEqual(self.lines(file, text), [1])

    def test_docstrings_are_strings_that_are_statements(self) -> None:
        for text, expected in (
            ('#!/usr/bin/python3\n# A comment.\n\n"""It stands."""\n', [4]),
            ("class A:\n    # A comment.\n\n    b: int\n    'It stands.'\n", [5]),
            ('if a:\n    b\n\nr"""\nIt stands.\n"""\n', [5]),
            ('a = (\n    # A comment.\n\n    "It stands."\n)\n', []),
        ):
            with self.subTest(text=text):
                self.assertEqual(self.lines("a.py", text), expected)

    def test_strings_of_the_program_are_found_where_they_are_written(self) -> None:
        for text, expected in (
            ('f("It ends.\\n"\n  "It "  // why\n  "stands there.");\n', [3]),
            ('f("the end\\nWhat is left");\n', [1]),
            ('f("It is",\n  "none of it");\n', []),  # two strings
            ('f(R"(It ends.\nIt stands.)");\n', [2]),
            ("f('\"');\n" + 'f("It stands there.");\n', [2]),
            ('f(x + "It is \\"what stands\\" there.");\n', []),
            ('f(x + "The \\\\ of \\t it stands.");\n', [1]),
            ('a.quotation = "It stands there, "\n  "it stands.";\na.place = "It stands there.";\n', [3]),
            ('a = {.quotation =\n  "It stands there."};\n', []),
        ):
            with self.subTest(text=text):
                self.assertEqual(self.lines("harness/a.cpp", text), expected)
                self.assertEqual(self.lines("tests/a.cpp", text), [])

    def test_a_comment_goes_on_in_the_next_line_unless_code_begins_another(self) -> None:
        self.assertEqual(self.lines("a.hpp", "int a;  // a number that is\n        // none\n"), [1])
        self.assertEqual(self.lines("a.hpp", "int a;  // a number that is\nint b;  // none\n"), [])
        self.assertEqual(self.lines("a.hpp", "// a number that is\n\n// none\n"), [])
        self.assertEqual(self.lines("a.hpp", "/* a number that is\n * none */\n"), [1])
        self.assertEqual(self.lines("a.py", "a = 1  # a number that is\n# none\n"), [1])
        self.assertEqual(self.lines("a.py", "a = 1  # a number that is\nb = 2  # none\n"), [])


if __name__ == "__main__":
    unittest.main()
