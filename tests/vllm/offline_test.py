#!/usr/bin/env python3
"""vLLM on the soft device gives the tokens of transformers, and its recording is linted and replayed.

ACLTAPE_VLLM_PYTHON names an interpreter with vLLM and its plug-in (scripts/vllm-python); it has its kit.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
BINARY = os.environ["ACLTAPE_BINARY"]
PYTHON = os.environ.get("ACLTAPE_VLLM_PYTHON", "")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "offline.py")


class Offline(unittest.TestCase):
    def call(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "ACLTAPE_TRITON_ON_HOST": "1"})
        self.assertEqual(done.returncode, 0, f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
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


if __name__ == "__main__":
    if not PYTHON:
        print("ACLTAPE_VLLM_PYTHON names no interpreter; skipped")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
