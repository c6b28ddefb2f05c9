#!/usr/bin/env python3
"""A program whose tensors lie in memory that the recorder does not know is never called equal."""
import sqlite3

from harness import TORCH_PYTHON, CommandTest, main

# Convolutions on tensors in oneDNN's own form, which have no bytes to look at.
OPAQUE = """
import torch
from torch.utils import mkldnn
torch.manual_seed(0)
net = mkldnn.to_mkldnn(torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval())
with torch.no_grad():
    for step in range(4):
        net(torch.randn(1, 3, 8, 8).to_mkldnn()).to_dense()
"""

NESTED = """
import torch
a = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
for step in range(4):
    a = a * 2
"""


class UnknownMemory(CommandTest):
    def check(self, program, memory):
        path = self.path(memory + ".db")
        recorded = self.record(path, TORCH_PYTHON, "-c", program, payload="all")
        told = [line for line in recorded.err.splitlines() if line.startswith("acltape: the program has tensors")]
        self.assertEqual(len(told), 1, recorded)
        self.assertIn(f"tensors in the memory '{memory}'", told[0])
        with sqlite3.connect(path) as database:
            rows = database.execute(
                "SELECT severity, subject FROM ledger WHERE kind = 'memory_not_known'").fetchall()
            layouts = database.execute("SELECT count(*) FROM layout WHERE memory = ?",
                                       [memory]).fetchone()[0]
        self.assertEqual(rows, [("notice", memory)])
        self.assertGreater(layouts, 0)
        lack = f"calls have tensors in memory that the recorder does not know ({memory})"
        facts = {row["fact"].strip(): row["value"] for row in self.json("info", path)["trace"]}
        self.assertTrue(facts["replayable"].startswith("no: "), facts)
        self.assertIn(lack, facts["replayable"])
        for words in (["replay", path], ["replay", path, "--mode", "captured"], ["diff", path, path]):
            with self.subTest(command=words[0]):
                told = self.acltape(*words, code=125)
                self.assertEqual(len(told.err.strip().splitlines()), 1, told)
                self.assertIn(lack, told.err, told)
                self.assertNotIn("equal", told.out, told)

    def test_opaque_tensors_of_the_cpu_are_refused_by_what_needs_values(self):
        self.check(OPAQUE, "mkldnn")

    def test_nested_tensors_are_refused_by_what_needs_values(self):
        self.check(NESTED, "nested")


if __name__ == "__main__":
    main()
