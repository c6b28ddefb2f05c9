#!/usr/bin/env python3
"""Programs of several processes: collectives are barriers that write, and a step is of one process."""
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(FOLDER)), "cli"))
from harness import TORCH_PYTHON, CommandTest, main  # noqa: E402

PROGRAM = os.path.join(FOLDER, "two_ranks.py")
RANKS = ("rank:0", "rank:1")
# The commands that look at steps, regions or replays of a program.
LOOKING = (["steps"], ["plan"], ["lint"], ["replay"], ["compare"], ["prove"], ["bisect"], ["graph"])


def barriers(report):
    """Why calls of a plan run eagerly, those aside that are too few for a graph."""
    return [row["reason"] for row in report["regions"]
            if row["kind"] == "eager" and not row["reason"].startswith("too short")]


class TwoRanks(CommandTest):
    python = TORCH_PYTHON

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        cls.alone = subprocess.run([cls.python, PROGRAM], capture_output=True, text=True, check=True).stdout

    def recorded(self, payload="inputs"):
        trace = self.path(f"{payload}.db")
        if not os.path.exists(trace):
            done = self.record(trace, self.python, PROGRAM, payload=payload, options=["--steps-from", "step"])
            self.assertEqual(done.out, self.alone)
        return trace

    def test_each_process_has_its_rank(self):
        with sqlite3.connect(self.recorded()) as trace:
            rows = trace.execute("SELECT rank FROM process ORDER BY process_id").fetchall()
        self.assertEqual(sorted(rank for rank, in rows if rank is not None), [0, 1], rows)

    def test_processes_are_never_mixed(self):
        trace = self.recorded()
        for words in LOOKING:
            with self.subTest(command=words[0]):
                said = self.acltape(words[0], trace, *words[1:], code=2).err
                self.assertRegex(said, r"holds the work of 2 processes, which is never one step: \d+ \(.*rank 0\)"
                                       r", \d+ \(.*rank 1\); choose one with --process rank:0\n$")

    def test_a_first_step_that_holds_one_process_alone_is_not_shown_for_both(self):
        trace = self.path("quick.db")
        shutil.copy(self.recorded(), trace)
        with sqlite3.connect(trace) as database:  # as if the other process had begun after it
            database.execute("UPDATE step SET last_call = first_call")
        self.assertIn("holds the work of 2 processes", self.acltape("graph", trace, code=2).err)

    def test_a_process_that_is_not_there_is_named_with_those_that_are(self):
        said = self.acltape("plan", self.recorded(), "--process", "rank:7", code=2).err
        self.assertRegex(said, r"'rank:7' is no process of '.*', which has .*rank 0.*rank 1")

    def test_a_region_ends_at_each_collective(self):
        trace = self.recorded()
        for rank in RANKS:
            with self.subTest(rank=rank):
                report = self.json("plan", trace, "--process", rank, "-o", self.path("plan.json"))
                self.assertEqual(barriers(report), ["collective"] * 2, report["regions"])

    def test_each_rank_replays_what_the_collectives_gave_it(self):
        for payload in ("inputs", "all"):
            trace = self.recorded(payload)
            for rank in RANKS:
                for mode in ("eager", "captured"):
                    with self.subTest(payload=payload, rank=rank, mode=mode):
                        # Of inputs alone the host reads have a recorded result: too little for a verdict of an eager
                        # replay. A captured one is compared with it.
                        known = payload == "all" or mode == "captured"
                        said = self.acltape("replay", trace, "--process", rank, "--mode", mode,
                                            code=0 if known else 125).out
                        self.assertIn("equal bit for bit" if known else "not known", said)
                        self.assertRegex(said, r"outputs different +0")
                        if payload == "inputs":
                            continue
                        # Both parameters of each step were made of what the collective had summed.
                        with sqlite3.connect(trace) as database:
                            compared, = database.execute(
                                "SELECT count(*) FROM comparison WHERE run_id = (SELECT max(run_id) FROM run) "
                                "AND call_id IN (SELECT call_id FROM call JOIN op USING (op_id) "
                                "WHERE op.name = 'aten::sub_')").fetchone()
                        self.assertIn(compared, (0, 8), said)

    def test_what_a_rank_gives_to_a_collective_is_compared(self):
        trace = self.recorded("all")
        for rank in RANKS:
            for words in (("prove", "--only", "plain", "--no-results"), ("bisect", "--no-journal"), ("experiment",),
                          ("replay", "--outputs", "step"), ("replay", "--mode", "captured", "--outputs", "step")):
                with self.subTest(rank=rank, command=words):
                    said = self.acltape(words[0], trace, "--process", rank, *words[1:]).out
                    told = re.search(r"leaves that compared outputs tell of +(\d+) of (\d+)", said)
                    self.assertEqual(told[1], told[2], said)

    def test_a_wrong_gradient_is_found_though_the_collective_overwrites_it(self):
        trace = self.recorded("all")
        with sqlite3.connect(trace) as database:
            call, = database.execute(
                "SELECT call_id FROM call JOIN op USING (op_id) WHERE op.name = 'aten::mm' AND thread_id IN (SELECT "
                "thread_id FROM thread JOIN process USING (process_id) WHERE rank = 0) ORDER BY 1 LIMIT 1").fetchone()
        fault = ("--process", "rank:0", "--plant", f"wrong_bits@{call}", "--no-results")
        said = self.acltape("prove", trace, "--only", "plain", *fault, code=1).out
        self.assertIn("fails in", said)
        self.assertIn(f"found: call {call} aten::mm", self.acltape("bisect", trace, "--no-journal", *fault, code=1).out)

    def test_lint_names_collectives_in_a_step(self):
        said = self.acltape("lint", self.recorded(), "--process", "rank:0", code=1).out
        self.assertRegex(said, r"c10d::allreduce_.*\(collective\)")

    def test_capture_breaks_counts_them(self):
        with sqlite3.connect(self.recorded()) as trace:
            breaks, = trace.execute("SELECT count(*) FROM capture_breaks WHERE op LIKE 'c10d::allreduce_%'"
                                    " AND reason LIKE 'collective: %'").fetchone()
        self.assertEqual(breaks, 16)


class TwoRanksOfTorch2(TwoRanks):
    python = os.environ.get("ACLTAPE_TORCH2_PYTHON")

    @classmethod
    def setUpClass(cls):
        if not cls.python:
            raise unittest.SkipTest("ACLTAPE_TORCH2_PYTHON names no interpreter with torch 2.x")
        super().setUpClass()


class Extensions(CommandTest):
    """Operators of an extension: what they do is not known."""
    PROGRAM = """
import torch
library = torch.library.Library("wild", "DEF")
library.define("shift(Tensor x) -> Tensor")      # writes its argument and gives it back, and says neither
library.define("note(Tensor x) -> ()")
library.define("twice(Tensor x) -> Tensor")      # says all that it does
library.impl("shift", lambda x: torch.from_numpy(x.numpy().__iadd__(1)).set_(x), "CPU")
library.impl("note", lambda x: x.numpy().__imul__(3) is None or None, "CPU")
library.impl("twice", lambda x: x + x, "CPU")
w = torch.arange(8.).reshape(2, 4)
for i in range(3):
    with torch.profiler.record_function("step"):
        y = w * (i + 2)
        torch.ops.wild.shift(y)
        z = y * 2
        torch.ops.wild.note(z)
        total = torch.ops.wild.twice(z - 1).sum()
print(total)
"""

    def test_what_they_did_in_secret_reaches_their_readers(self):
        trace = self.path("wild.db")
        done = self.record(trace, TORCH_PYTHON, self.script(self.PROGRAM), payload="all",
                           options=["--steps-from", "step"])
        self.assertEqual(done.out, "tensor(1424.)\n")
        for mode in ("eager", "captured"):
            with self.subTest(mode=mode):
                self.assertIn("equal bit for bit", self.acltape("replay", trace, "--mode", mode).out)

    def test_they_end_a_region(self):
        trace = self.path("regions.db")
        self.record(trace, TORCH_PYTHON, self.script(self.PROGRAM), payload="all", options=["--steps-from", "step"])
        self.assertEqual(barriers(self.json("plan", trace, "-o", self.path("plan.json"))), ["unknown operator"] * 3)


if __name__ == "__main__":
    main()
