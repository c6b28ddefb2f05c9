#!/usr/bin/env python3
"""Features of vLLM on the soft device: each gives what its row in programs/features.py expects.

Some of them here, in several modes; tests/vllm/table.py runs all. ACLTAPE_VLLM_PYTHON names an
interpreter with vLLM and its plug-in (scripts/vllm-python); it has its kit.
"""
import os
import subprocess
import sys
import unittest

SKIPPED = 77
BINARY = os.environ["ACLTAPE_BINARY"]
PYTHON = os.environ.get("ACLTAPE_VLLM_PYTHON", "")
FOLDER = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(FOLDER, "programs", "offline.py")


class Features(unittest.TestCase):
    def last_line(self, feature, mode, *options):
        words = [BINARY, "run", "--", PYTHON, PROGRAM, "--one-process", "--mode", mode, "--feature", feature, *options]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout.splitlines()[-1]

    def test_an_adapter_gives_what_merged_weights_give(self):
        self.assertEqual(self.last_line("lora", "FULL_DECODE_ONLY"), "near")
        self.assertRegex(self.last_line("lora", "eager", "--without-adapter"), "^different: a log-probability")

    def test_quantised_products_are_those_of_transformers_with_the_same_integers(self):
        self.assertEqual(self.last_line("w8a8", "FULL", "--model", "qwen2"), "near")
        self.assertRegex(self.last_line("w8a8-dynamic", "eager", "--wrong-scale", "1.5"),
                         "^different: a log-probability")

    def test_prompts_with_an_image_are_read_in_parts(self):
        self.assertEqual(self.last_line("chunked-prefill", "eager", "--model", "qwen2-vl"), "near")

    def test_sampled_tokens_repeat_with_their_seed_and_are_among_those_that_could_be(self):
        self.assertEqual(self.last_line("sampling", "PIECEWISE"), "near")


class Table(unittest.TestCase):
    def test_the_table_has_at_most_40_rows_and_is_always_the_same(self):
        words = [sys.executable, os.path.join(FOLDER, "table.py"), "--list"]
        first, second = (subprocess.run(words, capture_output=True, text=True, check=True).stdout for _ in "12")
        self.assertEqual(first, second)
        rows = [line for line in first.splitlines() if line[0].isdigit() and "rows;" not in line]
        self.assertLessEqual(len(rows), 40)
        self.assertEqual(len(rows), len(set(line.split(" ", 1)[1] for line in rows)))


if __name__ == "__main__":
    if not PYTHON:
        print("ACLTAPE_VLLM_PYTHON names no interpreter; skipped")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
