#!/usr/bin/python3
"""The console as a user meets it: tables, messages that say what to type, help, completion. Run as tests/cli/console_test.py PROGRAM."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import numpy as np
from numpy.typing import NDArray

PROGRAM = ""
SIZES = ("-n", "32", "-d", "8")


def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, env={**os.environ, **environment})


def on_terminal(*words: str, columns: int = 70, **environment: str) -> str:
    """The output of the program on a terminal of that width."""
    main, other = pty.openpty()
    ioctl(other, TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "LINES")}
    child = subprocess.Popen(
        [PROGRAM, *words], stdin=other, stdout=other, stderr=other, env={**kept, "TERM": "xterm", **environment}
    )
    os.close(other)
    text = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not part:
            break
        text += part
    os.close(main)
    child.wait()
    return text.decode().replace("\r\n", "\n")


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.results = str(self.folder / "results.db")

    def done(self, *words: str | Path, code: int = 0) -> str:
        made = run(*words)
        self.assertEqual(made.returncode, code, made.stdout + made.stderr)
        return made.stdout

    def rows(self, *words: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.done("export", self.results, *words))))

    def heads(self, name: str = "heads.npz", shape: tuple[int, ...] = (4, 32, 8)) -> Path:
        q, k, v = np.random.default_rng(1).standard_normal((3, *shape))
        np.savez(self.folder / name, q=q, k=k, v=v)
        return self.folder / name


class SurroundingsTest(Folder):
    """The system refuses something: each is one line, and no command claims to have done it."""

    def said(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, env={**os.environ, "A": PROGRAM}
        )
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"\A[^\n]+\n\Z")
        return done.stderr

    def test_output_that_cannot_be_written_is_an_error_of_every_command(self) -> None:
        self.done("run", "attention-error", "--method", "uniform", *SIZES, "--results", self.results)
        for command in (
            "list methods",
            "describe local",
            "--version",
            "--help",
            "run --help",
            f"show {self.results}",
            f"export {self.results}",
            f"verify {self.results}",
            f"report {self.results} -o {self.folder / 'report'}",
            f"compare {self.results} {self.results}",
            "check uniform",
            "plan rank --method softmax",
            "completion bash",
        ):
            with self.subTest(command):
                self.assertIn("could not be written", self.said(f'"$A" {command} > /dev/full'))

    def test_a_limit_of_a_files_size_is_a_failed_write(self) -> None:
        self.said(f'ulimit -f 20; exec "$A" run attention-error --method uniform -n 32 -d 8 --results {self.results}')

    def test_a_folder_that_was_removed(self) -> None:
        run = '"$A" run attention-error --method uniform -n 32 -d 8'
        self.assertIn("the current folder was removed", self.said(f"mkdir x && cd x && rmdir ../x && {run}"))

    def test_a_path_that_is_no_text(self) -> None:
        run = '"$A" run attention-error --method uniform -n 32 -d 8 --results r.db'
        recommend = '"$A" recommend --max-error 0.5 --methods local linear'
        folder = os.fsencode(self.folder) + b"/d\xff"
        os.mkdir(folder)
        shutil.copy(self.heads(), os.fsdecode(folder))
        for command in (run, recommend):
            self.assertIn("this is not UTF-8", self.said(f"{command} --input $(printf 'd\\xff/heads.npz')"))
        self.assertFalse((self.folder / "r.db").exists())


class TableTest(Folder):
    def test_a_run_ends_with_the_table_that_show_prints_again(self) -> None:
        words = ("--methods", "performer", "uniform", *SIZES, "--sweep", "m=8,16", "--replicates", "3")
        printed = self.done("run", "attention-error", *words, "--results", self.results)
        table = printed.partition("\n\n")[2]
        self.assertEqual(self.done("show", self.results), table)
        lines = table.splitlines()
        self.assertEqual(lines[0].split(":")[0], "attention-error")
        self.assertIn("relative_output_error", lines[0])
        self.assertIn("mean and 95 % interval of 3 replicates", lines[1])
        self.assertEqual(lines[2].split(), "no m m = 8 m = 16".split())
        numbers: dict[tuple[str, str], list[float]] = {
            (row["method"].split(":")[0], row["m"]): [] for row in self.rows("--metric", "relative_output_error")
        }
        for row in self.rows("--metric", "relative_output_error"):
            numbers[row["method"].split(":")[0], row["m"]].append(float(row["value"]))
        performer, uniform = (re.findall(r"([\d.]+) [±+]", line) for line in lines[3:5])
        self.assertEqual([float(x) for x in performer], [self.digits(numbers["performer", m]) for m in ("8", "16")])
        self.assertEqual([float(x) for x in uniform], [self.digits(numbers["uniform", ""])])

    @staticmethod
    def digits(values: list[float]) -> float:
        return float(f"{sum(values) / len(values):.3g}")

    def test_only_the_cells_of_this_run_are_in_its_table(self) -> None:
        self.done("run", "rank", "--method", "uniform", *SIZES, "--results", self.results)
        printed = self.done("run", "rank", "--method", "softmax", *SIZES, "--results", self.results)
        self.assertNotIn("uniform", printed)
        self.assertRegex(self.done("show", self.results), r"(?s)softmax.*uniform")

    def test_show_takes_a_metric_and_conditions(self) -> None:
        self.done("run", "rank", "--methods", "softmax,uniform", *SIZES, "--results", self.results)
        table = self.done("show", self.results, "--metric", "numerical_rank", "--where", "method=uniform")
        self.assertIn("rank: numerical_rank", table)
        self.assertNotIn("softmax", table)
        self.assertRegex(table, r"\nuniform +1\.00\n")
        for words, expected in (
            (("--metric", "numerical_rnk"), "did you mean numerical_rank?"),
            (("--where", "method=nystrom"), "there are softmax, uniform"),
        ):
            made = run("show", self.results, *words)
            self.assertEqual(made.returncode, 2, made.stdout)
            self.assertIn(expected, made.stderr)

    def test_a_table_fits_its_terminal(self) -> None:
        self.done(
            "run", "rank", "--methods", "softmax", "linear", "-n", "8:512:x2", "-d", "8", "--results", self.results
        )
        for columns in (50, 90, 200):
            table = on_terminal("show", self.results, columns=columns)
            self.assertLessEqual(max(map(len, table.splitlines()[2:5])), columns)
            self.assertEqual("not shown for lack of room" in table, columns < 90)

    def test_a_run_that_measures_nothing_exits_1_and_one_that_skips_a_cell_exits_0(self) -> None:
        self.done("run", "rank", "--method", "linformer", "--causal", *SIZES, "--results", self.results, code=1)
        self.done("run", "rank", "--methods", "linformer", "softmax", "--causal", "-n", "16", "--results", self.results)


class ExportTest(Folder):
    def test_the_file_of_the_review_is_small_and_has_its_parameters_as_columns(self) -> None:
        words = ("--sweep", "features=positive,trig", "--sweep", "m=8,16", "-d", "4", "--replicates", "2")
        self.done(
            "run",
            "kernel-error:draws=256,pairs=8,precision=0",
            "--method",
            "performer",
            *words,
            "--results",
            self.results,
        )
        text = self.done("export", self.results)
        self.assertLess(len(text), 200 * 8 * 60)  # 8 replicates of about 30 scalars; arrays would be megabytes
        rows = self.rows("--metric", "relative_mse", "--where", "features=trig")
        self.assertEqual(
            [(row["m"], row["replicate"]) for row in rows], [("16", "0"), ("16", "1"), ("8", "0"), ("8", "1")]
        )
        wide = self.rows("--wide")
        self.assertEqual(len(wide), 8)
        value = {(row["m"], row["replicate"]): row["value"] for row in rows}
        for row in wide:
            if row["features"] == "trig":
                self.assertEqual(row["relative_mse"], value[row["m"], row["replicate"]])

    def test_equal_runs_give_equal_text_and_the_clock_is_asked_for(self) -> None:
        self.done("run", "rank", "--method", "uniform", *SIZES, "--results", self.results)
        self.assertNotIn("command", self.rows()[0])
        self.assertIn("attnbench run rank", self.rows("--clock")[0]["command"])


class MessageTest(Folder):
    """The table of messages of a review, each with what the user should type."""

    def refused(self, *words: str | Path, says: str) -> None:
        made = run(*words, *(("--results", self.results) if words[0] in ("run", "plan", "recommend") else ()))
        self.assertEqual(made.returncode, 2, made.stdout + made.stderr)
        self.assertIn(says, made.stderr)
        self.assertEqual(made.stderr.count("\n"), 1)
        self.assertFalse(Path(self.results).exists())

    def accepted(self, *words: str | Path) -> list[dict[str, str]]:
        self.done("run", *words, "--results", self.results)
        rows = self.rows("--wide")
        Path(self.results).unlink()
        return rows

    def test_several_methods_and_sizes(self) -> None:
        for words in (("--method", "performer,softmax"), ("--methods", "performer", "softmax")):
            rows = self.accepted("rank", *words, *SIZES)
            self.assertEqual({row["method"] for row in rows}, {"performer", "softmax"})
        rows = self.accepted("rank", "--method", "performer:m=8,features=trig,softmax", "-n", "16,32", "-d", "4:8:x2")
        self.assertEqual({row["method"] for row in rows}, {"performer:features=trig,m=8", "softmax"})
        self.assertEqual({(row["n"], row["d"]) for row in rows}, {("16", "4"), ("16", "8"), ("32", "4"), ("32", "8")})
        rows = self.accepted("attention-error", "--method", "per-head:local,vq:codes=4", *SIZES)
        self.assertEqual(len(rows), 1)
        self.refused("run", "rank", "--method", "performer", "softmax", says="--methods performer softmax")
        self.refused("run", "rank", "--method", "performer", "m=64", says="after a colon: performer:m=64")
        self.refused("run", "rank", "-m", "softmax", "-n", "512", "1024", says="-n 512,1024")
        self.refused("run", "rank", "-m", "softmax", "-n", "512,", says="an empty value")
        self.refused("run", "rank", "-m", "softmax", "-n", "512,a", says="--n a: expected an integer of at least 1")
        self.refused("run", "rank", "--mehtod", "softmax", says="there is no option --mehtod; did you mean --method")

    def test_inputs_are_paths_or_specs_for_every_command(self) -> None:
        path = self.heads()
        rows = self.accepted("attention-error", "--method", "uniform", "--input", f"{path},head=3")
        self.assertEqual([row["input"] for row in rows], [f"file:path={path},head=3"])
        one, all_heads, given = (self.folder / f"{name}.safetensors" for name in ("one", "all", "given"))
        self.done("attend", "softmax", "--input", f"file:{path},head=3", "--output", one)
        self.done("attend", "softmax", "--input", f"{path},head=all", "--output", all_heads)
        self.done("attend", "softmax", "--input", path, "--output", given)
        self.assertEqual(all_heads.read_bytes(), given.read_bytes())
        out, whole = self.tensor(one), self.tensor(given)
        self.assertEqual((out.shape, whole.shape), ((32, 8), (4, 32, 8)))
        np.testing.assert_array_equal(out, whole[3])
        self.done("attend", "uniform", "--input", "gaussian", "--output", one)
        self.assertEqual(self.tensor(one).shape, (1024, 64))
        self.refused("attend", "softmax", "--input", "gausian", "--output", one, says="did you mean gaussian?")
        self.refused("attend", "softmax", "--input", "none.npz", "--output", one, says="there is no such file")

    def test_a_name_in_capitals_is_a_path_too(self) -> None:
        path = self.heads().rename(self.folder / "HEADS.NPZ")
        rows = self.accepted("attention-error", "--method", "uniform", "--input", f"{path},head=1")
        self.assertEqual([row["input"] for row in rows], [f"file:path={path},head=1"])

    def test_what_is_written_replaces_nothing_that_is_read(self) -> None:
        heads, state = self.heads(), self.folder / "state.safetensors"
        read = self.folder / "heads.safetensors"
        self.done(
            "attend", "performer", "--input", heads, "--output", self.folder / "o.safetensors", "--write-state", state
        )
        shutil.copy(self.folder / "o.safetensors", read)
        before = read.read_bytes()
        (self.folder / "link.safetensors").symlink_to(read)
        output, other = ("--output", str(read)), ("--output", str(self.folder / "p.safetensors"))
        for words, says in (
            (("--input", str(read), *output), "--input names this file"),
            (("--input", f"file:{read},head=1", *output), "--input names this file"),
            (("--input", str(self.folder / "." / "link.safetensors"), *output), "--input names this file"),
            (("--input", str(heads), "--calibrate", str(read), *output), "--calibrate names this file"),
            (("--input", str(heads), "--state", str(state), *other, "--write-state", str(state)), "--state names this"),
            (("--input", str(heads), *other, "--write-state", other[1]), "--output names this file"),
        ):
            self.refused("attend", "performer", *words, says=says)
        self.assertEqual(read.read_bytes(), before)

    @staticmethod
    def tensor(path: Path) -> NDArray[np.float32]:
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        entry = json.loads(data[8 : 8 + size])["out"]
        begin, end = entry["data_offsets"]
        return np.frombuffer(data[8 + size + begin : 8 + size + end], np.float32).reshape(entry["shape"])

    def test_attend_draws_the_head_that_a_run_measures(self) -> None:
        rows = self.accepted("attention-error", "--method", "nystrom:landmarks=8", "--input", "gaussian:scale=0.5")
        out, exact = (self.folder / f"{name}.safetensors" for name in ("out", "exact"))
        for spec, path in (("nystrom:landmarks=8", out), ("softmax", exact)):
            self.done("attend", spec, "--input", "gaussian:scale=0.5", "--output", path)
        difference = self.tensor(out) - self.tensor(exact)
        error = np.linalg.norm(difference) / np.linalg.norm(self.tensor(exact))
        self.assertAlmostEqual(error, float(rows[0]["relative_output_error"]), delta=1e-4 * error)

    def test_heads_of_a_file_are_counted_and_all_can_be_measured(self) -> None:
        path = self.heads()
        rows = self.accepted("attention-error", "--method", "uniform", "--input", f"{path},head=all")
        self.assertEqual([row["head"] for row in rows], ["0", "1", "2", "3"])
        self.assertEqual(len({row["relative_output_error"] for row in rows}), 4)
        made = run("run", "attention-error", "--method", "uniform", "--input", path, "--results", self.results)
        self.assertIn(f"has 4 heads; this is head 0 (file:{path},head=all takes all)", made.stderr)
        turned = self.heads("turned.npz", (32, 4, 8))
        made = run("run", "attention-error", "--method", "uniform", "--input", turned, "--results", self.results)
        self.assertIn("32 heads of 4 tokens; if its arrays are [n, heads, d]", made.stderr)
        Path(self.results).unlink()
        self.refused("run", "rank", "-m", "uniform", "--input", "gaussian:head=all", says="unknown parameter 'head'")

    def test_more_heads_in_a_call_than_the_input_has(self) -> None:
        path = self.heads()
        words = ("speed", "--method", "uniform", "--heads")
        says = f"heads=8: file:path={path} has 4 heads, and 4 of them from head 0 on; expected at most 4"
        self.refused("run", *words, "8", "--input", path, says=says)
        self.refused("plan", *words, "8", "--input", path, says=says)
        self.refused("run", *words, "2", "--input", f"{path},head=3", says="1 of them from head 3 on")
        self.refused("run", *words, "4", "--input", "model", says="model has 3 heads, and 2 of them from head 1 on")
        self.done("plan", *words, "2", "--input", f"{path},head=2", "--results", self.results)
        self.done("plan", *words, "8", "--input", "gaussian", "--results", self.results)
        self.assertIn("takes the next ones too", " ".join(self.done("describe", "file").split()))

    def test_axes(self) -> None:
        self.refused("run", "rank", "-m", "local", "--sweep", "m=16,32", says="the budget of local is window")
        self.refused("run", "rank", "-m", "performer", "--sweep", "m=16-256", says="a range reads m=16:256:x2")
        self.refused("run", "rank", "-m", "performer", "--sweep", "m=16..256", says="a range reads m=16:256:x2")
        self.refused(
            "run",
            "rank",
            "-m",
            "uniform",
            "--sweep",
            "scale=0.25:1:x2",
            says="list the values, such as scale=0.25,0.5,1",
        )
        self.refused(
            "run",
            "attention-error",
            "-m",
            "uniform",
            "-n",
            "1000000",
            says="or attention-error:matrix=false, which takes less",
        )

    def test_sizes_of_memory(self) -> None:
        self.refused("run", "rank", "-m", "uniform", "--memory", "4", says="did you mean 4GB?")
        self.refused("recommend", "--max-memory", "64", says="did you mean 64MB?")

    def test_files_of_pytorch(self) -> None:
        zipped, pickled = self.folder / "t.pt", self.folder / "t.pth"
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("t/data.pkl", b"")
        pickled.write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")  # as torch.save wrote before version 1.6
        for path in (zipped, pickled):
            says = f"{path}: a file of torch.save; write q, k and v with np.savez('heads.npz', "
            self.refused("attend", "uniform", "--input", path, "--output", "o.safetensors", says=says)
            self.refused("run", "rank", "-m", "uniform", "--input", path, says=says)
            self.refused("plan", "rank", "-m", "uniform", "--input", f"{path},head=1", says=says)
            self.refused("recommend", "--input", path, says=says)
        self.refused("run", "rank", "-m", "uniform", "--input", "none.pt", says="none.pt: there is no such file")

    def test_a_match_that_no_budget_reaches_is_said(self) -> None:
        words = ("attention-error", "--methods", "uniform", "performer", *SIZES, "--match", "flops=100000")
        made = run("run", *words, "--results", self.results)
        self.assertRegex(made.stderr, r"uniform costs 0\.\d+ of what --match asks for")
        self.assertNotIn("performer", made.stderr)

    def test_more_threads_than_cores(self) -> None:
        self.refused("machine", "--threads", "1000", says="expected at most")


class NameTest(Folder):
    def test_aliases_are_names_of_methods_and_results_have_the_method(self) -> None:
        for alias, method in (
            ("favor", "performer"),
            ("FAVOR+", "performer"),
            ("nystromformer", "nystrom"),
            ("flash", "softmax"),
        ):
            self.assertIn(f"method {method}\n", self.done("describe", alias))
        self.assertIn("also called favor", re.sub(" +", " ", self.done("describe", "performer")))
        self.done("run", "rank", "--methods", "favor:m=8", "Flash", *SIZES, "--results", self.results)
        self.assertEqual({row["method"] for row in self.rows()}, {"performer:m=8", "softmax"})
        self.assertIn("did you mean favor?", run("describe", "favour").stderr)

    def test_metrics_are_listed_and_described(self) -> None:
        listed = self.done("list", "metrics")
        self.assertRegex(listed, r"\n  effective_rank +\[1\] ")
        told = self.done("describe", "effective_rank")
        self.assertIn("metric effective_rank", told)
        self.assertIn("rank", told)
        self.assertIn("did you mean effective_rank", run("describe", "efective_rank").stderr)

    def test_the_version(self) -> None:
        self.assertRegex(self.done("--version"), r"^attnbench \d+\.\d+\.\d+")


class HelpTest(Folder):
    def commands(self) -> list[str]:
        return re.findall(r"^  (\w+) ", self.done("--help").split("examples")[0], re.MULTILINE)

    def test_every_help_has_an_example_that_the_command_accepts_and_no_nameless_value(self) -> None:
        self.assertGreater(len(self.commands()), 15)
        for command in self.commands():
            with self.subTest(command=command):
                text = self.done(command, "--help")
                self.assertIn("\nexamples\n  attnbench " + command, text)
                self.assertNotRegex(text, r"\barg\b")
                self.assertEqual(self.done("help", command), text)
                for example in re.findall(rf"^  attnbench ({command}.*)$", text, re.MULTILINE):
                    words = re.sub(r" >.*| --plugin .*", "", example).split()
                    made = run(*words, "--help")  # the words are parsed before --help answers
                    self.assertEqual(made.returncode, 0, example + made.stderr)

    def test_the_options_of_run_and_plan_are_under_headings(self) -> None:
        for command in ("run", "plan"):
            text = self.done(command, "--help")
            parts = re.split(r"\n\n(?=[a-z])", text)
            heads = [part.splitlines()[0] for part in parts if "\n  -" in part]
            groups = [
                "what is measured",
                "the problem",
                "methods in PyTorch",
                "how often and how long",
                "results and options",
            ]
            self.assertEqual(heads, [*groups, "options of every command"])  # none is left in "options"
            for heading, option in zip(groups, ("--sweep", "--causal", "--device", "--timeout", "--results")):
                (part,) = (part for part in parts if part.startswith(heading))
                self.assertRegex(part, rf"\n  (-\w, )?{option} ?")

    def test_lists_are_broken_for_a_terminal_alone(self) -> None:
        entries = self.done("list", "methods").splitlines()
        headings = [line for line in entries if not line.startswith("  ")]
        self.assertEqual(len(entries) - len(headings), 74)  # a line for each, below its family
        self.assertEqual(headings, sorted(headings))
        self.assertIn("methods: selection", headings)
        first, end = entries.index("methods: selection") + 1, entries.index("methods: sparse")
        self.assertEqual(
            {line.split()[0] for line in entries[first:end]} & {"evict", "quest", "top-p", "top-k"},
            {"evict", "quest", "top-p"},
        )
        self.assertGreater(max(map(len, entries)), 90)
        self.assertLessEqual(max(map(len, on_terminal("list", "methods", NO_COLOR="1").splitlines())), 70)

    def test_help_is_as_wide_as_the_terminal(self) -> None:
        for columns in (60, 120):
            text = on_terminal("run", "--help", columns=columns, NO_COLOR="1")
            lines = [line for line in text.splitlines() if not line.startswith("  attnbench")]
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertGreater(max(map(len, lines)), columns - 15)

    def test_colour_is_for_terminals_that_want_it(self) -> None:
        self.assertIn("\x1b[1m", on_terminal("--help"))
        self.assertNotIn("\x1b[", on_terminal("--help", NO_COLOR="1"))
        self.assertNotIn("\x1b[", on_terminal("--help", TERM="dumb"))
        self.assertNotIn("\x1b[", self.done("--help"))


class LongRunTest(Folder):
    def test_a_long_run_says_before_it_begins_how_long_it_will_take(self) -> None:
        words = ("run", "rank", "-m", "softmax", "-d", "8", "--timeout", "1", "--results", self.results)
        made = run(*words, "-n", "100000")
        self.assertRegex(made.stderr, r"attnbench: this will take about [\d.]+ \w+ \([\d.]+ \w+ to [\d.]+ \w+\)")
        self.assertNotIn("this will take", run(*words, "-n", "32").stderr)

    def test_a_log_of_recipes_has_a_line_for_each(self) -> None:
        names = ("one", "two")
        for name in names:
            self.done("new", "recipe", name, "-o", self.folder)
        files = [str(self.folder / f"{name}.recipe.toml") for name in names]
        words = ("--smoke", "--results", self.results, "-o", str(self.folder / "page"))
        lines = self.done("reproduce", *files, *words).splitlines()
        for name in names:
            self.assertEqual(sum(line.startswith(name) for line in lines), 1)
        # Beside these an estimate if it takes long, the sum of the verdicts, and the page's line.
        self.assertLessEqual(len(lines), len(names) + 3)
        self.assertIn("verdicts in", lines[-2])


class PlanTest(Folder):
    def cells(self, *words: str) -> list[list[str]]:
        lines = self.done("plan", *words, *SIZES, "--results", self.results).splitlines()
        return [line.split("  ")[:3] for line in lines if line.count("  ") == 3]

    def test_a_cell_says_the_defaults_that_tell_it_from_others(self) -> None:
        words = ("--method", "performer", "--sweep", "m=16,256", "--sweep", "features=positive,trig")
        methods = {method for _, method, _ in self.cells("rank", *words)}
        self.assertIn("performer (features=positive, m=256, projection=orthogonal)", methods)
        self.assertIn("performer:m=16 (features=positive, projection=orthogonal)", methods)
        self.assertIn("performer:features=trig,m=16 (projection=orthogonal)", methods)
        self.assertEqual(self.cells("rank", "-m", "local"), [["rank", "local (window=64)", "gaussian"]])
        self.assertEqual(self.cells("rank", "-m", "local:window=8"), [["rank", "local:window=8", "gaussian"]])
        inputs = {given for _, _, given in self.cells("rank", "-m", "uniform", "--sweep", "scale=0.5,1")}
        self.assertEqual(inputs, {"gaussian (scale=1)", "gaussian:scale=0.5"})


class CheckTest(Folder):
    """A terminal gets lines that fit it and colours; elsewhere check prints one line a claim."""

    def test_a_terminal_gets_lines_that_fit_it_and_others_one_line_a_claim(self) -> None:
        made = run("check", "performer:sign_fix=false", COLUMNS="80")  # as some shells export it
        self.assertEqual(made.returncode, 1, made.stderr)
        piped = made.stdout
        lines = [line for line in piped.splitlines() if line.startswith("  ")]
        self.assertTrue(all(re.match(r"  [a-z-]+ +[A-Z]+ ", line) for line in lines))
        self.assertGreater(max(map(len, lines)), 200)
        shown = on_terminal("check", "performer:sign_fix=false", columns=80, NO_COLOR="1")
        self.assertLessEqual(max(map(len, shown.splitlines())), 80)
        same = [re.sub(r", [\d.]+ s ", " ", " ".join(text.split())) for text in (shown, piped)]
        self.assertEqual(*same)

    def test_outcomes_have_colours_on_terminals_that_want_them(self) -> None:
        words = ("check", "performer:sign_fix=false")
        shown = on_terminal(*words)
        self.assertIn("\x1b[32mPASS\x1b[0m", shown)
        self.assertIn("\x1b[31mFAIL\x1b[0m     ", shown)
        self.assertIn("\n\x1b[31mFAIL\x1b[0m: 1 spec", shown)
        self.assertNotIn("\x1b[", on_terminal(*words, NO_COLOR="1"))
        self.assertNotIn("\x1b[", on_terminal(*words, TERM="dumb"))
        self.assertNotIn("\x1b[", self.done(*words, code=1))

    def test_a_bias_is_said_in_the_unit_of_describe_as_well(self) -> None:
        printed = self.done("check", "performer:sign_fix=false", code=1)
        (line,) = re.findall("^  unbiased .*", printed, re.MULTILINE)
        scaled = float(re.findall(r", ([+-][\d.]+) % \[", line)[0])
        pair, share = re.findall(r"(q [+-] k) along [^:;]*: ([+-][\d.]+) % of K\(q, k\) itself", line)[0]
        # K(q, k) = exp(-|q - k|^2 / 2) sqrt(K(q, q) K(k, k)), and this pair has |q - k|^2 = 0.1 or 1.
        distance = 1.0 if pair == "q - k" else 0.1
        self.assertAlmostEqual(float(share) * np.exp(-distance / 2), scaled, delta=0.01)
        self.assertIn("biased by -15 % of K(q, k) at d = 4", " ".join(self.done("describe", "performer").split()))

    def test_a_failure_names_the_page_that_explains_it(self) -> None:
        hint = 'docs/claims.md, "Reading a FAIL"'
        self.assertIn(hint, self.done("check", "performer:sign_fix=false", code=1).splitlines()[-1])
        self.assertIn("## Reading a FAIL", (Path(__file__).parents[2] / "docs/claims.md").read_text())
        self.assertNotIn(hint, self.done("check", "uniform"))

    def test_messages_are_as_wide_as_the_terminal(self) -> None:
        words = ("run", "rank", "-m", "uniform", "--memory", "4", "--results", self.results)
        piped = run(*words).stderr
        self.assertEqual(piped.count("\n"), 1)
        self.assertGreater(len(piped), 70)
        shown = on_terminal(*words)
        self.assertLessEqual(max(map(len, shown.splitlines())), 70)
        self.assertEqual(" ".join(shown.split()), piped.strip())


class CompletionTest(Folder):
    def words(self, *line: str) -> list[str]:
        return self.done("completion", "words", "--", *line).split()

    def test_words_come_from_the_registry(self) -> None:
        self.assertIn("recommend", self.words("re"))
        self.assertEqual(self.words("run", "attention-e"), ["attention-error"])
        self.assertEqual(self.words("run", "rank", "--method", "perf"), ["performer", "performer-vq"])
        self.assertEqual(self.words("run", "rank", "--methods", "softmax", "nys"), ["nystrom"])
        self.assertEqual(self.words("run", "rank", "-m", "performer:m=8,proj"), ["performer:m=8,projection="])
        self.assertEqual(self.words("check", "performer:features=tri"), ["performer:features=trig"])
        self.assertEqual(self.words("run", "rank", "--input", "gau"), ["gaussian"])
        self.assertIn("--replicates", self.words("run", "--rep"))
        self.assertIn("m=", self.words("run", "rank", "-m", "performer", "--sweep", ""))
        self.assertEqual(self.words("describe", "effective_ra"), ["effective_rank", "effective_rank_squared"])
        self.assertEqual(self.words("show", "x.db", "--metric", "numerical_r"), self.words("describe", "numerical_r"))
        self.assertEqual(self.words("reproduce", "sign-"), ["sign-fix"])
        self.assertEqual(self.words("list", "exp"), ["experiments"])
        self.assertEqual(self.words("run", "rank", "--results", ""), [])  # the shell completes files
        self.assertEqual(self.words("export", ""), [])

    def bash(self, line: str) -> list[str]:
        script = 'eval "$("$1" completion bash)"; COMP_LINE=$2 COMP_POINT=${#2}; _attnbench; printf "%s\\n" "${COMPREPLY[@]}"'
        made = subprocess.run(
            ["bash", "-c", script, "bash", PROGRAM, line.replace("attnbench", PROGRAM, 1)],
            capture_output=True,
            text=True,
        )
        return made.stdout.split()

    def test_bash_completes_the_part_behind_its_word_breaks(self) -> None:
        self.assertEqual(self.bash("attnbench run attention-e"), ["attention-error"])
        self.assertEqual(self.bash("attnbench check performer:features=tri"), ["trig"])
        self.assertEqual(self.bash("attnbench run rank --method performer:m=8,proj"), ["8,projection="])
        self.assertIn("rank", self.bash("attnbench run "))

    def test_scripts_of_all_shells_parse(self) -> None:
        for shell in ("bash", "zsh", "fish"):
            script = self.done("completion", shell)
            self.assertIn("completion words --", script)
            if shutil.which(shell):
                made = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
                self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("expected bash, zsh or fish", run("completion", "tcsh").stderr)


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
