"""Small mistakes that tests should find, made by rule in a line of C++ or Python. OPERATORS lists the rules.

A rule reads tokens, so it changes no comment and no text in quotes. Not every mistake compiles, and some compute the same
as the line before.
"""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

SCANNER = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
      | (?P<text>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
      | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<symbol><=>|<<=|>>=|->|::|\+\+|--|&&|\|\||<<|[-+*/%&|^=!<>]=|[^\s])""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
NUMBER = re.compile(r"(?P<whole>\d+)[uUlLzZ]*|(?P<real>\d*\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)[fFlL]?")
PYTHON_KINDS = {tokenize.NAME: "word", tokenize.NUMBER: "number", tokenize.OP: "symbol", tokenize.STRING: "text"}

OPENING, CLOSING = "( [ {".split(), ") ] }".split()
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "in": "not in", "is": "is not"}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "//": "*"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
LOGIC = {"&&": "||", "||": "&&", "and": "or", "or": "and"}
# How tightly the operators between terms bind.
LEVEL = {"||": 1, "or": 1, "&&": 2, "and": 2, **dict.fromkeys(COMPARISONS, 3), "+": 4, "-": 4}
LEVEL |= dict.fromkeys(ARITHMETIC.keys() - LEVEL.keys(), 5)
ENDS_TERM = set("= , ; ? : << := | & return if else for not lambda yield assert raise throw case while elif".split())
ENDS_TERM |= ASSIGNMENTS.keys()
PARTNERS = (
    "min max, floor ceil, rows cols, row col, topRows bottomRows, leftCols rightCols, front back, any_of all_of, any all, "
    "lower_bound upper_bound, sin cos, exp expm1, log log1p, first second, rowwise colwise, startswith endswith, "
    "starts_with ends_with, sum mean, nq nk, Q K, true false, True False, break continue, find rfind"
)
PARTNER = {a: b for pair in PARTNERS.split(", ") for a, b in (pair.split(), reversed(pair.split()))}
# Calls of one argument that change its type alone, or what no test can see.
CONVERSIONS = set(
    "double float int size_t Index T str list tuple sorted move forward string view eval array matrix noalias reserve "
    "c_str data sizeof decltype get static_cast len size begin end empty value".split()
)
SYMMETRIC = set("max min hypot gcd swap isclose".split())
NO_CALL = set("if for while switch catch return and or not in is else elif assert print super".split())
# A line that begins with one of these declares something, which the compiler checks.
NOT_MUTATED = set("using namespace template static_assert assert friend typedef import from class struct @".split())
MODULES = ("std", "math", "boost", "np", "fmt")


@dataclass(frozen=True)
class Token:
    kind: str  # word, number, symbol, text (in quotes); the end of a statement in Python is the symbol ;
    text: str
    start: int
    end: int


def line_starts(text: str) -> list[int]:
    return [0, *accumulate(map(len, text.splitlines(keepends=True)))]


def tokens_of_cpp(text: str) -> list[Token]:
    found = [(match.lastgroup or "", match) for match in SCANNER.finditer(text)]
    return [Token(kind, m[0], m.start(), m.end()) for kind, m in found if kind not in ("comment", "directive")]


def tokens_of_python(text: str) -> list[Token]:
    starts, found = line_starts(text), []
    for kind, string, (line, column), (last, end), _ in tokenize.generate_tokens(io.StringIO(text).readline):
        if kind == tokenize.NEWLINE:
            found.append(Token("symbol", ";", starts[line - 1] + column, starts[line - 1] + column))
        elif kind in PYTHON_KINDS:
            found.append(Token(PYTHON_KINDS[kind], string, starts[line - 1] + column, starts[last - 1] + end))
    return found


@dataclass
class Line:
    text: str
    tokens: list[Token]  # that begin on this line, counted from its beginning
    previous: str  # the token before the line
    python: bool

    @property
    def words(self) -> list[str]:
        return [token.text for token in self.tokens]

    def replaced(self, first: int, last: int, text: str) -> str:
        """The line with that text in place of the tokens from `first` to before `last`."""
        return self.text[: self.tokens[first].start] + text + self.text[self.tokens[last - 1].end :]

    def between(self, first: int, last: int) -> str:
        return self.text[self.tokens[first].start : self.tokens[last - 1].end] if first < last else ""

    def partner(self, i: int, step: int = 1) -> int | None:
        """The index of the bracket that closes the one at i (opens it: step = -1), if it is on this line."""
        depth = 0
        while 0 <= i < len(self.tokens):
            depth += step * ((self.tokens[i].text in OPENING) - (self.tokens[i].text in CLOSING))
            if depth == 0:
                return i
            i += step
        return None

    def is_binary(self, i: int) -> bool:
        """Whether the token is an operator between two terms. clang-format and black have spaces around these."""
        token, before = self.tokens[i], self.tokens[i - 1] if i > 0 else None
        spaces = self.text[token.start - 1 : token.start].strip() + self.text[token.end : token.end + 1].strip() == ""
        return (
            spaces
            and (before is None or before.text in CLOSING or before.kind != "symbol")
            and not (before and before.text in ENDS_TERM)
        )

    def level(self, i: int) -> int:
        return LEVEL.get(self.tokens[i].text, 9) if self.is_binary(i) else 9

    def after_term(self, i: int, level: int = 0) -> int | None:
        """The index after the term that begins at i, or None if it is empty or goes on after this line."""
        first = i
        while i < len(self.tokens) and self.tokens[i].text not in (*CLOSING, *ENDS_TERM) and self.level(i) > level:
            closing = self.partner(i)
            if closing is None:
                return None
            i = closing + 1
        return i if i > first else None

    def first_of_term(self, i: int, level: int) -> int | None:
        """The index at which the term begins that ends before i."""
        last = i
        while i > 0 and self.tokens[i - 1].text not in (*OPENING, *ENDS_TERM) and self.level(i - 1) >= level:
            opening = self.partner(i - 1, -1)
            if opening is None:
                return None
            i = opening
        return i if i < last else None

    def arguments(self, i: int) -> list[tuple[int, int]]:
        """First and last + 1 of each argument in the brackets at i; none if they do not close on this line."""
        closing = self.partner(i)
        if closing is None or closing == i + 1:
            return []
        found, first, j = [], i + 1, i + 1
        while j < closing:
            if self.tokens[j].text == ",":
                found.append((first, j))
                first = j + 1
            j = (self.partner(j) or j) + 1
        return [*found, (first, closing)] if first < closing else found

    def calls(self) -> Iterator[tuple[int, int]]:
        """The index of a called name, and that of its bracket."""
        for i, (name, bracket) in enumerate(pairwise(self.tokens)):
            before = self.tokens[i - 1] if i > 0 else None
            declares = before and before.kind == "word" and before.text not in ENDS_TERM | NO_CALL
            declares = declares or (before and before.text in (">", "*", "&") and not self.is_binary(i - 1))
            if bracket.text == "(" and name.kind == "word" and name.text not in NO_CALL and not declares:
                yield i, i + 1


Operator = Callable[[Line], Iterator[str]]


def swapped(table: dict[str, str]) -> Operator:
    def swap(line: Line) -> Iterator[str]:
        for i, token in enumerate(line.tokens):
            near = line.tokens[max(0, i - 1) : i + 2]
            in_message = token.text in ARITHMETIC and any(other.kind == "text" for other in near)
            in_phrase = token.text in ("in", "is") and ("for" in line.words or "not" in [other.text for other in near])
            if token.text in table and line.is_binary(i) and not in_message and not in_phrase:
                yield line.replaced(i, i + 1, table[token.text])

    return swap


def drop_term(line: Line) -> Iterator[str]:
    for i, token in enumerate(line.tokens):
        level = line.level(i)
        end, start = line.after_term(i + 1, level), line.first_of_term(i, level)
        if level == 9 or token.text in COMPARISONS or end is None:
            continue
        if token.text == "+" and any(part.kind == "text" for part in line.tokens[i if start is None else start : end]):
            continue  # parts of a message
        yield line.text[: line.tokens[i - 1].end if i > 0 else token.start] + line.text[line.tokens[end - 1].end :]
        if start is not None and token.text in ("+", "*", *LOGIC):
            yield line.text[: line.tokens[start].start] + line.text[line.tokens[i + 1].start :]


def change_constant(line: Line) -> Iterator[str]:
    """Numbers such as 1e-9 stay: they are tolerances, and a test of a hundred times as much would be one of rounding."""
    for i, token in enumerate(line.tokens):
        number = NUMBER.fullmatch(token.text) if token.kind == "number" and "e-" not in token.text else None
        if number and number["whole"]:
            values = [int(number["whole"]) + 1, *([0] if number["whole"] == "1" and line.level(i - 1) != 4 else [])]
            for value in values if i > 0 else values[:1]:
                yield line.replaced(i, i + 1, token.text.replace(number["whole"], str(value)))
        elif number:
            yield line.replaced(i, i + 1, token.text.replace(number["real"], repr(2 * float(number["real"]) or 1.0)))


def negate_condition(line: Line) -> Iterator[str]:
    words = line.words
    for i, word in enumerate(words):
        if word == "if" and not line.python:
            bracket = i + 1 + (words[i + 1 : i + 2] == ["constexpr"])
            closing = line.partner(bracket) if words[bracket : bracket + 1] == ["("] else None
            first = max([j for j in range(bracket, closing or 0) if words[j] == ";"], default=bracket) + 1
            if closing is not None and "=" not in words[first:closing]:
                yield line.replaced(first, closing, f"!({line.between(first, closing)})")
        elif word in ("if", "elif") and "__name__" not in words and (end := line.after_term(i + 1)):
            yield line.replaced(i + 1, end, f"not ({line.between(i + 1, end)})")
        elif word == "?" and (colon := line.after_term(i + 1)) and words[colon : colon + 1] == [":"]:
            if end := line.after_term(colon + 1):
                yield line.replaced(i + 1, end, f"{line.between(colon + 1, end)} : {line.between(i + 1, colon)}")


def drop_negation(line: Line) -> Iterator[str]:
    for token, after in pairwise(line.tokens):
        if token.text in ("!", "not"):
            yield line.text[: token.start] + line.text[after.start :]


def drop_statement(line: Line) -> Iterator[str]:
    """Of a line that is a statement: a call, an assignment to something that exists, a jump, or an if with its body."""
    words, place = line.words, 0
    if words[-1] != ";" or line.tokens[0].kind != "word" or line.previous not in ("else", *";{}):"):
        return
    while line.tokens[place].kind == "word" or words[place] in (
        ".",
        "->",
        "::",
        "(",
        "[",
    ):  # what is called or assigned to
        closing = line.partner(place)
        if closing is None or (place > 0 and line.tokens[place - 1].kind == line.tokens[place].kind == "word"):
            place = 0
            break
        place = closing + 1
    is_call = words[place] == ";" and words[place - 1] == ")" and words[0] not in NO_CALL
    # The first assignment in Python makes a name, and any mistake there is seen.
    is_assignment = words[place] in ASSIGNMENTS or (
        words[place] == "=" and (place > 1 or (place == 1 and not line.python))
    )
    is_jump = words[0] in ("continue", "break") or (line.python and words[0] == "raise")
    if is_call or is_assignment or is_jump or (words[0] == "if" and not line.python):
        yield line.replaced(0, len(words), "pass" if line.python else "{}")


def drop_call(line: Line) -> Iterator[str]:
    """f(x) becomes (x), and x.f(y) becomes x."""
    for i, bracket in line.calls():
        closing, name = line.partner(bracket), line.tokens[i].text
        if closing is None or name in CONVERSIONS or line.words[0] in ("throw", "raise"):
            continue
        first = i
        while first > 1 and (line.words[first - 1] == "::" or (line.words[first - 2] in MODULES)):
            first -= 2
        if first > 1 and line.words[first - 1] in (".", "->"):
            yield line.text[: line.tokens[i - 1].start] + line.text[line.tokens[closing].end :]
        elif len(line.arguments(bracket)) == 1 and not name[0].isupper():
            yield line.replaced(first, bracket, "")


def swap_arguments(line: Line) -> Iterator[str]:
    for i, token in enumerate(line.tokens):
        if token.text not in ("(", "{") or (i > 0 and line.tokens[i - 1].text in SYMMETRIC):
            continue
        for (a, b), (c, d) in pairwise(line.arguments(i)):
            kinds, words = [part.kind for part in line.tokens[a:d]], line.words[a:d]
            declares = ("word", "word") in pairwise(kinds)
            named = {"=", ":", "for", "**"} & {*words}
            if line.between(a, b) != line.between(c, d) and not declares and not named:
                yield line.replaced(a, d, f"{line.between(c, d)}, {line.between(a, b)}")


def exchange_name(line: Line) -> Iterator[str]:
    for i, token in enumerate(line.tokens):
        if token.kind == "word" and token.text in PARTNER:
            yield line.replaced(i, i + 1, PARTNER[token.text])


OPERATORS: dict[str, Operator] = {
    "swap a comparison": swapped(COMPARISONS),
    "swap an arithmetic operator": swapped(ARITHMETIC | ASSIGNMENTS),
    "swap and / or": swapped(LOGIC),
    "drop a term": drop_term,
    "change a constant": change_constant,
    "negate a condition": negate_condition,
    "drop a negation": drop_negation,
    "drop a statement": drop_statement,
    "drop a call": drop_call,
    "swap two arguments": swap_arguments,
    "exchange a name": exchange_name,
}


def mutants(file: str, text: str, lines: set[int]) -> dict[int, list[tuple[str, str, str]]]:
    """By line, counted from 1: the name of a rule, and the line before and after it."""
    tokens = tokens_of_python(text) if file.endswith(".py") else tokens_of_cpp(text)
    starts = line_starts(text)
    rows = [bisect_right(starts, token.start) for token in tokens]
    parts_of_long_text = set[int]()
    for token, row in zip(tokens, rows, strict=True):
        if breaks := token.text.count("\n"):
            parts_of_long_text |= {*range(row, row + breaks + 1)}
    found: dict[int, list[tuple[str, str, str]]] = {}
    for number, before in enumerate(text.splitlines(), 1):
        first, last = bisect_left(rows, number), bisect_right(rows, number)
        if number not in lines - parts_of_long_text or first == last or tokens[first].text in NOT_MUTATED:
            continue
        start = starts[number - 1]
        here = [Token(token.kind, token.text, token.start - start, token.end - start) for token in tokens[first:last]]
        line = Line(before, here, tokens[first - 1].text if first > 0 else ";", file.endswith(".py"))
        made = {after: name for name, rule in reversed(OPERATORS.items()) for after in rule(line) if after != before}
        if made:
            found[number] = [(name, before, after) for after, name in made.items()]
    return found
