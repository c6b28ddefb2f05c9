#!/usr/bin/env python3
"""Models with experts, compressed keys and a recurrent state give on the soft device what transformers gives.

ACLTAPE_VLLM_PYTHON names an interpreter with vLLM and its plug-in (scripts/vllm-python); it has its kit.
"""
import os
import subprocess
import sys
import unittest

SKIPPED = 77
BINARY = os.environ["ACLTAPE_BINARY"]
PYTHON = os.environ.get("ACLTAPE_VLLM_PYTHON", "")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "offline.py")


class Models(unittest.TestCase):
    def last_line(self, *options):
        words = [BINARY, "run", "--", PYTHON, PROGRAM, "--one-process", *options]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout.splitlines()[-1]

    def test_experts_in_a_graph_give_the_tokens_of_transformers(self):
        self.assertEqual(self.last_line("--model", "qwen3-moe", "--mode", "FULL_DECODE_ONLY"), "equal")

    def test_compressed_keys_in_a_graph_give_the_tokens_of_transformers(self):
        self.assertEqual(self.last_line("--model", "deepseek-v2", "--mode", "FULL_AND_PIECEWISE"), "equal")

    def test_a_recurrent_state_in_a_graph_has_the_log_probabilities_of_transformers(self):
        """vLLM compiles this model with a launch of a Triton kernel in it."""
        self.assertRegex(self.last_line("--model", "qwen3-next", "--mode", "FULL"), r"^log-probabilities within")

    def test_a_wrong_weight_is_found(self):
        said = self.last_line("--dtype", "bfloat16", "--wrong-weight")
        self.assertRegex(said, r"^different: log-probabilities within [0-9.]+ \(bound [0-9.]+\)$")


if __name__ == "__main__":
    if not PYTHON:
        print("ACLTAPE_VLLM_PYTHON names no interpreter; skipped")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
