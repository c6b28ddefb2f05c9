#!/usr/bin/env python3
"""The operators torch.ops.atb._npu_* on the soft device: results, refusals, a recording and its replay.

ACLTAPE_VLLM_PYTHON names an interpreter with torch_npu (scripts/vllm-python makes one); it has its kit.
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
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "atb.py")
OFFLINE = os.path.join(os.path.dirname(PROGRAM), "offline.py")


class Atb(unittest.TestCase):
    def call(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "ACLTAPE_TRITON_ON_HOST": "1"})
        self.assertEqual(done.returncode, 0, f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done

    def test_a_recording_of_equal_results_replays_bit_for_bit(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.db")
            said = self.call(BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", PYTHON, PROGRAM).stdout
            self.assertEqual(len([line for line in said.splitlines() if line.endswith(": equal")]), 15, said)
            self.assertIn("\nequal", said)
            self.assertIn("no findings", self.call(BINARY, "lint", trace).stdout)
            replay = self.call(BINARY, "replay", trace, "--level", "acl").stdout
            self.assertIn("equal bit for bit: all", replay)

    def test_what_is_refused_names_operation_parameter_and_value(self):
        done = self.call(BINARY, "run", "--", PYTHON, PROGRAM, "--refused")
        for sentence in ("SelfAttentionOperation with maskType 4 is not offered",
                         "PagedAttentionOperation with quantType 1 is not offered",
                         "PagedAttentionOperation takes lengths as int32 of one dim in host memory"):
            self.assertIn(f"acltape: {sentence}", done.stderr)
        self.assertNotIn("computed", done.stdout)

    def test_vllm_decodes_with_paged_attention_whose_lengths_it_updates(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.db")
            said = self.call(BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", PYTHON, OFFLINE,
                             "--one-process", "--mode", "FULL_DECODE_ONLY", "--paged-attention").stdout
            self.assertIn("\nequal", said)
            calls = "select count(*) as calls from call where op = 'aclnnAtbPagedAttention'"
            rows = json.loads(self.call(BINARY, "query", trace, calls, "--format", "json").stdout)
            self.assertGreater(int(rows[0]["calls"]), 20, rows)
            self.assertIn("equal bit for bit: all", self.call(BINARY, "replay", trace, "--level", "acl").stdout)


if __name__ == "__main__":
    if not PYTHON:
        print("ACLTAPE_VLLM_PYTHON names no interpreter; skipped")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
