#!/usr/bin/env python3
"""Faults planted in vLLM's model and runner are found by acltape lint, or by acltape diff, with the line.

ACLTAPE_VLLM_PYTHON names an interpreter with vLLM and its plug-in (scripts/vllm-python); it has its kit. Two faults
are taken; with ACLTAPE_VLLM_FAULTS=all every one of them, which takes ten minutes and more, or those that it lists
with commas. What was found is printed.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections import namedtuple

SKIPPED = 77
BINARY = os.environ.get("ACLTAPE_BINARY", "")
PYTHON = os.environ.get("ACLTAPE_VLLM_PYTHON", "")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "faulty.py")

# The rule that lint names, or "diff"; a text that has to stand in the row with the place, and one in its message.
Found = namedtuple("Found", "by place text on_host", defaults=(True,))
FAULTS = {
    "stale-lengths": Found("diff", "attention_v1.py", "actualSeqLengthsKvOptional"),
    "stale-block-table": Found("diff", "block_table.py", ""),
    "slots-refilled": Found("LINT-45", "copy_to_gpu", "planted.py"),
    "update-without-wait": Found("LINT-21", "update_graph_params", "acl_graph.py", on_host=False),
    "padded-row": Found("diff", "_get_block_table_and_slot_mapping", ""),
    "weight-replaced": Found("LINT-48", "", "planted.py"),  # which weight's memory is used again is chance
    "item-in-step": Found("LINT-40", "_build_attention_metadata", ""),
    "item-in-capture": Found("LINT-02", "reshape_and_cache", ""),
    "fp16-overflow": Found("LINT-41", "linear.py", "NaN"),
    "mask-freed": Found("LINT-48", "full_graph_fia", "get_splitfuse_attn_mask"),
    "output-kept": Found("diff", "planted.py", ""),
    "rope-float16": Found("diff", "_compute_cos_sin_cache", ""),
    "input-on-other-stream": Found("LINT-19", "acl_graph.py", "_prepare_input_ids"),
}
FEW = ["padded-row", "mask-freed"]
# Faults whose right program is another one than vLLM itself in the mode FULL_DECODE_ONLY.
OWN_TWIN = {"slots-refilled", "update-without-wait", "weight-replaced", "output-kept", "input-on-other-stream",
            "rope-float16", "fp16-overflow"}
MAY_HANG = {"update-without-wait"}  # the update may come before the execution before has reset its event
LONGEST = 120  # seconds of a program that may hang, many times what it takes
EAGER = {"rope-float16", "fp16-overflow"}  # lint says of an eager program what would end a capture


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="vllm_faults_")
        cls.addClassCleanup(cls.folder.cleanup)

    def recorded(self, fault, right):
        """The recording of a fault or of its right twin, which is made once."""
        if right and fault not in OWN_TWIN:
            fault = "stale-lengths"
        trace = os.path.join(self.folder.name, f"{fault}.{'right' if right else 'faulty'}.db")
        if os.path.exists(trace):
            return trace
        environment = {name: value for name, value in os.environ.items() if name != "ACLTAPE_TRITON_ON_HOST"}
        if FAULTS[fault].on_host:
            environment["ACLTAPE_TRITON_ON_HOST"] = "1"
        limit = ["timeout", "-s", "KILL", str(LONGEST)] if fault in MAY_HANG and not right else []
        words = [BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", *limit, PYTHON, PROGRAM, "--fault",
                 fault]
        done = subprocess.run(words + ["--right"] * right, capture_output=True, text=True, timeout=600,
                              env=environment)
        if done.returncode == 137 and limit:
            print(fault, "was killed as it hung", sep="\n    ", flush=True)
        elif right or fault != "item-in-capture":
            self.assertEqual(done.returncode, 0, f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        return trace

    def asked(self, *words):
        done = subprocess.run([BINARY, *words, "--format", "json"], capture_output=True, text=True, timeout=300)
        self.assertIn(done.returncode, (0, 1), f"\n$ {' '.join(words)}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def findings(self, trace):
        return [row for row in self.asked("lint", trace)["findings"] if row["severity"] != "info"]

    def check(self, fault):
        wanted = FAULTS[fault]
        right = self.recorded(fault, True)
        if fault not in EAGER:
            self.assertEqual(self.findings(right), [], f"the right twin of {fault}")
        faulty = self.recorded(fault, False)
        if wanted.by == "diff":
            found = self.asked("diff", right, faulty, "--no-results")
            rows = [(row["quantity"], row["value"]) for row in found["summary"]]
            start = [name for name, _ in rows].index("first divergence")
            first = dict((name.strip(), value) for name, value in rows[start:])
            place, text = first["where"], first.get("change", "")
        else:
            rows = [row for row in self.findings(faulty) if row["rule"] == wanted.by and wanted.place in row["where"]]
            self.assertNotEqual(rows, [], fault)
            place, text = rows[0]["where"], rows[0]["message"]
        self.assertIn(wanted.place, place)
        self.assertIn(wanted.text, text)
        return place, text

    def test_each_is_found_with_its_line_and_its_right_twin_has_no_finding(self):
        asked = os.environ.get("ACLTAPE_VLLM_FAULTS", "")
        for fault in FAULTS if asked == "all" else asked.split(",") if asked else FEW:
            with self.subTest(fault=fault):
                print(fault, *self.check(fault), sep="\n    ", flush=True)


if __name__ == "__main__":
    if not PYTHON:
        print("ACLTAPE_VLLM_PYTHON names no interpreter; skipped")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
