#!/usr/bin/python3
"""Tests of scripts/mutation_operators.py: the mistakes that each rule makes of a line, and the text that none touches.

Run as tests/scripts/mutation_operators_test.py; needs no attnbench.
"""

from __future__ import annotations

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from mutation_operators import OPERATORS, mutants

# By rule: a line of C++ or Python, and below it all that the rule makes of it.
ANSWERS = r"""
swap a comparison
  C++  for (T<int> i = a; i < n; ++i)
       for (T<int> i = a; i <= n; ++i)
  C++  x = a == b->c;
       x = a != b->c;
  py   while x in y and z is None: pass
       while x not in y and z is None: pass
       while x in y and z is not None: pass
  py   z = [x for x in y]
swap an arithmetic operator
  C++  y = -a + *b / c;
       y = -a - *b / c;
       y = -a + *b * c;
  C++  y += f(T* a, T&& b);
       y -= f(T* a, T&& b);
  C++  throw Misuse("of " + name);
  py   y = a // b - 1
       y = a * b - 1
       y = a // b + 1
swap and / or
  C++  const bool x = a && b || c;
       const bool x = a || b || c;
       const bool x = a && b && c;
  py   x = a or b
       x = a and b
drop a term
  C++  y = a - b * c;
       y = a;
       y = a - b;
       y = a - c;
  C++  if (a && f(b || c)) return;
       if (a) return;
       if (f(b || c)) return;
       if (a && f(b)) return;
       if (a && f(c)) return;
  C++  y = a + f(b,
  C++  text += "of " + name;
  py   x = a if b and c else d
       x = a if b else d
       x = a if c else d
change a constant
  C++  y = {0, 7u, 0.5, 1e-9, x1};
       y = {1, 7u, 0.5, 1e-9, x1};
       y = {0, 8u, 0.5, 1e-9, x1};
       y = {0, 7u, 1.0, 1e-9, x1};
  C++  y = f(1, n - 1);
       y = f(2, n - 1);
       y = f(0, n - 1);
       y = f(1, n - 2);
negate a condition
  C++  if (const int n = f(); n > 1) return;
       if (const int n = f(); !(n > 1)) return;
  C++  if (const auto* x = f()) return;
  C++  y = a > b ? c : d + e;
       y = a > b ? d + e : c;
  py   elif a == b:
       elif not (a == b):
  py   x = [y for y in z if y]
       x = [y for y in z if not (y)]
  py   if __name__ == "__main__":
drop a negation
  C++  x = !a != b;
       x = a != b;
  py   x = not a
       x = a
drop a statement
  C++    a.b[i].f(c);
         {}
  C++  a[i] += b;
       {}
  C++  if (a) return b;
       {}
  C++  const int a = b;
  C++  T a(b);
  py       a.f(b)
           pass
  py       a.b = c
           pass
  py       raise Misuse(a)
           pass
  py       a = b
  py       return a
drop a call
  C++  y = std::sqrt(a) * X.transpose();
       y = (a) * X.transpose();
       y = std::sqrt(a) * X;
  C++  y = static_cast<double>(x) + f(a, b);
  C++  int f(a);
  py   y = np.log(a.strip())
       y = (a.strip())
       y = np.log(a)
swap two arguments
  C++  f(a, g(b, c), {d, d});
       f(g(b, c), a, {d, d});
       f(a, {d, d}, g(b, c));
       f(a, g(c, b), {d, d});
  C++  y = std::max(a, b);
  C++  void f(int a, int b);
  py   f(a, b, c=d)
       f(b, a, c=d)
exchange a name
  C++  y = std::min(X.rows(), true);
       y = std::max(X.rows(), true);
       y = std::min(X.cols(), true);
       y = std::min(X.rows(), false);
  py   y = all(z)
       y = any(z)
"""


def made(rule: str, file: str, line: str) -> list[str]:
    before = {" ": "if True:\n", "e": "if x:\n    pass\n"}.get(line[0], "\n") if file == "a.py" else ";\n"
    text = before + line + ("\n    pass\n" if line.endswith(":") else "\n")
    number = before.count("\n") + 1
    return [after for name, _, after in mutants(file, text, {number}).get(number, []) if name == rule]


class Operators(unittest.TestCase):
    def test_every_rule_makes_its_mistakes_and_no_others(self) -> None:
        rules = re.split(r"^(?=\w)", ANSWERS, flags=re.MULTILINE)[1:]
        self.assertEqual([rule.splitlines()[0] for rule in rules], list(OPERATORS))
        for rule in rules:
            for language, line, afters in re.findall(r"^  (C\+\+|py )  (.+)\n((?: {7}.+\n)*)", rule, re.MULTILINE):
                with self.subTest(rule.splitlines()[0], line=line):
                    found = made(rule.splitlines()[0], "a.cpp" if language == "C++" else "a.py", line)
                    self.assertEqual(sorted(found), sorted(after[7:] for after in afters.splitlines()))

    def test_comments_and_texts_and_declarations_stay(self) -> None:
        cpp = """
#include "a/b.hpp"  // a < b
#define X(a) \\
  (a + 1)
/* y = a + b;
   f(a, b); */
using T = U<1>;
const char* text = R"(a < b
y = a + 1;
)";
const auto name = "a + b", other = 'a', more = u8"1 - 1";
"""
        self.assertEqual(mutants("a.cpp", cpp, set(range(1, 20))), {})
        python = '''
"""a < b
y = a + 1
"""
from a import b
x = "a + 1"  # a + 1
y = (
    """
    a + 1
"""
)
'''
        self.assertEqual(mutants("a.py", python, set(range(1, 20))), {})

    def test_only_the_lines_that_are_asked_for_change_and_each_mistake_is_made_once(self) -> None:
        text = "x = 1;\nif (a + 1 < b)\n  return x;\n"
        self.assertEqual(list(mutants("a.cpp", text, {2, 3})), [2])
        afters = [after for _, _, after in mutants("a.cpp", text, {2})[2]]
        self.assertEqual(len(afters), len(set(afters)))
        self.assertNotIn("if (a + 1 < b)", afters)


if __name__ == "__main__":
    unittest.main()
