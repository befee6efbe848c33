"""Source files, as the tests of their English read them: comments, docstrings and strings, without code."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple


class Passage(NamedTuple):
    """Text that is read as one: its parts in order, each with the number of the one line that it is from."""

    parts: list[tuple[int, str]]

    @property
    def text(self) -> str:
        return "".join(part for _, part in self.parts)

    def line(self, at: int) -> int:
        """The number of the line that the character at this place of the text is from."""
        for line, part in self.parts:
            if at < len(part):
                return line
            at -= len(part)
        return self.parts[-1][0]


class Comment(NamedTuple):
    line: int
    alone: bool  # on its line
    text: str


STRING = r'"(?:[^"\\\n]|\\.)*"'
CPP = re.compile(
    rf"""(?P<line>//[^\n]*) | (?P<block>/\*.*?\*/)
       | \bR"(?P<end>[^\s()\\]*)\((?P<raw>.*?)\)(?P=end)" | (?P<string>{STRING})
       | '(?:[^'\\\n]|\\.)+' | \b\d[\w.]*(?:'\w+)+""",
    re.DOTALL | re.VERBOSE,
)
JAVASCRIPT = re.compile(
    rf"""(?P<line>//[^\n]*) | (?P<block>/\*.*?\*/)
       | {STRING} | '(?:[^'\\\n]|\\.)*' | `(?:[^`\\]|\\.)*`
       | (?<=[(,=:!&|?>]) [ ]? /(?!\*)(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/""",
    re.DOTALL | re.VERBOSE,
)
SHELL = re.compile(r"(?:^|(?<=\s))#(?!!)[^\n]*", re.MULTILINE)


def language(file: str) -> str:
    """The ending of a source file's name; that of what a template becomes."""
    return Path(file.removesuffix(".in")).suffix


def line_at(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def alone(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def lines(first: int, text: str) -> list[tuple[int, str]]:
    return [(first + i, line.strip() + "\n") for i, line in enumerate(text.split("\n"))]


def paragraphs(comments: Iterable[Comment]) -> Iterator[Passage]:
    """One passage for each run of comments on lines that follow each other. Code before a comment begins another run."""
    run: list[tuple[int, str]] = []
    for comment in comments:
        if run and not (comment.alone and comment.line == run[-1][0] + 1):
            yield Passage(run)
            run = []
        run.append((comment.line, comment.text.strip() + "\n"))
    if run:
        yield Passage(run)


def line_comments(text: str, pattern: re.Pattern[str]) -> Iterator[Comment]:
    for found in pattern.finditer(text):
        if found["line"]:
            yield Comment(line_at(text, found.start()), alone(text, found.start()), found["line"].lstrip("/"))


def block_comments(text: str, pattern: re.Pattern[str]) -> Iterator[Passage]:
    for found in pattern.finditer(text):
        if found["block"]:
            shown = re.sub(r"^\s*\*", "", found["block"][2:-2], flags=re.MULTILINE)
            yield Passage(lines(line_at(text, found.start()), shown))


def python_text(text: str) -> Iterator[Passage]:
    comments: list[Comment] = []
    before = tokenize.NEWLINE  # the token before, but for comments and ends of lines within a statement
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append(Comment(token.start[0], alone(token.line, token.start[1]), token.string.lstrip("#!")))
        elif token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            quote = re.match(r"\w*(\"\"\"|'''|[\"'])", token.string)
            assert quote
            yield Passage(lines(token.start[0], token.string[quote.end() : -len(quote[1])]))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    yield from paragraphs(comments)


def comments(file: str, text: str) -> Iterator[Passage]:
    """The comments of a file of C++, Python (with the docstrings), JavaScript or shell."""
    ending = language(file)
    if ending in (".py", ".pyi"):
        yield from python_text(text)
    elif ending == ".sh":
        found = SHELL.finditer(text)
        yield from paragraphs(Comment(line_at(text, at.start()), alone(text, at.start()), at[0][1:]) for at in found)
    else:
        pattern = JAVASCRIPT if ending == ".js" else CPP
        yield from paragraphs(line_comments(text, pattern))
        yield from block_comments(text, pattern)


def unescaped(literal: str) -> str:
    """The text of a literal in C++: its quotation marks and ends of lines, and a space for any other escape."""
    return re.sub(r"\\(.)", lambda found: {"n": "\n", '"': '"'}.get(found[1], " "), literal)


def literal_parts(text: str, found: re.Match[str]) -> list[tuple[int, str]]:
    line = line_at(text, found.start())
    return lines(line, found["raw"]) if found["raw"] is not None else [(line, unescaped(found["string"][1:-1]))]


def strings(text: str) -> Iterator[Passage]:
    """The string literals of a file of C++. Adjacent ones are one; those that quote a paper are left out."""
    code = CPP.sub(lambda found: re.sub(r"[^\n]", " ", found[0]) if found["line"] or found["block"] else found[0], text)
    groups: list[list[re.Match[str]]] = []
    end = 0
    for found in CPP.finditer(code):
        if found["string"] is None and found["raw"] is None:
            continue
        if groups and not code[end : found.start()].strip():
            groups[-1].append(found)
        else:
            groups.append([found])
        end = found.end()
    for group in groups:
        if not code[: group[0].start()].rstrip().endswith(".quotation ="):
            yield Passage([part for found in group for part in literal_parts(code, found)])
