#!/usr/bin/env python3
"""Each recorded leaf has the line of the user's own code that it comes from.

The programs mark their lines: "#: NAME" at the end of a line says that the operators of this line are
looked up under that name. So an expectation does not depend on how many lines stand above.
"""
import json
import os
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from harness import TORCH_PYTHON, CommandTest, main, marks_of  # noqa: E402

TORCH2_PYTHON = os.environ.get("ACLTAPE_TORCH2_PYTHON", "")
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # the adapter needs a device


class LinesTest(CommandTest):
    python = TORCH_PYTHON

    def run_recorded(self, text, stacks="top", payload="inputs", options=(), code=0):
        self.script_path = self.script(text)
        self.trace = self.path(self.id().rsplit(".", 1)[-1] + ".db")
        self.result = self.record(self.trace, self.python, self.script_path, payload=payload, code=code,
                                  options=[*options, "--stacks", stacks])
        self.marks = marks_of(text)
        return sqlite3.connect(self.trace)

    def lines_of(self, trace, op):
        """(line, function, via) of the leaves of an operator, in order."""
        return trace.execute(
            "SELECT l.line, l.function, l.via FROM call c LEFT JOIN call_location l USING (call_id) "
            "WHERE c.op = ? AND c.leaf ORDER BY call_id", (op,)).fetchall()

    def name(self, function):
        """Functions have qualified names from Python 3.11 on."""
        return function if self.qualified() else function.rpartition(".")[2]

    def qualified(self):
        version = subprocess.run([self.python, "-c", "import sys; print(sys.version_info >= (3, 11))"],
                                 capture_output=True, text=True, check=True)
        return version.stdout.strip() == "True"


class Lines(LinesTest):
    def test_line_is_that_of_the_users_code_and_not_of_the_framework(self):
        trace = self.run_recorded("""
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 4)
    def forward(self, x):
        y = self.layer(x)  #: layer
        return torch.nn.functional.gelu(y)  #: gelu
model = Model()
with torch.no_grad():
    model(torch.ones(2, 3))
""")
        self.assertEqual(self.lines_of(trace, "aten::addmm"),
                         [(self.marks["layer"], self.name("Model.forward"), "own")])
        self.assertEqual(self.lines_of(trace, "aten::gelu"),
                         [(self.marks["gelu"], self.name("Model.forward"), "own")])
        file, = trace.execute("SELECT DISTINCT file FROM call_location").fetchone()
        self.assertEqual(file, self.script_path)

    def test_backward_leaf_has_the_line_of_its_forward_leaf_and_says_so(self):
        trace = self.run_recorded("""
import torch
weight = torch.ones(3, 3, requires_grad=True)
hidden = torch.ones(2, 3) @ weight  #: product
loss = hidden.tanh().sum()  #: tanh
loss.backward()  #: backward
optimizer = torch.optim.SGD([weight], lr=0.1)
optimizer.step()  #: step
""")
        self.assertEqual(self.lines_of(trace, "aten::tanh_backward"),
                         [(self.marks["tanh"], "<module>", "forward")])
        self.assertEqual(self.lines_of(trace, "aten::mm"),
                         [(self.marks["product"], "<module>", "own"),
                          (self.marks["product"], "<module>", "forward")])
        self.assertEqual(self.lines_of(trace, "aten::add_.Tensor"),
                         [(self.marks["step"], "<module>", "own")])

    def test_every_frame_form_of_the_interpreter(self):
        # Recursion, generators, coroutines, comprehensions, lambdas, a decorator of torch, code that
        # was compiled from a string, a callback from C, an exception on its way.
        trace = self.run_recorded("""
import asyncio
import functools
import torch
x = torch.ones(3)
def recursive(n):
    if n == 0:
        return torch.sin(x)  #: recursive
    return recursive(n - 1)
def generator():
    for _ in range(2):
        yield torch.cos(x)  #: generator
async def coroutine():
    await asyncio.sleep(0)
    return torch.tan(x)  #: coroutine
@torch.no_grad()
def decorated():
    return torch.exp(x)  #: decorated
def failing():
    try:
        raise ValueError
    except ValueError:
        return torch.log(x)  #: except
recursive(200)
list(generator())
asyncio.run(coroutine())
[torch.asinh(x) for _ in range(2)]  #: comprehension
(lambda: torch.neg(x))()  #: lambda
decorated()
sorted([2, 1], key=lambda n: float(torch.sqrt(torch.ones(1) * n)))  #: callback
functools.reduce(lambda a, b: torch.sub(a, b), [x, x])  #: reduce
failing()
exec(compile("torch.floor(x)", "made_up.py", "exec"))
""")
        for op, mark in [("aten::sin", "recursive"), ("aten::cos", "generator"),
                         ("aten::tan", "coroutine"), ("aten::asinh", "comprehension"),
                         ("aten::neg", "lambda"), ("aten::exp", "decorated"),
                         ("aten::sqrt", "callback"), ("aten::sub.Tensor", "reduce"),
                         ("aten::log", "except")]:
            with self.subTest(op):
                lines = self.lines_of(trace, op)
                self.assertTrue(lines)
                self.assertEqual({line[0] for line in lines}, {self.marks[mark]})
        made_up = trace.execute("SELECT file, l.line FROM call_location l JOIN call USING (call_id) "
                                "WHERE op = 'aten::floor'").fetchall()
        self.assertEqual(made_up, [("made_up.py", 1)])

    def test_threads_have_lines_of_their_own(self):
        trace = self.run_recorded("""
import threading
import torch
x = torch.ones(3)
def left():
    for _ in range(300):
        torch.sin(x)  #: left
def right():
    for _ in range(300):
        torch.cos(x)  #: right
threads = [threading.Thread(target=f) for f in (left, right, left, right)]
[t.start() for t in threads]
[t.join() for t in threads]
""")
        self.assertEqual(set(self.lines_of(trace, "aten::sin")), {(self.marks["left"], "left", "own")})
        self.assertEqual(set(self.lines_of(trace, "aten::cos")),
                         {(self.marks["right"], "right", "own")})
        self.assertEqual(len(self.lines_of(trace, "aten::sin")), 600)

    def test_forked_child_and_spawned_program_have_lines(self):
        trace = self.run_recorded("""
import os, subprocess, sys
import torch
x = torch.ones(3)
torch.sin(x)  #: parent
if os.fork() == 0:
    torch.cos(x)  #: child
    os._exit(0)
os.wait()
subprocess.run([sys.executable, "-c", "import torch; torch.tan(torch.ones(3))"], check=True)
""")
        self.assertEqual(self.lines_of(trace, "aten::sin"), [(self.marks["parent"], "<module>", "own")])
        self.assertEqual(self.lines_of(trace, "aten::cos"), [(self.marks["child"], "<module>", "own")])
        self.assertEqual(self.lines_of(trace, "aten::tan"), [(1, "<module>", "own")])

    def test_many_functions_and_lines_are_told_apart(self):
        # More functions and lines than a thread remembers at a time.
        trace = self.run_recorded("""
import torch
x = torch.ones(1)
source = "import torch\\n" + "".join(
    f"def f{i}(x):\\n    return torch.sin(x)\\n" for i in range(1500))
names = {}
exec(compile(source, "many.py", "exec"), names)
for _ in range(2):
    for i in range(1500):
        names[f"f{i}"](x)
""")
        wanted = [(3 + 2 * i, f"f{i}", "own") for i in range(1500)]
        self.assertEqual(self.lines_of(trace, "aten::sin"), wanted + wanted)

    def test_code_made_in_a_loop_does_not_keep_the_lines_of_code_that_is_gone(self):
        trace = self.run_recorded("""
import torch
x = torch.ones(1)
for i in range(50):
    exec(compile("\\n" * i + "torch.sin(x)", f"made_{i}.py", "exec"))
""")
        found = trace.execute("SELECT file, l.line FROM call_location l JOIN call USING (call_id) "
                              "WHERE op = 'aten::sin' ORDER BY call_id").fetchall()
        self.assertEqual(found, [(f"made_{i}.py", i + 1) for i in range(50)])

    def test_thread_without_python_has_no_lines_and_loses_nothing(self):
        trace = self.run_recorded("""
import torch
weight = torch.ones(3, requires_grad=True)
out = torch.jit.fork(torch.sin, weight) if hasattr(torch.jit, "fork") else None
torch.jit.wait(out)
""")
        self.assertEqual(len(self.lines_of(trace, "aten::sin")), 1)

    def test_another_interpreter_of_the_process_ends_nothing(self):
        # After it PyGILState_Check says yes to every thread.
        trace = self.run_recorded("""
import torch
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
torch.ones(1)
interpreters.destroy(interpreters.create())

def compute():
    torch.ones(2)
    torch.sin(torch.ones(3))

compute()
""")
        self.assertEqual(len(self.lines_of(trace, "aten::ones")), 3)
        self.assertEqual(len(self.lines_of(trace, "aten::sin")), 1)

    def test_no_lines_when_none_are_wanted(self):
        trace = self.run_recorded("import torch\ntorch.ones(3).sin()\n", stacks="none")
        self.assertEqual(trace.execute("SELECT count(*) FROM stack").fetchone()[0], 0)
        self.assertEqual(trace.execute("SELECT count(*) FROM call WHERE stack_id IS NOT NULL")
                         .fetchone()[0], 0)

    def test_unknown_policy_is_refused(self):
        result = self.acltape("record", "--stacks", "some", "--", "true", code=2)
        self.assertSentence(result, "--stacks")


class Torch2Lines(Lines):
    """The same with today's PyTorch, whose Python may be another one."""
    python = TORCH2_PYTHON


class LinesByFunctions(Lines):
    """The same lines by the interpreter's public functions alone, as of one whose frames nobody knows."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["ACLTAPE_PYTHON_LAYOUT"] = "none"

    @classmethod
    def tearDownClass(cls):
        del os.environ["ACLTAPE_PYTHON_LAYOUT"]
        super().tearDownClass()


class Torch2LinesByFunctions(LinesByFunctions):
    python = TORCH2_PYTHON


class Whole(LinesTest):
    PROGRAM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.softmax(x, dim=0)  #: softmax
def outer(model):
    return model(torch.ones(3))  #: call
with torch.no_grad():
    outer(Model())  #: outer
"""

    def test_whole_stack_from_the_framework_to_the_script(self):
        trace = self.run_recorded(self.PROGRAM, stacks="full")
        frames, user_frame = trace.execute(
            "SELECT frames, user_frame FROM call JOIN stack USING (stack_id) "
            "WHERE op = 'aten::_softmax'").fetchone()
        frames = json.loads(frames)
        own = [(frame["line"], frame["function"]) for frame in frames
               if frame["file"] == self.script_path]
        self.assertEqual(own, [(self.marks["softmax"], self.name("Model.forward")),
                               (self.marks["call"], "outer"), (self.marks["outer"], "<module>")])
        self.assertTrue(frames[0]["file"].endswith("torch/nn/functional.py"), frames[0])
        self.assertEqual(frames[user_frame]["line"], self.marks["softmax"])
        self.assertEqual(self.lines_of(trace, "aten::_softmax"),
                         [(self.marks["softmax"], self.name("Model.forward"), "own")])

    def test_one_line_reached_in_two_ways_has_two_stacks(self):
        trace = self.run_recorded("""
import torch
def shared():
    return torch.ones(3).sin()  #: shared
def left():
    return shared()  #: left
def right():
    return shared()  #: right
for _ in range(3):
    left()
    right()
""", stacks="full")
        stacks = trace.execute("SELECT DISTINCT frames FROM call JOIN stack USING (stack_id) "
                               "WHERE op = 'aten::sin'").fetchall()
        callers = sorted(json.loads(frames)[1]["line"] for frames, in stacks)
        self.assertEqual(callers, [self.marks["left"], self.marks["right"]])
        self.assertEqual(set(self.lines_of(trace, "aten::sin")),
                         {(self.marks["shared"], "shared", "own")})


class Where(LinesTest):
    """Commands show lines and pick by them."""

    PROGRAM = """
import torch
x = torch.ones(4, 4)
w = torch.ones(4, 4)
for step in range(6):
    y = x @ w  #: product
    if y.sum().item() > 1e30:  #: item
        break
    x = y * 0.125  #: scale
"""

    def test_item_in_a_step_is_found_at_its_line(self):
        self.run_recorded(self.PROGRAM)
        found = self.json("lint", self.trace, "--no-results", code=1)["findings"]
        reads = [row for row in found if "_local_scalar_dense" in row["message"]]
        self.assertTrue(reads, found)
        self.assertIn(f":{self.marks['item']} (<module>)", reads[0]["where"])

    def test_varying_rate_is_named_at_its_line(self):
        self.run_recorded("""
import torch
weight = torch.ones(4, 4)
for step in range(8):
    gradient = weight * 0.5
    weight.sub_(gradient, alpha=0.1 / (step + 1))  #: update
""")
        rows = self.json("steps", self.trace)["arguments"]
        self.assertEqual({row["argument"] for row in rows}, {"alpha"})
        self.assertIn(f":{self.marks['update']} (<module>)", rows[0]["where"])

    def test_wrong_constant_is_found_at_its_line_by_diff(self):
        program = """
import sys
import torch
torch.manual_seed(0)
x = torch.rand(4, 4)
for step in range(4):
    x = x @ x
    x = x * SCALE  #: scale
    x = x.tanh()
"""
        self.run_recorded(program.replace("SCALE", "0.5"), payload="all")
        good = self.path("good.db")
        os.rename(self.trace, good)
        self.run_recorded(program.replace("SCALE", "0.25"), payload="all")
        report = self.json("diff", good, self.trace, "--no-results", code=1)
        self.assertIn(f":{self.marks['scale']} (<module>)", report["origins"][0]["where"])

    def test_bisected_call_is_named_with_its_line(self):
        self.run_recorded(self.PROGRAM, payload="all")
        call = sqlite3.connect(self.trace).execute(
            "SELECT call_id FROM call WHERE op = 'aten::mm' AND step = 2").fetchone()[0]
        said = self.acltape("bisect", self.trace, "--plant", f"wrong_bits@{call}", code=1).out
        self.assertRegex(said, rf"(?m)^  where +.*:{self.marks['product']} \(<module>\)$")

    def test_plan_names_the_line_on_which_a_region_begins(self):
        trace = self.run_recorded(self.PROGRAM, payload="all")
        regions = self.json("plan", self.trace, "-o", self.path("plan.json"))["regions"]
        self.assertBeginAtTheirLines(trace, regions)

    def test_compare_and_replay_name_the_lines_on_which_graphs_begin(self):
        trace = self.run_recorded(self.PROGRAM, payload="all")
        plan = self.path("plan.json")
        self.acltape("plan", self.trace, "-o", plan)
        report = self.json("compare", self.trace, "--plan", plan, "--repetitions", "3", "--warmup", "1")
        replay = self.json("replay", self.trace, "--mode", "captured")
        for regions in (report["regions"], report["regions_of_the_plan"], replay["regions"]):
            self.assertBeginAtTheirLines(trace, regions)
        self.assertIn("captured", {region["kind"] for region in report["regions"]})

    def assertBeginAtTheirLines(self, trace, regions):
        self.assertTrue(regions)
        for region in regions:
            line, = trace.execute("SELECT line FROM call_location WHERE call_id = ?",
                                  (region["first_call"],)).fetchone()
            self.assertIn(f":{line} (<module>)", region["where"])

    def test_calls_are_picked_by_line(self):
        self.run_recorded(self.PROGRAM)
        name = os.path.basename(self.script_path)
        rows = self.json("graph", self.trace, f"line:{name}:{self.marks['scale']}/step:2")
        targets = [row["target"] for row in rows if row["opcode"] == "call_function"]
        self.assertEqual(targets, ["aten::mul.Tensor"])
        self.assertTrue(all(f":{self.marks['scale']} " in row["where"] for row in rows
                            if row["opcode"] == "call_function"), rows)

    def test_line_of_a_trace_without_lines_is_refused(self):
        self.run_recorded(self.PROGRAM, stacks="none")
        result = self.acltape("graph", self.trace, "line:any.py:3", code=2)
        self.assertSentence(result, "has no lines of source to pick by; record with --stacks top")

    def test_top_lines_names_where_the_time_goes(self):
        self.run_recorded(self.PROGRAM)
        rows = self.json("query", self.trace, "--name", "top_lines")
        lines = {row["line"] for row in rows}
        self.assertTrue({self.marks["product"], self.marks["item"], self.marks["scale"]} <= lines, rows)
        self.assertAlmostEqual(sum(row["share_percent"] for row in rows), 100, delta=1)

    def test_trim_and_redact_keep_or_drop_lines(self):
        self.run_recorded(self.PROGRAM, payload="all")
        small = self.path("small.db")
        self.acltape("trim", self.trace, "-o", small, "--calls", "step:2")
        lines = sqlite3.connect(small).execute("SELECT DISTINCT line FROM call_location").fetchall()
        self.assertIn((self.marks["product"],), lines)
        hidden = self.path("hidden.db")
        self.acltape("redact", self.trace, "-o", hidden)
        self.assertEqual(sqlite3.connect(hidden).execute("SELECT count(*) FROM call_location")
                         .fetchone()[0], 0)
        kept = self.path("kept.db")
        self.acltape("redact", self.trace, "-o", kept, "--keep", "stacks")
        self.assertNotEqual(sqlite3.connect(kept).execute("SELECT count(*) FROM call_location")
                            .fetchone()[0], 0)


if not TORCH2_PYTHON:
    skip = unittest.skip("ACLTAPE_TORCH2_PYTHON names no interpreter")
    Torch2Lines, Torch2LinesByFunctions = skip(Torch2Lines), skip(Torch2LinesByFunctions)

if __name__ == "__main__":
    main()
