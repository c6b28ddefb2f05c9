#!/usr/bin/env python3
"""The torch plug-in records real programs: leaves, parents, phases, values, processes, kills."""
import json
import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from harness import BINARY, TORCH_PYTHON, CommandTest, main  # noqa: E402

NESTED_PROGRAM = os.environ.get("ACLTAPE_NESTED_PROGRAM", "")
COUNTING_PROGRAM = os.environ.get("ACLTAPE_COUNTING_PROGRAM", "")

LEAVES = """
SELECT call_id, op, phase, status, parent_id FROM call WHERE leaf ORDER BY call_id
"""


class PluginTest(CommandTest):
    def run_recorded(self, text, payload="none", options=(), code=0):
        """Records a Python program given as text; returns an open connection to its trace."""
        trace = self.path(self.id().rsplit(".", 1)[-1] + ".db")
        self.result = self.record(trace, TORCH_PYTHON, self.script(text), payload=payload,
                                  options=options, code=code)
        self.trace = trace
        return sqlite3.connect(trace)

    def leaves(self, trace):
        return [row[1] for row in trace.execute(LEAVES)]


class Leaves(PluginTest):
    def test_leaf_below_autograd_and_its_composite_parent(self):
        trace = self.run_recorded("""
import torch
x = torch.ones(2, 3)
layer = torch.nn.Linear(3, 4)
layer(x)
""")
        rows = list(trace.execute(LEAVES))
        self.assertEqual([row[1] for row in rows][-2:], ["aten::t", "aten::addmm"])
        parents = {trace.execute("SELECT op.name FROM call JOIN op USING (op_id) WHERE call_id = ?",
                                 (row[4],)).fetchone()[0] for row in rows[-2:]}
        self.assertEqual(parents, {"aten::linear"})

    def test_kernels_inside_a_leaf_are_not_recorded(self):
        trace = self.run_recorded("""
import torch
torch.conv2d(torch.ones(1, 2, 8, 8), torch.ones(3, 2, 3, 3))
""")
        names = self.leaves(trace)
        self.assertIn("aten::convolution", names)
        self.assertFalse([name for name in names if "mkldnn" in name or "thnn" in name], names)

    def test_phases_of_a_training_step(self):
        trace = self.run_recorded("""
import torch
layer = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
loss = layer(torch.ones(2, 3)).sum()
loss.backward()
optimizer.step()
""")
        phases = {(row[1], row[2]) for row in trace.execute(LEAVES)}
        self.assertIn(("aten::addmm", "forward"), phases)
        self.assertIn(("aten::mm", "backward"), phases)
        self.assertIn(("aten::sum.dim_IntList", "backward"), phases)
        self.assertIn(("aten::add_.Tensor", "optimizer"), phases)

    def test_every_argument_kind_is_kept(self):
        trace = self.run_recorded("""
import torch
x = torch.arange(6.).view(2, 3).t()
torch.cat([x, x], dim=1)
torch.add(x, 2, alpha=0.5)
torch.sum(x, dim=[0, 1], keepdim=True, dtype=torch.float64)
""")
        def arguments(name):
            return {row[0]: row[1:] for row in trace.execute(
                "SELECT argument.name, kind, integer, real, list, argument.shape, tensor.strides "
                "FROM argument JOIN call USING (call_id) JOIN op USING (op_id) "
                "LEFT JOIN tensor USING (tensor_id) WHERE op.name = ? AND call.leaf", (name,))}
        cat = arguments("aten::cat")
        self.assertEqual(cat["tensors"][0], "tensor_list")
        self.assertEqual(len(json.loads(cat["tensors"][3])), 2)
        self.assertEqual(cat["dim"][:2], ("int", 1))
        self.assertEqual(json.loads(cat["out"][4]), [3, 4])
        add = arguments("aten::add")
        self.assertEqual(json.loads(add["self"][4]), [3, 2])
        self.assertEqual(json.loads(add["self"][5]), [1, 3], "strides of the transposed view")
        self.assertEqual(add["alpha"][0::2][:2], ("real", 0.5))
        total = arguments("aten::sum")
        self.assertEqual(total["dim"][0], "int_list")
        self.assertEqual(json.loads(total["dim"][3]), [0, 1])
        self.assertEqual(total["keepdim"][:2], ("bool", 1))
        self.assertEqual(total["dtype"][0], "dtype")

    def test_hot_operators_are_recorded_as_boxed_ones_are(self):
        # Each operator is in recorder/torch/hot_ops.txt; together they have every kind of argument
        # and of return.
        program = """
import torch
torch.manual_seed(0)
aten = torch.ops.aten
x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
w = torch.nn.Parameter(torch.ones(3, 3))
with torch.no_grad():
    torch.add(x, x, alpha=2), torch.add(x, 1.5), torch.add(x, True), torch.mul(x, 1j)
    torch.sum(x, dim=[0, -1], keepdim=True, dtype=torch.float64), torch.sum(x)
    aten.view.default(x, [3, 2]), aten.slice.Tensor(x, 1, None, 2, 1), aten.expand.default(x, [2, 2, 3])
    aten.cat.default([x, x[:, :0]], 1), aten.stack.default([x, x], -1), aten.unbind.int(x, 1)
    aten.index.Tensor(x, [None, torch.tensor([0, 2])])
    aten.clone.default(x, memory_format=torch.contiguous_format)
    aten.gelu.default(x, approximate="tanh"), aten.clamp.default(x, None, 2), aten.max.dim(x, 1, True)
    aten.empty.memory_format([2, 0], dtype=torch.int64, device="cpu", pin_memory=False)
    aten.native_layer_norm.default(x, [3], None, None, 1e-5)
    aten.native_layer_norm_backward.default(x, x, [3], torch.zeros(2, 1), torch.ones(2, 1), None,
                                            None, [True, False, False])
    aten.split.Tensor(x, 1, 0), aten.where.self(x > 1, x, torch.tensor(0.))
    aten.arange.start_step(0, 10, 3), aten.randn.default([2]), aten._to_copy.default(x, dtype=torch.half)
    aten.native_batch_norm.default(x, None, None, torch.zeros(3), torch.ones(3), True, 0.1, 1e-5)
    x.add_(1), x.zero_(), aten.copy_.default(x, torch.ones(3)), x.resolve_conj(), torch.dropout(x, 0.5, True)
    torch.conj(torch.ones(2, dtype=torch.cfloat)).clone(), torch.tensor(3).item(), x.to_sparse().detach()
torch.nn.functional.linear(x, w).softmax(-1).sum().backward()
"""
        rows = """
SELECT c.call_id, op.name, op.overload, a.position, a.name, a.direction, a.kind, l.dtype, l.shape, l.strides,
       l.byte_offset, l.flags, a.slot, a.integer, a.real, a.text, a.list, c.buffers, c.parent_id, c.bits
FROM call_row c JOIN signature USING (signature_id) JOIN op USING (op_id)
     LEFT JOIN signature_argument a USING (signature_id) LEFT JOIN layout l USING (layout_id)
ORDER BY c.call_id, a.position"""
        typed = list(self.run_recorded(program).execute(rows))
        os.environ["ACLTAPE_BOXED"] = "1"
        try:
            boxed = list(self.run_recorded(program, options=["--force"]).execute(rows))
        finally:
            del os.environ["ACLTAPE_BOXED"]
        self.assertGreater(len(typed), 200)
        for one, other in zip(typed, boxed):
            self.assertEqual(one, other)
        self.assertEqual(len(typed), len(boxed))

    def test_views_share_a_buffer_and_a_reused_address_is_another_buffer(self):
        trace = self.run_recorded("""
import torch
x = torch.ones(8)
x.view(2, 4)
addresses = set()
for _ in range(50):
    y = x + x
    addresses.add(y.data_ptr())
    del y
assert len(addresses) < 50, "this test needs an address to be used again"
""")
        rows = list(trace.execute(
            "SELECT direction, buffer_id FROM argument JOIN call USING (call_id) "
            "JOIN op USING (op_id) WHERE op.name = 'aten::view' AND kind = 'tensor'"))
        self.assertEqual(len({buffer for _, buffer in rows}), 1, rows)
        outputs = trace.execute(
            "SELECT COUNT(DISTINCT buffer_id) FROM argument JOIN call USING (call_id) "
            "JOIN op USING (op_id) WHERE op.name = 'aten::add' AND argument.name = 'out'").fetchone()
        self.assertEqual(outputs[0], 50)

    def test_an_operator_that_throws_is_kept_with_its_status(self):
        trace = self.run_recorded("""
import torch
try:
    torch.mm(torch.ones(2, 3), torch.ones(2, 3))
except RuntimeError as error:
    print(error)
torch.ones(1) + 1
""")
        self.assertIn("cannot be multiplied", self.result.out)
        status = {row[1]: row[3] for row in trace.execute(LEAVES)}
        self.assertEqual(status["aten::mm"], 1)
        self.assertEqual(status["aten::add.Tensor"], 0)

    def test_inference_mode_records_the_leaves_of_composites(self):
        trace = self.run_recorded("""
import torch
with torch.inference_mode():
    torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4))
""")
        self.assertEqual(self.leaves(trace)[-2:], ["aten::t", "aten::addmm"])

    def test_first_operator_of_a_thread_is_seen(self):
        trace = self.run_recorded("""
import threading, torch
x = torch.ones(4)
threads = [threading.Thread(target=lambda: x.mul(x)) for _ in range(5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
        count, threads = trace.execute(
            "SELECT COUNT(*), COUNT(DISTINCT thread_id) FROM call JOIN op USING (op_id) "
            "WHERE op.name = 'aten::mul'").fetchone()
        self.assertEqual((count, threads), (5, 5))

    def test_no_buffer_is_older_than_the_recording(self):
        trace = self.run_recorded("""
import threading, torch
x = torch.ones(4)  # the first thing that the thread records is a buffer
threads = [threading.Thread(target=lambda: torch.zeros(4)) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
        base, = trace.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns'").fetchone()
        begins = [ns for ns, in trace.execute("SELECT alloc_ns FROM buffer WHERE alloc_ns IS NOT NULL")]
        self.assertGreaterEqual(len(begins), 4)
        self.assertGreaterEqual(min(begins), base)

    def test_user_ranges_become_steps(self):
        trace = self.run_recorded("""
import torch
x = torch.ones(4)
for _ in range(3):
    with torch.profiler.record_function("batch"):
        x = x + 1
""", options=("--steps-from", "batch"))
        steps = list(trace.execute("SELECT step, first_call, last_call, found_by FROM step"))
        self.assertEqual([row[0] for row in steps], [0, 1, 2])
        self.assertTrue(all(row[3] == "range:batch" for row in steps), steps)

    def test_modules_become_scopes_with_their_paths(self):
        trace = self.run_recorded("""
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    def forward(self, x):
        return self.blocks(x)
net = Net()
net(torch.ones(2, 3))
""", options=("--modules",))
        scope = dict(trace.execute("SELECT call.op, scope.name FROM call JOIN scope USING (scope_id) "
                                   "WHERE leaf AND scope.kind = 'module'"))
        self.assertEqual(scope, {"aten::t": "blocks.0", "aten::addmm": "blocks.0",
                                 "aten::relu": "blocks.1"})

    def test_without_composites_the_leaves_are_the_same(self):
        program = """
import torch
torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3))
"""
        with_parents = self.leaves(self.run_recorded(program))
        trace = self.run_recorded(program, options=("--no-composites",))
        self.assertEqual(self.leaves(trace), with_parents)
        self.assertEqual(trace.execute("SELECT COUNT(*) FROM call WHERE NOT leaf").fetchone()[0], 0)


class Values(PluginTest):
    def snapshots(self, trace, name, moment):
        return list(trace.execute(
            "SELECT snapshot.* FROM snapshot JOIN call USING (call_id) JOIN op USING (op_id) "
            "WHERE op.name = ? AND moment = ?", (name, moment)))

    def test_only_inputs_that_no_recorded_call_made_are_kept(self):
        trace = self.run_recorded("""
import torch
x = torch.tensor([1., 2., 3.])
y = x + 1
z = y * y
""", payload="inputs")
        self.assertEqual(len(self.snapshots(trace, "aten::add", "before")), 2, "x and the number 1")
        self.assertEqual(len(self.snapshots(trace, "aten::mul", "before")), 0)

    def test_a_numpy_write_between_calls_makes_the_buffer_an_input_again(self):
        program = """
import numpy, torch
array = numpy.ones(1000, dtype=numpy.float32)
x = torch.from_numpy(array)
x + 1
x + 1
array[500] = 7
x + 1
"""
        for payload in ("inputs", "all"):
            with self.subTest(payload=payload):
                trace = self.run_recorded(program, payload=payload)
                whole = trace.execute(
                    "SELECT COUNT(*) FROM snapshot JOIN call USING (call_id) JOIN op USING (op_id) "
                    "WHERE op.name = 'aten::add' AND moment = 'before' AND position = -1 "
                    "AND tensor_id >> 24 IN (SELECT buffer_id FROM buffer WHERE bytes = 4000)"
                ).fetchone()[0]
                self.assertEqual(whole, 2, self.result)

    def test_a_write_to_an_intermediate_result_is_noticed_when_all_values_are_kept(self):
        trace = self.run_recorded("""
import torch
y = torch.ones(100) + 1
y.numpy()[3] = 5
y * 2
""", payload="all")
        self.assertEqual(len(self.snapshots(trace, "aten::mul", "before")), 2, "y and the number 2")

    def test_an_output_has_its_own_bytes_whether_it_fills_its_buffer_or_not(self):
        trace = self.run_recorded("""
import torch
x = torch.arange(6.).reshape(2, 3)
x.add_(1)
x[1].add_(1)
x.t().add_(1)
x[:, 1].add_(1)
""", payload="all")
        rows = trace.execute(
            "SELECT snapshot.digest, codec, data FROM snapshot JOIN call USING (call_id) "
            "JOIN op USING (op_id) JOIN payload USING (digest) "
            "WHERE op.name = 'aten::add_' AND moment = 'after' ORDER BY call_id").fetchall()
        self.assertEqual([row[1] for row in rows], ["raw"] * 4)
        values = [list(struct.unpack(f"{len(row[2]) // 4}f", row[2])) for row in rows]
        self.assertEqual(values, [[1, 2, 3, 4, 5, 6],  # all of the buffer
                                  [5, 6, 7],           # its end
                                  [2, 3, 4, 6, 7, 8],  # all of it, in the order of its addresses
                                  [4, 8]])             # a column, packed
        # Nothing changed between the calls: no buffer is an input again.
        self.assertEqual(trace.execute("SELECT COUNT(*) FROM snapshot WHERE changed").fetchone()[0], 0)

    def test_statistics_of_an_output(self):
        trace = self.run_recorded("""
import torch
x = torch.linspace(-1, 3, 5001) + 0
torch.tensor([1., float('nan'), float('inf'), -2.]) + 0
""", payload="digest")
        rows = trace.execute(
            "SELECT snapshot.min, snapshot.max, snapshot.mean, snapshot.l2, nan_count, inf_count "
            "FROM snapshot JOIN call USING (call_id) JOIN op USING (op_id) "
            "WHERE op.name = 'aten::add' ORDER BY call_id").fetchall()
        values = [-1 + 4 * i / 5000 for i in range(5001)]
        self.assertAlmostEqual(rows[0][0], -1)
        self.assertAlmostEqual(rows[0][1], 3)
        self.assertAlmostEqual(rows[0][2], 1, places=4)
        self.assertAlmostEqual(rows[0][3], sum(v * v for v in values) ** 0.5, places=2)
        self.assertEqual(rows[1][:2], (-2, 1))
        self.assertEqual(rows[1][4:], (1, 1))

    def test_running_statistics_are_outputs_of_batch_norm_in_training_only(self):
        program = """
import torch
layer = torch.nn.BatchNorm1d(3)
layer.train({training})
layer(torch.rand(4, 3))
"""
        for training, kept in ((True, 2), (False, 0)):
            with self.subTest(training=training):
                trace = self.run_recorded(program.format(training=training), payload="all")
                rows = [row for row in trace.execute(
                    "SELECT argument.name FROM snapshot JOIN call USING (call_id) JOIN argument "
                    "USING (call_id, position) WHERE moment = 'after' AND "
                    "call.op LIKE '%batch_norm%' AND argument.name LIKE 'running%'")]
                self.assertEqual(len(rows), kept, rows)

    def test_random_outputs_are_kept_with_the_inputs(self):
        trace = self.run_recorded("""
import torch
torch.manual_seed(1)
torch.empty(10).normal_()
torch.rand(3)
""", payload="inputs")
        self.assertEqual(len(self.snapshots(trace, "aten::normal_", "after")), 1)
        self.assertEqual(len(self.snapshots(trace, "aten::normal_", "before")), 0)
        self.assertEqual(len(self.snapshots(trace, "aten::rand", "after")), 1)

    def test_equal_contents_are_stored_once(self):
        trace = self.run_recorded("""
import torch
for _ in range(20):
    torch.tensor([1., 2., 3.]) + 1
""", payload="inputs")
        digests = {row[0] for row in trace.execute(
            "SELECT digest FROM snapshot JOIN call USING (call_id) JOIN op USING (op_id) "
            "WHERE op.name = 'aten::add' AND moment = 'before'")}
        self.assertEqual(len(digests), 2, "the tensor and the number 1")


class Processes(PluginTest):
    def test_a_forked_child_is_recorded_beside_its_parent(self):
        trace = self.run_recorded("""
import os, torch
x = torch.ones(4)
x + 1
if os.fork() == 0:
    for _ in range(10): x * x
    os._exit(0)
os.wait()
x - 1
""")
        names = self.leaves(trace)
        self.assertEqual(names.count("aten::mul.Tensor"), 10)
        self.assertIn("aten::sub.Tensor", names)
        processes = trace.execute(
            "SELECT COUNT(DISTINCT process_id) FROM thread WHERE thread_id IN "
            "(SELECT thread_id FROM call)").fetchone()[0]
        self.assertEqual(processes, 2)

    def test_a_program_started_by_the_program_is_recorded(self):
        trace = self.run_recorded("""
import subprocess, sys
subprocess.run([sys.executable, "-c", "import torch; torch.ones(2).neg()"], check=True)
""")
        self.assertIn("aten::neg", self.leaves(trace))

    def test_a_cpp_program_with_threads_is_recorded_in_full(self):
        trace = self.path("cpp.db")
        self.record(trace, COUNTING_PROGRAM, self.path("count"), "500", payload="none")
        connection = sqlite3.connect(trace)
        counts = connection.execute(
            "SELECT COUNT(*) FROM call JOIN op USING (op_id) WHERE op.name = 'aten::add' "
            "GROUP BY thread_id").fetchall()
        self.assertEqual(counts, [(499,), (499,)])

    def test_shared_memory_tensors_still_work(self):
        self.run_recorded("""
import torch, torch.multiprocessing
x = torch.ones(8)
x.share_memory_()
assert x.is_shared()
x.add_(1)
print(x.sum().item())
""")
        self.assertEqual(self.result.out.strip(), "16.0")

    def test_the_program_s_own_profiler_still_works(self):
        self.run_recorded("""
import torch
with torch.profiler.profile(record_shapes=True, profile_memory=True) as profile:
    torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3))
names = {event.key for event in profile.key_averages()}
assert {"aten::linear", "aten::mm", "aten::t"} <= names, names
print("fine")
""")
        self.assertEqual(self.result.out.strip(), "fine")


class Nested(PluginTest):
    """Both levels: an operator of PyTorch that calls the ACL interface."""

    def record_nested(self, level):
        trace = self.path(f"nested_{level.replace(',', '_')}.db")
        done = self.record(trace, NESTED_PROGRAM, payload="all", options=("--level", level))
        self.assertEqual(done.out.split(), ["4", "8", "12"])
        return sqlite3.connect(trace)

    def test_acl_calls_lie_inside_the_operator_that_made_them(self):
        trace = self.record_nested("aten,acl")
        rows = trace.execute("""
            SELECT c.op, c.leaf, p.op, p.leaf, c.begin_ns >= p.begin_ns AND c.end_ns <= p.end_ns
            FROM call c LEFT JOIN call p ON p.call_id = c.parent_id
            WHERE c.op = 'aclnnAdd'""").fetchall()
        self.assertEqual(rows, [("aclnnAdd", 1, "sample::acl_add", 1, 1)] * 3)
        # The device's own use of libtorch is not the program's.
        inside = trace.execute("""
            SELECT DISTINCT o.dialect FROM call c JOIN call p ON p.call_id = c.parent_id
            JOIN op o ON o.op_id = c.op_id WHERE p.op = 'sample::acl_add'""").fetchall()
        self.assertEqual(sorted(row[0] for row in inside), ["aclnn", "aclrt"])
        names = {row[0] for row in trace.execute("SELECT DISTINCT op FROM call WHERE op LIKE 'aten::%'")}
        self.assertFalse(names & {"aten::add.out", "aten::add.Tensor"}, names)

    def test_one_level_leaves_the_other_out(self):
        acl = self.record_nested("acl")
        self.assertEqual(acl.execute("SELECT count(*) FROM op WHERE dialect = 'aten'").fetchone(), (0,))
        self.assertEqual(acl.execute("SELECT count(*) FROM call WHERE op = 'aclnnAdd' "
                                     "AND parent_id IS NULL").fetchone(), (3,))
        aten = self.record_nested("aten")
        self.assertEqual(aten.execute("SELECT count(*) FROM op WHERE dialect = 'aclnn'").fetchone(), (0,))


class Kills(PluginTest):
    """`kill -9` at seeded random moments; the program counts its finished operators itself."""

    KILLS = int(os.environ.get("ACLTAPE_KILLS", "100"))
    SEED = 20

    def test_a_killed_program_leaves_every_completed_call(self):
        moments = random.Random(self.SEED)
        seen = 0
        for number in range(self.KILLS):
            count_file, trace = self.path("count"), self.path("killed.db")
            for path in (count_file, trace):
                if os.path.exists(path):
                    os.remove(path)
            wait = moments.uniform(0, 0.15)
            seen += self.kill_once(count_file, trace, wait, f"kill {number}, {wait:.4f} s after start")
        self.assertGreater(seen, 0)

    def kill_once(self, count_file, trace, wait, evidence):
        command = [BINARY, "record", "--quiet", "-o", trace, "--payload", "none", "--",
                   COUNTING_PROGRAM, count_file]
        recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 30
        while not (os.path.exists(count_file) and os.path.getsize(count_file) >= 8192):
            self.assertLess(time.monotonic(), deadline, evidence)
            self.assertIsNone(recorder.poll(), evidence)
            time.sleep(0.001)
        time.sleep(wait)
        child = int(subprocess.run(["pgrep", "-P", str(recorder.pid)], capture_output=True,
                                   text=True, check=True).stdout.split()[0])
        os.kill(child, signal.SIGKILL)
        recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 128 + signal.SIGKILL, evidence)
        with open(count_file, "rb") as file:
            data = file.read()
        completed = sum(struct.unpack_from("<Q", data, 4096 * i)[0] for i in range(2))
        connection = sqlite3.connect(trace)
        state = connection.execute("SELECT value FROM meta WHERE key = 'state'").fetchone()[0]
        self.assertEqual(state, "partial", evidence)
        recorded = connection.execute("SELECT COUNT(*) FROM call WHERE leaf").fetchone()[0]
        # A leaf becomes visible before the program can count it; at most one per thread is ahead.
        self.assertGreaterEqual(recorded, completed, evidence)
        self.assertLessEqual(recorded, completed + 2, evidence)
        self.assertEqual(connection.execute("PRAGMA integrity_check").fetchone()[0], "ok", evidence)
        return completed


if __name__ == "__main__":
    main()
