#!/usr/bin/env python3
"""vLLM with its layers shared between ranks: the tokens are those of transformers, and all ranks replay together.

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


class Ranks(unittest.TestCase):
    def call(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "ACLTAPE_TRITON_ON_HOST": "1"})
        self.assertEqual(done.returncode, 0, f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_two_ranks_in_graph_modes_replay_together_bit_for_bit(self):
        for mode in ("FULL_DECODE_ONLY", "PIECEWISE"):
            with self.subTest(mode=mode), tempfile.TemporaryDirectory() as folder:
                trace = os.path.join(folder, "t.db")
                said = self.call(BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", PYTHON, PROGRAM,
                                 "--tensor-parallel", "2", "--mode", mode)
                self.assertIn("\nequal", said)
                for how in ("eager", "captured"):
                    replayed = self.call(BINARY, "replay", trace, "--ranks", "all", "--mode", how)
                    self.assertIn("equal bit for bit on 2 ranks", replayed)
                    self.assertNotIn("left out", replayed)
                answer = json.loads(self.call(BINARY, "ranks", trace, "--format", "json"))
                self.assertEqual([row for row in answer["findings"] if row["rule"] != "RANK-09"], [])
                self.assertEqual([row["ranks"] for row in answer["communicators"]], [2])

    def test_experts_of_two_ranks_exchange_tokens_by_operators(self):
        """So does the plug-in on devices of class A3; on those of A2 from 16 ranks on (docs/vllm_ascend.md)."""
        for mode in ("eager", "FULL_DECODE_ONLY"):
            with self.subTest(mode=mode), tempfile.TemporaryDirectory() as folder:
                trace = os.path.join(folder, "t.db")
                said = self.call(BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", PYTHON, PROGRAM,
                                 "--model", "qwen3-moe", "--tensor-parallel", "2", "--expert-parallel",
                                 "--device-class", "A3", "--mode", mode)
                self.assertIn("\nequal", said)
                for operator in ("aclnnMoeDistributeDispatchV4", "aclnnMoeDistributeCombineV4"):
                    count = self.call(BINARY, "query", trace, "--format", "csv",
                                      f"SELECT count(*) FROM call WHERE op = '{operator}'")
                    self.assertGreater(int(count.split()[-1]), 0)
                for how in ("eager", "captured"):
                    replayed = self.call(BINARY, "replay", trace, "--ranks", "all", "--mode", how)
                    self.assertIn("equal bit for bit on 2 ranks", replayed)
                    self.assertNotIn("left out", replayed)

    def test_a_rank_alone_replays_at_both_levels(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "t.db")
            said = self.call(BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", PYTHON, PROGRAM,
                             "--tensor-parallel", "2")
            self.assertIn("\nequal", said)
            # A barrier of the group on the host is no call of HCCL, so each has its leaf of PyTorch.
            unasked = self.call(BINARY, "query", trace, "--format", "csv",
                                "SELECT count(*) FROM collective WHERE parent_id IS NULL")
            self.assertEqual(int(unasked.split()[-1]), 0)
            for process in ("rank:0", "rank:1"):
                for level in ("acl", "aten"):
                    replayed = self.call(BINARY, "replay", trace, "--process", process, "--level", level)
                    self.assertIn("equal bit for bit: all", replayed)

    def test_engines_that_share_prompts_replay_together(self):
        """Data parallel: an engine without a request takes part in the steps of the other one."""
        for mode in ("eager", "FULL_DECODE_ONLY"):
            with self.subTest(mode=mode), tempfile.TemporaryDirectory() as folder:
                trace = os.path.join(folder, "t.db")
                said = self.call(BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", PYTHON, PROGRAM,
                                 "--model", "qwen3-moe", "--data-parallel", "2", "--expert-parallel", "--mode", mode)
                self.assertIn("\nequal", said)
                for how in ("eager", "captured"):
                    replayed = self.call(BINARY, "replay", trace, "--ranks", "all", "--mode", how)
                    self.assertIn("equal bit for bit on 2 ranks", replayed)
                    self.assertNotIn("left out", replayed)
                answer = json.loads(self.call(BINARY, "ranks", trace, "--format", "json"))
                # Each engine has prompts of its own, so nothing of them is a replica.
                self.assertEqual([row for row in answer["findings"] if row["rule"] != "RANK-09"], [])


if __name__ == "__main__":
    if not PYTHON:
        print("ACLTAPE_VLLM_PYTHON names no interpreter; skipped")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
