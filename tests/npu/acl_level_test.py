"""Programs over PyTorch that were recorded at the ACL level alone: lint names what it knows, and accuses nobody.

The programs are those of graph_values/ (graph_values_test.py). What leaves tell is missing, and lint says so.
"""
import json
import os
import re
import sqlite3

import harness
from graph_values_test import FOLDER, functions

# The rules that have to find their line without leaves.
KNOWN = {
    "scalars.py": {"LINT-14"},
    "results.py": {"LINT-17"},
    "memory.py": set(),
    "state.py": {"LINT-32", "LINT-42", "LINT-44"},
    "undefined.py": {"LINT-47"},
    "host.py": {"LINT-19", "LINT-22"},
    "serving.py": set(),
}
# The adapter's thread launches a copy when the program may have filled its memory anew already.
BY_CHANCE = {"LINT-45"}

# The pool of the adapter reserves more addresses than the device has memory (expandable_segments).
IN_RESERVED_ADDRESSES = """import torch, torch_npu
weight = torch.randn(64, 64).npu()
x = torch.randn(8, 64).npu()
for _ in range(3):
    x = torch.nn.functional.gelu(x @ weight)
    print(x.sum().item())
"""


class AclLevel(harness.NpuTest):
    def lint(self, program, *options):
        trace = os.path.join(self.folder, program + ".db")
        if not os.path.exists(trace):
            self.call(harness.BINARY, "record", "--soft", "--level", "acl", "--payload", "all", "-o", trace, "--",
                      harness.PYTHON, os.path.join(FOLDER, program))
        return self.call(harness.BINARY, "lint", trace, "--fail-on", "never", *options).stdout

    def test_what_the_level_knows_is_named_and_nothing_else(self):
        for program, known in KNOWN.items():
            with self.subTest(program=program):
                findings = [one for one in json.loads(self.lint(program, "--format", "json"))["findings"]
                            if one["severity"] != "info"]
                for one in findings:
                    line = re.search(re.escape(program) + r":(\d+)", one["where"] or "")
                    if line is None:  # work of autograd, and copies that the adapter's thread issues
                        continue
                    inside = [function.name for function in functions(program)
                              if function.first <= int(line[1]) <= function.last]
                    self.assertTrue(inside and inside[0].startswith("fault_"), one)
                self.assertEqual({one["rule"] for one in findings} - BY_CHANCE, known)

    def test_the_answer_says_that_leaves_are_missing(self):
        text = self.lint("memory.py")
        self.assertIn("the trace has no leaves of PyTorch", text)
        self.assertIn("record both levels, without --level acl", text)

    def test_memory_of_a_reserved_range_is_taken_as_far_as_it_is_used(self):
        trace = os.path.join(self.folder, "reserved.db")
        program = os.path.join(self.folder, "reserved.py")
        with open(program, "w") as file:
            file.write(IN_RESERVED_ADDRESSES)
        self.call(harness.BINARY, "record", "--soft", "--level", "acl", "--payload", "all", "-o", trace, "--",
                  harness.PYTHON, program, environment={"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"})
        with sqlite3.connect(trace) as database:
            reserved = database.execute("SELECT max(bytes) FROM buffer").fetchone()[0]
        self.assertGreater(reserved, 64 << 30, "the adapter reserved no addresses")
        for words in (("--repetitions", "2"), ("--mode", "captured")):
            with self.subTest(words=words):
                text = self.call(harness.BINARY, "replay", trace, "--level", "acl", *words).stdout
                self.assertIn("equal bit for bit", text)


if __name__ == "__main__":
    harness.main()
