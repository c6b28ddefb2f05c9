#!/usr/bin/env python3
"""A trace for each rank, and one made of them."""
import json
import os
import socket
import sqlite3

import harness

PROGRAM = f"{harness.PROGRAMS}/ranks_training.py"
AHEAD = 5_000_000_000  # ns by which the clock of another machine is ahead


class RankFiles(harness.NpuTest):
    def record(self, name, *options, code=0):
        return self.call(harness.BINARY, "record", "--soft", "--per-rank", "--payload", "all", *options, "-o",
                         f"{self.folder}/{name}.db", "--", harness.PYTHON, PROGRAM, "ddp", code=code)

    def as_of_another_machine(self, trace):
        """Moves all times of a trace, as if its machine had been started earlier."""
        with sqlite3.connect(trace) as database:
            database.execute("UPDATE meta SET value = value + ? WHERE key = 'base_ns'", (AHEAD,))
            database.execute("UPDATE meta SET value = 'another' WHERE key = 'collector_boot'")
            for table in ("scope_range", "device_span"):
                database.execute(f"UPDATE {table} SET begin_ns = begin_ns + ?, end_ns = end_ns + ?", (AHEAD, AHEAD))

    def test_the_traces_of_two_ranks_are_one_again(self):
        done = self.record("t")
        self.assertRegex(done.stderr, r"t\.rank0\.db, .*t\.rank1\.db hold \d+ calls")
        files = [f"{self.folder}/t.rank{rank}.db" for rank in (0, 1)]
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.startswith("t.")),
                         ["t.rank0.db", "t.rank1.db"])
        for rank, file in enumerate(files):
            with sqlite3.connect(file) as database:
                self.assertEqual(database.execute("SELECT DISTINCT rank FROM communicator").fetchall(), [(rank,)])
            self.call(harness.BINARY, "lint", file, code=1)
            done = self.call(harness.BINARY, "replay", file, "--level", "acl")
            self.assertIn("equal bit for bit", done.stdout)
        told = self.call(harness.BINARY, "ranks", *files).stdout
        self.assertRegex(told, r"meetings compared between ranks +18\n")
        self.assertRegex(told, r"findings +0\n")
        self.assertRegex(told, r"steps +12 on each rank, a guess by what repeats\n")
        merged = f"{self.folder}/all.db"
        self.call(harness.BINARY, "merge", *files, "-o", merged)
        # The same answer, but for the files and the times that it took.
        same = [json.loads(self.call(harness.BINARY, "ranks", *traces, "--format", "json").stdout)
                for traces in (files, [merged])]
        self.assertGreater(len(same[0]["steps"]), 4)
        for row in same[0]["steps"]:
            self.assertGreater(row["longest_ns"], 0)
            self.assertLessEqual(row["shortest_ns"], row["longest_ns"])
        for table in ("findings", "steps", "ranks", "communicators", "waits", "who_waited_for_whom"):
            self.assertEqual(same[0][table], same[1][table])
        for mode in ("eager", "captured"):
            done = self.call(harness.BINARY, "replay", merged, "--ranks", "all", "--mode", mode)
            self.assertIn("equal bit for bit on 2 ranks", done.stdout)
        self.call(harness.BINARY, "report", merged, "-o", f"{self.folder}/page.html")
        done = self.record("t", code=2)  # the program does not even start
        self.assertRegex(done.stderr, r"t\.rank[01]\.db exists already; .* --force")
        self.assertEqual(done.stdout, "")
        open(f"{self.folder}/new.others.db", "w").close()
        done = self.record("new", code=2)
        self.assertRegex(done.stderr, r"new\.others\.db exists already")

    def test_collectives_tell_how_far_two_clocks_are_apart(self):
        for options in ((), ("--device-times",)):
            with self.subTest(options=options):
                name = "-".join(["clock", *options])
                self.record(name, *options)
                files = [f"{self.folder}/{name}.rank{rank}.db" for rank in (0, 1)]
                merged = f"{self.folder}/{name}.all.db"
                self.as_of_another_machine(files[1])
                self.call(harness.BINARY, "merge", *files, "-o", merged)
                with sqlite3.connect(merged) as database:
                    (text,) = database.execute("SELECT value FROM meta WHERE key = 'merged_from'").fetchone()
                first, other = json.loads(text)
                self.assertEqual((first["shift_ns"], first["error_ns"]), (0, 0))
                self.assertRegex(other["clock"], r"\d+ collectives with .*rank0\.db$")
                self.assertGreater(other["error_ns"], 0)
                self.assertLess(other["error_ns"], 100_000_000)
                self.assertLessEqual(abs(other["shift_ns"] + AHEAD), other["error_ns"])
                told = self.call(harness.BINARY, "ranks", *files).stdout
                self.assertRegex(told, r"clock of .*rank1\.db +within ")

    def test_a_program_without_ranks_has_one_trace(self):
        script = self.script("""
            import torch
            print(torch.ones(4).npu().sum().item())
        """)
        done = self.call(harness.BINARY, "record", "--soft", "--per-rank", "-o", f"{self.folder}/alone.db", "--",
                         harness.PYTHON, script)
        self.assertIn("no process had a rank", done.stderr)
        self.assertTrue(os.path.exists(f"{self.folder}/alone.{socket.gethostname()}.db"))


if __name__ == "__main__":
    harness.main()
