#!/usr/bin/env python3
"""vLLM on the soft device gives the tokens of transformers, and its recording is linted and replayed.

ACLTAPE_VLLM_PYTHON names an interpreter with vLLM and its plug-in (scripts/vllm-python); it has its kit.
"""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
BINARY = os.environ["ACLTAPE_BINARY"]
PYTHON = os.environ.get("ACLTAPE_VLLM_PYTHON", "")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "offline.py")


class Offline(unittest.TestCase):
    def call(self, *words, code=0):
        done = subprocess.run(words, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "ACLTAPE_TRITON_ON_HOST": "1"})
        self.assertEqual(done.returncode, code, f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_tokens_are_those_of_transformers_in_each_mode(self):
        for mode in ("eager", "PIECEWISE", "FULL_AND_PIECEWISE", "FULL"):
            with self.subTest(mode=mode):
                said = self.call(BINARY, "run", "--", PYTHON, PROGRAM, "--one-process", "--mode", mode)
                self.assertEqual(said.splitlines()[-1], "equal", said)

    def test_a_recording_with_graphs_has_no_findings_and_replays_bit_for_bit(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.db")
            said = self.call(BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", PYTHON, PROGRAM,
                             "--one-process", "--mode", "FULL_DECODE_ONLY")
            self.assertIn("\nequal", said)
            captures = json.loads(self.call(BINARY, "captures", trace, "--format", "json"))
            used = {row["rows"]: (row["steps"], row["padding"]) for row in captures["batch_sizes"]}
            self.assertEqual(used, {1: (0, None), 2: (0, None), 4: (11, 11)})
            kinds = [(row["kind"], row["tokens"], row["without_graph"]) for row in captures["engine_steps"]]
            self.assertEqual(kinds, [("prefill", 22, 1), ("decode", 33, 0)])
            self.assertIn("no findings", self.call(BINARY, "lint", trace))
            self.assertIn("equal bit for bit: all", self.call(BINARY, "replay", trace, "--level", "acl"))

    def test_products_with_adapters_have_the_calls_that_the_queue_made_for_them(self):
        """So lint knows what these operators of the plug-in do, and a replay repeats them."""
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.db")
            said = self.call(BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", PYTHON, PROGRAM,
                             "--one-process", "--mode", "eager", "--feature", "lora")
            self.assertIn("\nnear", said)
            with sqlite3.connect(trace) as database:
                rows = database.execute(
                    "SELECT c.op, p.op, count(*), count(DISTINCT p.call_id) FROM call c "
                    "LEFT JOIN call p ON p.call_id = c.parent_id WHERE c.op LIKE 'aclnn%gmv%' GROUP BY 1, 2").fetchall()
            asked = {"aclnnBgmvExpand": "_C_ascend::bgmv_expand", "aclnnBgmvShrink": "_C_ascend::bgmv_shrink",
                     "aclnnSgmvExpand": "_C_ascend::sgmv_expand", "aclnnSgmvShrink": "_C_ascend::sgmv_shrink"}
            self.assertEqual({call: parent for call, parent, _, _ in rows}, asked)
            self.assertEqual(len(rows), len(asked))
            for call, _, calls, operators in rows:
                self.assertEqual(calls, operators, call)
            findings = json.loads(self.call(BINARY, "lint", trace, "--format", "json", code=1))["findings"]
            unknown = [row["message"] for row in findings if row["rule"] == "LINT-38" and "gmv" in row["message"]]
            self.assertEqual(unknown, [])
            self.assertIn("equal bit for bit: all", self.call(BINARY, "replay", trace, "--level", "aten"))


if __name__ == "__main__":
    if not PYTHON:
        print("ACLTAPE_VLLM_PYTHON names no interpreter; skipped")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
