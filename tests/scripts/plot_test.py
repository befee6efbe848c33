#!/usr/bin/python3
"""Tests of scripts/plot.py: the files that it writes for a figure, and that equal results give equal files.

Run as tests/scripts/plot_test.py; ATTNBENCH names the program.
"""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import unittest
import zlib
from pathlib import Path

from example_stores import CURVE, SCRIPTS, InTemporaryDirectory, drawn
from matplotlib.ft2font import FT2Font

import panel
import plot


class Drawing(InTemporaryDirectory):
    def test_the_csv_has_what_is_drawn(self) -> None:
        store = self.example()
        code, out, _ = self.run_script(
            plot, str(store.path), "-o", str(self.directory / "figures"), "--figure", "curves", "--format", "png"
        )
        self.assertEqual(code, 0)
        self.assertEqual([Path(line).name for line in out.split()], ["recipe.curves.csv", "recipe.curves.png"])
        with open(self.directory / "figures" / "recipe.curves.csv") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["role"] for row in rows], ["ending"] + ["measured"] * 6 + ["reference"])
        series = ["performer"] * 3 + ["performer:projection=iid"] * 3
        places = [(row["series"], row["x"]) for row in rows[1:7]]
        self.assertEqual(places, list(zip(series, ["16.0", "32.0", "64.0"] * 2)))
        first = rows[1]
        self.assertEqual(
            (first["panel"], first["series"], first["x"], first["replicates"]), ("1", "performer", "16.0", "3")
        )
        self.assertAlmostEqual(float(first["y"]), 1.1 / 16)
        self.assertAlmostEqual(float(first["high"]), (1.1 + 4.302653 * 0.1 / 3**0.5) / 16, places=7)
        self.assertAlmostEqual(float(first["exponent"]), -1)
        self.assertEqual({row["note"] for row in rows if row["series"].endswith("iid")}, {"not positive on a log axis"})

    def test_the_csv_has_its_series_in_the_order_of_numbers(self) -> None:
        with self.store() as store:
            for window in (128, 16, 4):
                for n in (512, 64):
                    store.cell(f"local:window={window}", [1.0 * n], n=n, window=window)
        drawn_panel = self.panel(store, {**CURVE, "x": ["n"]})
        rows = [(row["series"], float(row["x"])) for row in csv.DictReader(io.StringIO(plot.numbers([drawn_panel])))]
        windows = [f"local:window={window}" for window in (4, 16, 128)]
        self.assertEqual(rows, [(series, x) for series in windows for x in (64, 512)])

    def test_equal_results_give_equal_bytes(self) -> None:
        self.every_kind()
        programs = {"page": ["report.py"], "paper": ["plot.py", "--style", "paper", "--table", "latex"]}
        for run in ("1", "2"):  # sets of strings have another order in each, and the second draws in one process
            one = {min(os.sched_getaffinity(0))} if run == "2" else os.sched_getaffinity(0)
            for folder, (script, *words) in programs.items():
                files = [str(self.directory / "kinds.db"), "-o", str(self.directory / folder / run)]
                done = subprocess.run(
                    [sys.executable, str(SCRIPTS / script), *files, *words],
                    stderr=subprocess.PIPE,
                    env={**os.environ, "PYTHONHASHSEED": run, "OPENBLAS_NUM_THREADS": run},
                    stdout=subprocess.DEVNULL,
                    preexec_fn=lambda: os.sched_setaffinity(0, one),
                    text=True,
                )
                # A panel has no data and a cell crashed; a figure without notes must not hide it.
                self.assertEqual(done.returncode, 3 if folder == "paper" else 0)
                self.assertEqual("no data" in done.stderr and "crashed" in done.stderr, folder == "paper")
        for folder, files in (
            ("page", ["index.html", *(f"recipe.{n}.{e}" for n in ("curve", "kinds") for e in ("csv", "pdf", "svg"))]),
            ("paper", [f"recipe.curve.{ending}" for ending in ("csv", "json", "pdf", "svg", "tex")]),
        ):
            written = sorted(path.name for path in (self.directory / folder / "1").iterdir())
            self.assertLessEqual(set(files), set(written))
            for name in written:
                first, second = ((self.directory / folder / run / name).read_bytes() for run in "12")
                self.assertEqual(first, second, name)

    def test_maps_are_drawn_in_every_format_and_their_values_are_in_the_csv(self) -> None:
        store = self.maps()
        code, out, err = self.run_script(
            plot, str(store.path), "-o", str(self.directory / "figures"), "--format", "svg,pdf,png"
        )
        self.assertEqual((code, err), (0, ""))
        with open(self.directory / "figures" / "recipe.maps.csv") as file:
            rows = list(csv.DictReader(file))
        ratios = [row for row in rows if row["role"] == "ratio"]
        self.assertEqual(len(ratios), 12)
        self.assertEqual({row["series"] for row in ratios}, {"a / b"})
        self.assertEqual(float(ratios[0]["value"]), 0)
        self.assertEqual({row["series"] for row in rows if row["role"] == "winner"}, {"a"})

    def test_a_pdf_has_every_character_and_depends_on_no_figure_before_it(self) -> None:
        with self.store() as store:
            store.cell("a:m=2", [1.0, 2.0], m=2)
            for name, title in (("first", "\u00e9"), ("second", "\u0159")):  # neither is in the shared subset
                store.figure(name, {**CURVE, "title": title})
        read = drawn(store.path)
        alone = [self.pdf_in_new_process(store.path, figure.name) for figure in read.figures]
        self.assertEqual(
            [plot.draw(one, panel.panels_of(read, one), ["pdf"]).files["pdf"] for one in read.figures], alone
        )
        for character, pdf in zip("\u00e9\u0159", alone):
            streams = re.findall(rb"stream\n(.*?)\nendstream", pdf, re.DOTALL)
            fonts = [font for font in map(inflated, streams) if font.startswith(b"\x00\x01\x00\x00")]
            self.assertEqual([FT2Font(io.BytesIO(font)).get_char_index(ord(character)) > 0 for font in fonts], [True])

    def pdf_in_new_process(self, path: Path, figure: str) -> bytes:
        words = [str(path), "-o", str(self.directory / "alone"), "--figure", figure, "--format", "pdf"]
        subprocess.run([sys.executable, str(SCRIPTS / "plot.py"), *words], check=True, stdout=subprocess.DEVNULL)
        return (self.directory / "alone" / f"recipe.{figure}.pdf").read_bytes()


def inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


if __name__ == "__main__":
    unittest.main()
