#!/usr/bin/env python3
"""Triton kernels on the soft device: what they compute, and what a recording has of them."""
import json
import os
import re
import sqlite3

import harness

PROGRAM = os.path.join(harness.PROGRAMS, "triton_kernels.py")
# A kernel that fails when it runs, and one that uses what is not interpreted.
FAILING = """
import sys
import torch, torch_npu
from acltape_triton import language as tl
from acltape_triton.kernel import TRITON as triton

@triton.jit
def fails(x_ptr):
    tl.device_assert(tl.load(x_ptr) == 1, "x is not 1")

@triton.jit
def unknown(x_ptr):
    tl.store(x_ptr, tl.philox_of_tomorrow(1))

x = torch.zeros(8).npu()
try:
    unknown[(1,)](x)
except NotImplementedError as error:
    print(error)
fails[(1,)](x)
try:
    torch.npu.synchronize()
except RuntimeError as error:
    print("the device failed")
"""
# Computes with what a kernel stored.
STORING = """
import torch, torch_npu
from acltape_triton import language as tl
from acltape_triton.kernel import TRITON as triton

@triton.jit
def square(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    tl.store(out_ptr + at, x * x, mask=at < count)

x, out = torch.arange(100.0).npu(), torch.zeros(100).npu()
for step in range(3):
    square[(4,)](x, out, 100, BLOCK=32)
    x = out.sqrt() + 1
print(x.cpu().tolist() == [value + 3.0 for value in range(100)])
"""


class Triton(harness.NpuTest):
    def test_kernels_compute_what_numpy_does_eagerly_and_in_graphs(self):
        self.program("triton_kernels.py")

    def test_kernels_in_compiled_functions_are_nodes_of_one_graph(self):
        """With sizes that are symbols, arguments that are written, and captured."""
        self.program("compiled_kernels.py")

    def test_a_full_stream_does_not_hold_up_the_kernel_in_front_of_it(self):
        """The adapter waits for its queue, the queue for the stream, and the kernel for Python's lock."""
        self.program("full_queue.py", environment={"ACLTAPE_SOFT_QUEUE_DEPTH": "16"})

    def test_a_recording_has_each_launch_as_an_operator_with_its_arguments(self):
        trace = os.path.join(self.folder, "t.db")
        self.call(harness.BINARY, "record", "--soft", "-o", trace, "--", harness.PYTHON, PROGRAM)
        with sqlite3.connect(trace) as database:
            rows = database.execute(
                "SELECT c.signature_id, l.file FROM call c JOIN call_location l USING (call_id) "
                "WHERE op = 'acltape::triton_kernel' ORDER BY call_id").fetchall()
            self.assertEqual(len(rows), 4 + 4 + 400)  # eagerly, while a graph was captured, on another stream
            self.assertEqual({os.path.basename(file) for _, file in rows}, {"triton_kernels.py"})
            arguments = database.execute("SELECT * FROM signature_argument WHERE signature_id = ?", rows[:1][0][:1])
            text = str(arguments.fetchall())
        self.assertIn("add_some", text)
        self.assertIn("x_ptr=tensors[0], y_ptr=tensors[1], out_ptr=tensors[2], count=1000, BLOCK=256", text)

    def test_a_replay_has_what_kernels_stored_that_ran_on_the_host(self):
        file, trace = (os.path.join(self.folder, name) for name in ("storing.py", "t.db"))
        with open(file, "w", encoding="utf-8") as program:
            program.write(STORING)
        for on_host in (False, True):
            done = self.call(harness.BINARY, "record", "--soft", "--force", "--payload", "all", "-o", trace, "--",
                             harness.PYTHON, file, environment={"ACLTAPE_TRITON_ON_HOST": str(int(on_host))})
            self.assertIn("True", done.stdout)
            said = self.call(harness.BINARY, "replay", trace, "--level", "acl", code=0 if on_host else 1).stdout
            if on_host:
                self.assertIn("equal bit for bit: all", said)
                self.assertNotIn("ACL-LEFT-OUT", said)
            else:
                self.assertIn("ACL-LEFT-OUT", said)

    def findings(self, trace, *words):
        """The rules that found something, each with the line; hints are left out."""
        said = self.call(harness.BINARY, "lint", trace, "--no-results", "--fail-on", "never", "--format", "json",
                         *words)
        rows = json.loads(said.stdout)["findings"]
        return {(row["rule"], int(re.search(r":(\d+) ", row["where"])[1])) for row in rows
                if row["rule"].startswith("LINT") and row["severity"] != "info"}

    def findings_of_page(self, trace, *words):
        """The same of the report page."""
        page = os.path.join(self.folder, "t.html")
        self.call(harness.BINARY, "report", trace, "--force", "-o", page, *words)
        rows = harness.data_of_page(page)["findings"]["findings"]
        return {row["rule"] for row in rows if row["severity"] != "info"}

    def findings_of_gate(self, trace):
        """The same of a gate: the rules of the baseline that it writes."""
        file = os.path.join(self.folder, "gate.json")
        self.call(harness.BINARY, "gate", trace, "--write-baseline", file)
        with open(file, encoding="utf-8") as baseline:
            return set(re.findall(r"LINT-\d+", baseline.read()))

    def test_lint_finds_mistakes_beside_kernels_on_the_host_and_those_alone(self):
        """Copies bring a kernel's results to the device; they are no inputs of a round and make no NaN."""
        file = os.path.join(harness.PROGRAMS, "kernels_on_host.py")
        with open(file, encoding="utf-8") as program:
            faults = {(found[1], number) for number, line in enumerate(program, 1)
                      if (found := re.search(r"# finds (LINT-\d+)", line))}
        self.assertEqual({rule for rule, _ in faults}, {"LINT-41", "LINT-52"})
        for words, expected in (((), set()), (("faulty",), faults)):
            trace = os.path.join(self.folder, "t.db")
            done = self.call(harness.BINARY, "record", "--soft", "--force", "--payload", "all", "-o", trace, "--",
                             harness.PYTHON, file, *words, environment={"ACLTAPE_TRITON_ON_HOST": "1"})
            self.assertIn("equal", done.stdout)
            self.assertEqual(self.findings(trace), expected)
            if not expected:
                self.assertEqual(self.findings(trace, "--level", "acl"), set())
                self.assertEqual(self.findings(trace, "--level", "aten"), set())
                for words in ((), ("--level", "aten")):
                    self.assertEqual(self.findings_of_page(trace, *words), set())
                self.assertEqual(self.findings_of_gate(trace), set())

    def test_a_kernel_that_fails_says_so_and_what_is_unknown_names_itself(self):
        file = os.path.join(self.folder, "failing.py")
        with open(file, "w", encoding="utf-8") as program:
            program.write(FAILING)
        done = self.call(harness.BINARY, "run", "--", harness.PYTHON, file)
        self.assertIn("tl.philox_of_tomorrow, which the Triton kernel unknown calls", done.stdout)
        self.assertIn("the device failed", done.stdout)
        self.assertIn("acltape: the Triton kernel fails failed:", done.stderr)
        self.assertIn("x is not 1", done.stderr)


if __name__ == "__main__":
    harness.main()
