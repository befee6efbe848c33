#!/usr/bin/python3
"""The tokeniser (harness/inputs/checkpoint/tokeniser.hpp) against Hugging Face's `tokenizers`, on random texts of all
scripts: tokenisers of each splitting rule that this test trains, and SmolLM2's if the file is there.

Run as tests/scripts/tokeniser_test.py. ATTNBENCH names the program, beside which attnbench_tests lies. ATTNBENCH_GGUF
names SmolLM2's .gguf file; ATTNBENCH_TEXT_COUNT sets how many texts each of the twelve comparisons has. Needs PyPI's
`tokenizers` and, for SmolLM2, `gguf`.

Texts have characters that Unicode 14 assigns, because Debian's PCRE2 knows no later ones. `tokenizers` 0.23 composes
characters (NFC) by tables that are older than Unicode 10, the tokeniser by those of Unicode 15, so texts for NFC leave
out marks that `tokenizers` orders otherwise than Python does.
"""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata
import unittest
from pathlib import Path
from typing import Any

try:
    import tokenizers
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
except ImportError:
    print("skipped: needs PyPI's tokenizers")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("ATTNBENCH", "build/release/attnbench")).parent / "attnbench_tests"
COUNT = int(os.environ.get("ATTNBENCH_TEXT_COUNT", "10000"))
VOCABULARY = 3000

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
AFTER_NUMBERS = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + AFTER_NUMBERS
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + AFTER_NUMBERS
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    + CONTRACTIONS
    + r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    + CONTRACTIONS
    + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

WHITE = "\t\n\v\f\r \x1c\x1f\x85\xa0\u1680\u180e\u2000\u2003\u2009\u200b\u200d\u2028\u2029\u202f\u205f\u3000\ufeff"
WORDS = (
    "def return self.x == != -> :: /* */ // # { } ( ) [ ] ; , . <tag attr=\"v\"> 'll 've 's 'S 'T 'RE 're'd can't WON'T "
    'I\'M snake_case camelCase 0x1F 3.14159 1_000_000 12345678 int main() std::vector<int> \\n \\\\ "text" `code` -- '
    "&& || <= >= += 'ſ 'ſt ß ﬁ \N{KELVIN SIGN} İ ı http://a.b/c?d=e&f#g @user #tag 50% $5 ¼ Ⅷ ² ٣٤ 一二三 é e\u0301"
).split(" ")
CODE_SPACE = [" ", " ", " ", "  ", "    ", "\n", "\n    ", "\n\n", "\r\n", "\t", ""]


def assigned() -> list[str]:
    return [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) not in ("Cn", "Cs")]


class Texts:
    """Random texts of six kinds in turn."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.characters = assigned()
        # Without the private use areas, which are nine tenths of all characters.
        self.public = [c for c in self.characters if unicodedata.category(c) != "Co"]
        self.numbers = [c for c in self.public if unicodedata.category(c)[0] == "N"]
        self.pages = corpus()

    def many(self, count: int) -> list[str]:
        kinds = [self.script, self.any, self.code, self.white, self.number, self.page]
        return [kinds[i % len(kinds)]() for i in range(count)]

    def some(self, characters: Any, most: int) -> str:
        return "".join(self.random.choices(characters, k=self.random.randint(1, most)))

    def script(self) -> str:
        at = self.random.randrange(len(self.public) - 64)
        block = self.public[at : at + 64]
        words = [self.some(block, 9) for _ in range(self.random.randint(1, 8))]
        return "".join(word + self.random.choice([" ", " ", ", ", "\n", "'s ", ". "]) for word in words)

    def any(self) -> str:
        return self.some(self.public if self.random.random() < 0.9 else self.characters, 30)

    def code(self) -> str:
        return "".join(
            self.random.choice(WORDS) + self.random.choice(CODE_SPACE) for _ in range(self.random.randint(1, 20))
        )

    def white(self) -> str:
        return "".join(
            self.some(WHITE, 5) if self.random.random() < 0.7 else self.random.choice(["a", "7", "é", "!", "'s"])
            for _ in range(self.random.randint(1, 12))
        )

    def number(self) -> str:
        return "".join(
            self.random.choice([self.some("0123456789", 7), self.some(self.numbers, 4), " ", "x", ".", "-", "\n"])
            for _ in range(self.random.randint(1, 12))
        )

    def page(self) -> str:
        page = self.random.choice(self.pages)
        at = self.random.randrange(len(page))
        return page[at : at + self.random.randint(1, 200)]


def composed_otherwise() -> str:
    """Characters of Unicode 14 for which `tokenizers` composes or orders otherwise than Python, which knows Unicode 14."""
    nfc = normalizers.NFC()

    def differs(character: str) -> bool:
        # Among marks of the classes 1 and 240, nearly the lowest and the highest, a mark shows whether it has a class.
        probes = (character, unicodedata.normalize("NFD", character), f"a{character}\u0334", f"a\u0345{character}")
        return any(nfc.normalize_str(probe) != unicodedata.normalize("NFC", probe) for probe in probes)

    return "".join(filter(differs, assigned()))


def corpus() -> list[str]:
    paths = [*ROOT.glob("docs/*.md"), *ROOT.glob("harness/core/*.cpp"), *ROOT.glob("scripts/*.py"), Path(__file__)]
    return [path.read_text() for path in sorted(paths) if path.stat().st_size]


def byte_level(**options: bool) -> Any:
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": True, **options})


def by_pattern(pattern: str, behavior: str = "isolated", invert: bool = False) -> Any:
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), behavior, invert), byte_level(use_regex=False)]
    )


def trained(pre_tokenizer: Any, normalizer: Any = None) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def ours(tokeniser: dict[str, Any], texts: list[bytes]) -> list[tuple[list[int], bytes]]:
    """Ids and decoded bytes of each text by the tokeniser under test."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tokeniser.json").write_text(json.dumps(tokeniser))
        (folder / "texts").write_bytes(b"".join(struct.pack("<I", len(text)) + text for text in texts))
        environment = {
            **os.environ,
            "ATTNBENCH_TOKENISER": str(folder / "tokeniser.json"),
            "ATTNBENCH_TEXTS": str(folder / "texts"),
            "ATTNBENCH_IDS": str(folder / "ids"),
        }
        run = subprocess.run([PROGRAM, "[.tokenise]"], env=environment, capture_output=True, text=True)
        if run.returncode or not (folder / "ids").exists():
            raise AssertionError(run.stdout[-3000:] + run.stderr[-3000:])
        written = (folder / "ids").read_bytes()
    results, at = [], 0
    while at < len(written):
        (count,) = struct.unpack_from("<I", written, at)
        ids = list(struct.unpack_from(f"<{count}I", written, at + 4))
        at += 4 + 4 * count
        (length,) = struct.unpack_from("<I", written, at)
        results.append((ids, written[at + 4 : at + 4 + length]))
        at += 4 + length
    return results


class Agreement(unittest.TestCase):
    made: Texts

    @classmethod
    def setUpClass(cls) -> None:
        cls.made = Texts(seed=1)

    def agree(self, theirs: Tokenizer, tokeniser: dict[str, Any] | None = None, leave_out: str = "") -> list[bytes]:
        """Compares ids; returns the texts that ours decodes."""
        texts = self.made.many(COUNT)
        if leave_out:
            texts = [text.translate({ord(c): None for c in leave_out}) for text in texts]
        found = ours(tokeniser or json.loads(theirs.to_str()), [text.encode() for text in texts])
        self.assertEqual(len(found), len(texts))
        self.texts = texts
        wrong = 0
        for text, (ids, _), encoding in zip(texts, found, theirs.encode_batch(texts, add_special_tokens=False)):
            if ids != encoding.ids:
                wrong += 1
                if wrong <= 5:
                    print(f"{text!r}: {ids}, but tokenizers has {encoding.ids} {encoding.tokens}", file=sys.stderr)
        self.assertEqual(wrong, 0, f"of {len(texts)} texts")
        return [decoded for _, decoded in found]

    def comes_back(self, decoded: list[bytes]) -> None:
        self.assertEqual(decoded, [text.encode() for text in self.texts])

    def test_gpt2(self) -> None:
        tokenizer = trained(byte_level())
        self.comes_back(self.agree(tokenizer))
        described = json.loads(tokenizer.to_str())  # merges as files before 2024 have them
        described["model"]["merges"] = [" ".join(pair) for pair in described["model"]["merges"]]
        self.agree(tokenizer, described)

    def test_prefix_space(self) -> None:
        self.agree(trained(byte_level(add_prefix_space=True)))

    def test_smollm(self) -> None:
        self.comes_back(
            self.agree(trained(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()])))
        )

    def test_digits_together(self) -> None:
        self.agree(trained(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), byte_level()])))

    def test_llama3(self) -> None:
        described = json.loads(trained(by_pattern(LLAMA3)).to_str())
        # A token to which no merge leads: only ignore_merges finds it.
        described["model"]["vocab"]["Ġhttp"] = len(described["model"]["vocab"])
        described["model"]["ignore_merges"] = True
        self.comes_back(self.agree(Tokenizer.from_str(json.dumps(described))))

    def test_qwen2(self) -> None:
        tokenizer = trained(by_pattern(QWEN2), normalizers.NFC())
        tokenizer.add_tokens([tokenizers.AddedToken("<tag", normalized=False), "def", "  ", "    "])
        tokenizer.add_special_tokens(["<|" + "end|>"])  # in two parts, because texts have parts of this file
        decoded = self.agree(tokenizer, leave_out=composed_otherwise())
        self.assertEqual(decoded, [unicodedata.normalize("NFC", text).encode() for text in self.texts])

    def test_gpt4o(self) -> None:
        self.comes_back(self.agree(trained(by_pattern(GPT4O))))

    def test_removed(self) -> None:
        self.agree(trained(by_pattern(r"\s+", "removed")))
        self.agree(trained(by_pattern(r"\p{L}+|\p{N}", "removed", invert=True)))
        self.agree(trained(by_pattern(r"\p{Han}+|\p{Greek}", "isolated")))

    def test_smollm2_itself(self) -> None:
        path = os.environ.get("ATTNBENCH_GGUF", "")
        if not Path(path).is_file():
            self.skipTest("ATTNBENCH_GGUF names no file")
        try:
            from gguf import GGUFReader
        except ImportError:
            self.skipTest("needs PyPI's gguf")
        fields = GGUFReader(path).fields
        model, pre, tokens, merges = (
            fields[f"tokenizer.ggml.{name}"].contents() for name in ("model", "pre", "tokens", "merges")
        )
        self.assertEqual((model, pre), ("gpt2", "smollm"))
        theirs = Tokenizer(
            models.BPE({token: id for id, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in merges])
        )
        theirs.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()])
        # The vocabulary has no token for 21 bytes. Assigned characters have six of them, these control characters:
        # `tokenizers` drops them, ours refuses them.
        missing = "".join(chr(code) for code in (4, 6, 19, 20, 22, 29))
        described = {"model": model, "pre": pre, "tokens": tokens, "merges": merges}
        self.comes_back(self.agree(theirs, described, leave_out=missing))
        with self.assertRaisesRegex(AssertionError, "no token for the byte 0x04"):
            ours(described, [b"a\x04"])


if __name__ == "__main__":
    if not PROGRAM.exists():
        print(f"skipped: no {PROGRAM}")
        sys.exit(77)
    unittest.main(verbosity=2)
