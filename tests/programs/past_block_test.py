#!/usr/bin/env python3
"""A program that reads on past a block of device memory (past_block.cpp): it runs as on a device, is told so, and
its trace replays. The environment is that of recorded_test.py.
"""
import json
import os
import subprocess
import unittest

import acl_programs
import recorded_test
from recorded_test import ACLTAPE

READ_ON = ("100", "60")  # 240 bytes of a block that has 160
IN_PADDING = ("100", "36")  # 144
TOO_FAR = ("100", "30000000")  # 120 MB: no page is so long


class PastBlock(recorded_test.RecordedTest):
    def setUp(self):
        super().setUp()
        self.binary = os.path.join(self.folder, "past_block")
        subprocess.run(acl_programs.build_line("past_block.cpp", self.binary), check=True)
        self.trace = os.path.join(self.folder, "t.db")

    def acltape(self, *words, code=0, **environment):
        done = subprocess.run([ACLTAPE, *words], capture_output=True, text=True, timeout=120,
                              env=acl_programs.environment(environment))
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def record(self, *words, code=0, options=()):
        return self.acltape("record", "--soft", "--payload", "all", "--force", *options, "-o", self.trace, "--",
                            self.binary, *words, code=code)

    def ledger(self):
        rows = json.loads(self.acltape("query", self.trace, "--format", "json",
                                       "SELECT kind, subject, count FROM ledger WHERE kind LIKE '%block'").stdout)
        return [(row["kind"], row["subject"], row["count"]) for row in rows]

    def replays(self):
        for mode in ("eager", "captured"):
            self.assertIn("equal bit for bit: all 5 compared outputs",
                          self.acltape("replay", self.trace, "--mode", mode).stdout)

    def test_the_program_is_told_at_its_end(self):
        done = self.acltape("run", "--", self.binary, *READ_ON)
        self.assertEqual(done.stdout, "-1.5\n")
        self.assertRegex(done.stderr,
                         r"aclnnNeg: it read 80 bytes past the end of the block of 100 bytes .*; seen 4 times\n")
        self.assertEqual(self.acltape("run", "--", self.binary, *IN_PADDING).stderr, "")

    def test_the_ledger_tells_it_and_the_trace_replays(self):
        self.record(*READ_ON)
        # What the recorder reads itself is none.
        self.assertEqual(self.ledger(), [("read_past_block", "aclnnNeg", 4)])
        self.replays()
        for command in ("info", "plan", "compare", "prove", "bisect", "steps", "graph"):
            self.acltape(command, self.trace)

    def test_bytes_that_belong_to_the_block_are_as_others(self):
        self.record(*IN_PADDING)
        self.assertEqual(self.ledger(), [])
        self.replays()

    def test_strict_recordings_and_exact_blocks_refuse_both(self):
        for words in (READ_ON, IN_PADDING):
            self.record(*words, code=1, options=("--strict-device",))
            self.assertEqual(self.ledger(), [("outside_block", "aclnnNeg", 1)])
            self.assertIn("left in its block",
                          self.acltape("run", "--", self.binary, *words, code=1, ACLTAPE_SOFT_BLOCKS="exact").stderr)

    def test_the_trace_of_a_task_that_leaves_its_page_can_be_read(self):
        done = self.record(*TOO_FAR, code=1)
        self.assertIn("left in its block, not 120000000", done.stderr)
        self.assertEqual(self.ledger(), [("outside_block", "aclnnNeg", 1)])
        self.assertIn("left in its block", self.acltape("lint", self.trace, code=1).stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
