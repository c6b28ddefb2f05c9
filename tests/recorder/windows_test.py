#!/usr/bin/env python3
"""Recordings of a part of a program: chosen steps, a time, what the program opens, the newest part.

Every window replays bit for bit, eagerly and captured. $ACLTAPE_TORCH2_PYTHON, where it is set, is a
Python with torch_npu; the ACL programs are built as tests/programs builds them.
"""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, "tests", "cli"), os.path.join(SOURCE, "tests", "programs")]
import acl_programs  # noqa: E402
from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, main  # noqa: E402

TORCH2_PYTHON = os.environ.get("ACLTAPE_TORCH2_PYTHON", "")
MLP_TRAIN = os.path.join(WORKLOADS, "mlp_train.py")

# A state that every step changes in place, and a step that is opened, marked, or neither. ARGUMENTS:
# opened steps, marked or not.
STATEFUL = """
import sys, torch, acltape
opened = [int(word) for word in sys.argv[1].split(",") if word]
torch.manual_seed(0)
weight, bias = torch.randn(16, 16), torch.zeros(16)
def step(x):
    y = torch.relu(x @ weight + bias)
    bias.add_(0.125)
    weight.mul_(0.875)
    return y.sum()
def marked(x):
    with acltape.step():
        return step(x)
one = marked if sys.argv[2:] == ["marked"] else step
for number in range(12):
    x = torch.randn(4, 16)
    if number in opened:
        with acltape.window():
            last = one(x)
    else:
        last = one(x)
print(float(last))
"""

# Other threads work, before and while a window is open.
THREADS = """
import threading, torch, acltape
state = [torch.zeros(8) for _ in range(3)]
def work(own, start, end):
    for _ in range(50):
        start.wait()
        own.add_(1).mul_(0.5)
        end.wait()
start, end = threading.Barrier(4), threading.Barrier(4)
threads = [threading.Thread(target=work, args=(own, start, end)) for own in state]
[thread.start() for thread in threads]
for number in range(50):
    if number == 20:
        acltape.open_window()
    if number == 30:
        acltape.close_window()
    start.wait()
    end.wait()
    total = sum(float(own.sum()) for own in state)
[thread.join() for thread in threads]
print(total)
"""


class WindowTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["PYTHONPATH"] = os.path.join(SOURCE, "python")

    def recorded(self, options, *command, payload="all", say=()):
        """The trace as a database; the program printed what it prints alone."""
        self.trace = self.path(self.id().rsplit(".", 1)[-1] + ".db")
        alone = subprocess.run(command, capture_output=True, text=True, check=True)
        self.result = self.record(self.trace, *command, payload=payload, options=options)
        self.assertEqual(self.result.out, alone.stdout)
        for words in say:
            self.assertIn(words, self.result.err, self.result)
        return sqlite3.connect(self.trace)

    def replays(self, *options, modes=("eager", "captured")):
        for mode in modes:
            result = self.acltape("replay", self.trace, "--mode", mode, "--no-results", *options)
            self.assertIn("equal bit for bit", result.out, result)

    def windows(self, trace):
        return trace.execute("SELECT first_call, last_call FROM recorded_window "
                             "ORDER BY window_id").fetchall()

    def leaves(self, trace, op):
        return trace.execute("SELECT count(*) FROM call WHERE leaf AND op = ?", (op,)).fetchone()[0]


class Steps(WindowTest):
    def test_steps_of_a_training_program_end_with_its_optimizer(self):
        # Nothing in the program knows acltape. Each step has one backward pass.
        trace = self.recorded(["--record-steps", "3-5"], TORCH_PYTHON, MLP_TRAIN, "--steps", "8")
        self.assertEqual(self.leaves(trace, "aten::nll_loss_backward"), 3)
        self.assertEqual(len(self.windows(trace)), 1)
        chosen = trace.execute("SELECT json_extract(value, '$.record_steps') FROM meta "
                               "WHERE key = 'recorder'").fetchone()
        self.assertEqual(chosen, ("[3,5]",))
        self.replays()

    def test_chosen_steps_are_the_steps_of_the_trace(self):
        # Nothing in one step repeats, and a guess would find steps inside of it.
        for steps, count in (("2", 1), ("3-5", 3), ("6-", 2)):
            with self.subTest(steps=steps):
                trace = self.recorded(["--record-steps", steps, "--modules"],
                                      TORCH_PYTHON, MLP_TRAIN, "--steps", "8")
                rows = trace.execute("SELECT step, found_by, (SELECT count(*) FROM call c WHERE c.leaf AND "
                                     "c.op = 'aten::nll_loss_backward' AND c.call_id BETWEEN first_call AND "
                                     "last_call) FROM step ORDER BY step").fetchall()
                self.assertEqual(rows, [(step, "optimizer", 1) for step in range(count)])
                listed = self.json("steps", self.trace)
                self.assertIn("a step of the optimizer", json.dumps(listed))
                self.replays(modes=["eager"])

    def test_first_steps_and_all_from_a_step_on(self):
        command = TORCH_PYTHON, MLP_TRAIN, "--steps", "5"
        for steps, expected in (("0-2", 3), ("3-", 2), ("4-90", 1)):
            with self.subTest(steps=steps):
                trace = self.recorded(["--record-steps", steps], *command)
                self.assertEqual(self.leaves(trace, "aten::nll_loss_backward"), expected)
                self.replays(modes=["eager"])  # a few first steps are no two alike

    def test_steps_that_the_program_marks_come_before_others(self):
        trace = self.recorded(["--record-steps", "4-6"], TORCH_PYTHON, self.script(STATEFUL), "", "marked")
        self.assertEqual(self.leaves(trace, "aten::relu"), 3)
        steps = trace.execute("SELECT found_by, count(*) FROM step GROUP BY 1").fetchall()
        self.assertEqual(steps, [("range:acltape.step", 3)])
        self.replays()

    def test_steps_by_the_name_of_a_range(self):
        trace = self.recorded(["--record-steps", "1-2", "--steps-from", "Optimizer.step*"],
                              TORCH_PYTHON, MLP_TRAIN, "--steps", "4")
        self.assertEqual(self.leaves(trace, "aten::nll_loss_backward"), 1)  # between the two ranges
        self.replays()

    def test_a_step_that_never_comes_is_named(self):
        trace = self.path("never.db")
        result = self.record(trace, TORCH_PYTHON, MLP_TRAIN, "--steps", "4",
                             options=["--record-steps", "100-110"])
        self.assertSentence(result, "the program came to 4 steps", "first to record was step 100",
                            "no trace is left")
        self.assertFalse(os.path.exists(trace))

    def test_payload_inputs_alone_is_enough(self):
        trace = self.recorded(["--record-steps", "3-6"], TORCH_PYTHON, MLP_TRAIN, "--steps", "8",
                              payload="inputs")
        self.assertGreater(trace.execute("SELECT count(*) FROM payload").fetchone()[0], 0)
        self.replays(modes=("captured",))
        # The host reads alone have a recorded result: too little for a verdict of an eager replay.
        result = self.acltape("replay", self.trace, "--mode", "eager", "--no-results", code=125)
        self.assertRegex(result.out, r"outputs different +0")


class Opened(WindowTest):
    def test_each_window_has_the_contents_of_its_own_time(self):
        # The state changes while the recording is closed: steps 2 and 3, 7, and 10.
        trace = self.recorded(["--start-closed"], TORCH_PYTHON, self.script(STATEFUL), "2,3,7,10", "marked")
        self.assertEqual(len(self.windows(trace)), 4)
        self.assertEqual(self.leaves(trace, "aten::relu"), 4)
        self.replays()

    def test_a_range_that_is_open_when_a_window_opens_is_in_it(self):
        trace = self.recorded(["--start-closed"], TORCH_PYTHON, self.script("""
import torch, acltape
x = torch.ones(4)
with acltape.range("outer"):
    x.add_(1)
    with acltape.range("inner"):
        acltape.open_window()
        x.mul_(2)
    acltape.close_window()
    x.add_(1)
with acltape.range("later"):
    x.add_(1)
print(x.tolist())
"""))
        scopes = trace.execute("SELECT path FROM scope ORDER BY scope_id").fetchall()
        self.assertEqual([path for path, in scopes], ["outer", "outer/inner"])
        ops = trace.execute("SELECT op FROM call WHERE leaf").fetchall()
        self.assertEqual(ops, [("aten::mul_.Tensor",)])

    def test_buffers_from_before_are_told_once_and_their_ends_too(self):
        trace = self.recorded(["--start-closed"], TORCH_PYTHON, self.script("""
import torch, acltape
old = [torch.full((n,), float(n)) for n in range(1, 200)]
unused = torch.ones(1 << 16)
with acltape.window():
    total = sum(float(x.sum()) for x in old)
old.clear()
print(total)
"""))
        before = trace.execute("SELECT count(*), count(life_ns), min(alloc_ns) FROM buffer_row "
                               "WHERE alloc_call IS NULL").fetchone()
        self.assertEqual(before[:2], (199, 199))
        self.assertGreater(before[2], 0)
        self.assertEqual(trace.execute("SELECT count(*) FROM buffer_row WHERE bytes >= 262144").fetchone(),
                         (0,))
        self.assertEqual(trace.execute("SELECT count(*) FROM ledger WHERE severity <> 'info'").fetchone(),
                         (0,))

    def test_threads_that_work_before_and_while_a_window_is_open(self):
        trace = self.recorded(["--start-closed"], TORCH_PYTHON, self.script(THREADS))
        self.assertEqual(self.leaves(trace, "aten::mul_.Tensor"), 30)
        self.replays(modes=["eager"])

    def test_a_program_that_opens_nothing_leaves_no_trace(self):
        trace = self.path("closed.db")
        result = self.record(trace, TORCH_PYTHON, "-c", "import torch; torch.ones(2).add(1)",
                             options=["--start-closed"])
        self.assertSentence(result, "the recording was never opened", "no trace is left")

    def test_a_forked_child_is_recorded_in_the_same_window(self):
        trace = self.recorded(["--start-closed"], TORCH_PYTHON, self.script("""
import os, torch, acltape
x = torch.ones(4)
x.add_(1)
acltape.open_window()
child = os.fork()
if child == 0:
    x.mul_(3)
    os._exit(0)
os.waitpid(child, 0)
x.mul_(2)
print(x.tolist())
"""))
        processes = trace.execute("SELECT count(DISTINCT process_id) FROM recorded_window").fetchone()
        self.assertEqual(processes, (2,))


class Times(WindowTest):
    LOOP = "import sys, time, torch\nx = torch.ones(4)\nend = time.time() + float(sys.argv[1])\n" \
           "print('ready', flush=True)\n" \
           "while time.time() < end:\n    x.add_(1); time.sleep(0.01)\n"

    def test_delay_and_duration(self):
        trace = self.path("times.db")
        result = self.record(trace, TORCH_PYTHON, "-c", self.LOOP, "4",
                             options=["--delay", "1.5s", "--duration", "500ms"])
        self.assertRegex(result.err, r"recording opened after 1\.5\d* s", result)
        self.assertRegex(result.err, r"recording closed after 2\.\d+ s", result)
        if os.path.exists(trace):  # a slow start of the program can be later than the window
            rows = sqlite3.connect(trace).execute("SELECT begin_ns, end_ns FROM recorded_window").fetchall()
            self.assertLess(rows[0][1] - rows[0][0], 2_000_000_000, result)

    def test_signal_opens_and_closes(self):
        trace = self.path("signal.db")
        command = [BINARY, "record", "--force", "-o", trace, "--start-closed", "--", TORCH_PYTHON, "-c",
                   self.LOOP, "6"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as recorder:
            self.assertEqual(recorder.stdout.readline(), "ready\n")
            for _ in range(3):
                time.sleep(0.5)
                recorder.send_signal(signal.SIGUSR1)
            out, err = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, err)
        self.assertEqual((err.count("recording opened"), err.count("recording closed")), (2, 1), err)
        self.assertEqual(len(self.windows(sqlite3.connect(trace))), 2, err)

    def test_signals_to_the_process_group_are_the_programs_own(self):
        program = "import os, signal, sys, time, torch\nnumber = int(sys.argv[1])\nseen = []\n" \
                  "signal.signal(number, lambda *_: seen.append(number))\n" \
                  "torch.ones(2); os.killpg(0, number); time.sleep(0.3); torch.ones(3)\nprint(len(seen), 'signals')\n"
        for number in (signal.SIGUSR2, signal.SIGALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPIPE,
                       signal.SIGRTMIN + 1, signal.SIGTERM):
            with self.subTest(signal=number):
                command = [BINARY, "record", "--force", "-o", self.path("group.db"), "--", TORCH_PYTHON, "-c", program,
                           str(int(number))]
                done = subprocess.run(command, capture_output=True, text=True, timeout=60, start_new_session=True)
                self.assertEqual((done.returncode, done.stdout), (0, "1 signals\n"), done.stderr)

    def test_a_signal_of_another_process_arrives_once(self):
        program = "import os, signal, sys, time\nseen = []\n" \
                  "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):\n" \
                  "    signal.signal(number, lambda which, _: seen.append(which))\n" \
                  "import torch\ntorch.ones(2)\nprint('ready', flush=True)\n" \
                  "end = time.time() + 3\nwhile time.time() < end: time.sleep(0.05)\nprint(len(seen), 'signals')\n"
        command = [BINARY, "record", "--force", "-o", self.path("other.db"), "--", TORCH_PYTHON, "-c", program]
        for to_group in (True, False):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                with self.subTest(signal=number, to_group=to_group):
                    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                          start_new_session=True) as recorder:
                        self.assertEqual(recorder.stdout.readline(), "ready\n")
                        (os.killpg if to_group else os.kill)(recorder.pid, number)
                        out, err = recorder.communicate(timeout=60)
                    self.assertEqual((recorder.returncode, out), (0, "1 signals\n"), err)


class Size(WindowTest):
    def test_the_newest_steps_stay_and_replay(self):
        trace = self.recorded(["--max-size", "16M"], TORCH_PYTHON, MLP_TRAIN, "--steps", "60",
                              say=["oldest_dropped", "larger --max-size"])
        self.assertLess(os.path.getsize(self.trace), 16 << 20)
        row = trace.execute("SELECT severity, count FROM ledger WHERE kind = 'oldest_dropped'").fetchone()
        self.assertEqual(row[0], "notice")
        calls, first, last = trace.execute(
            "SELECT count(*), min(call_id), max(call_id) FROM call_row").fetchone()
        self.assertGreater(first, 1)
        # All that were made are there or counted; an enclosing call can lie across.
        self.assertLessEqual(abs(calls + row[1] - last), 3)
        dangling = [
            "SELECT count(*) FROM call_row WHERE parent_id NOT IN (SELECT call_id FROM call_row)",
            "SELECT count(*) FROM buffer_row WHERE alloc_call NOT IN (SELECT call_id FROM call_row)",
            "SELECT count(*) FROM snapshot WHERE call_id NOT IN (SELECT call_id FROM call_row)",
            "SELECT count(*) FROM snapshot WHERE digest NOT IN (SELECT digest FROM payload)",
            "SELECT count(*) FROM payload WHERE digest NOT IN (SELECT digest FROM snapshot)"]
        for sql in dangling:
            self.assertEqual(trace.execute(sql).fetchone(), (0,), sql)
        kept = trace.execute("SELECT sum(bytes) FROM payload").fetchone()[0]
        self.assertIn(f"{kept / (1 << 20):.1f} MiB of values kept", self.result.err)
        self.replays()

    def test_a_program_without_steps_is_cut_anywhere(self):
        self.recorded(["--max-size", "4M"], TORCH_PYTHON, self.script("""
import torch
x = torch.zeros(1000)
for _ in range(30000):
    x.add_(1).mul_(0.5)
print(float(x.sum()))
"""), payload="inputs", say=["oldest_dropped"])
        self.assertLess(os.path.getsize(self.trace), 4 << 20)
        result = self.acltape("replay", self.trace, "--mode", "captured", "--no-results")
        self.assertIn("equal bit for bit", result.out, result)

    def test_what_fits_is_kept_whole(self):
        trace = self.recorded(["--max-size", "64M"], TORCH_PYTHON, MLP_TRAIN, "--steps", "4")
        self.assertEqual(trace.execute("SELECT count(*) FROM ledger WHERE kind = 'oldest_dropped'").fetchone(),
                         (0,))
        self.assertEqual(self.leaves(trace, "aten::nll_loss_backward"), 4)


class Acl(WindowTest):
    """mixed_work.cpp with marked steps: two streams, a captured graph, updates of its tasks."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(os.path.join(acl_programs.FOLDER, "mixed_work.cpp")) as file:
            text = file.read()
        loop = 'printf("step %d: %.0f\\n", step, program.Step(step));'
        assert text.count(loop) == 1
        text = '#include "recorder/ranges/acltape.h"\n' + text.replace(
            loop, "{\n      acltape_range_begin(ACLTAPE_STEP);\n      const double sum = program.Step(step);\n"
                  '      acltape_range_end();\n      printf("step %d: %.0f\\n", step, sum);\n    }')
        source = os.path.join(cls.folder, "marked_work.cpp")
        with open(source, "w") as file:
            file.write(text)
        cls.program = os.path.join(cls.folder, "marked_work")
        line = acl_programs.build_line(source, cls.program,
                                       options=["-I" + SOURCE, "-I" + acl_programs.FOLDER])
        subprocess.run(line, check=True)
        os.environ["LD_LIBRARY_PATH"] = acl_programs.LIBRARIES

    @classmethod
    def tearDownClass(cls):
        del os.environ["LD_LIBRARY_PATH"]
        super().tearDownClass()

    def test_graph_from_before_the_window_is_executed_in_it(self):
        for payload in ("inputs", "all"):
            with self.subTest(payload=payload):
                trace = self.recorded(["--record-steps", "2-3"], self.program, payload=payload)
                self.assertEqual(self.leaves(trace, "aclnnMul"), 2)  # one in each step, none in the graph
                executed = trace.execute("SELECT count(*) FROM call WHERE op = 'aclmdlRIExecuteAsync'")
                self.assertEqual(executed.fetchone(), (2,))
                captured = trace.execute("SELECT count(*) FROM call WHERE model_id IS NOT NULL AND leaf")
                self.assertEqual(captured.fetchone(), (3,))
                if payload == "all":
                    self.replays()
                result = self.acltape("replay", self.trace, "--mode", "captured", "--no-results")
                self.assertIn("equal bit for bit", result.out, result)

    def test_eager_program(self):
        trace = self.recorded(["--record-steps", "4-"], self.program, "--eager")
        self.assertEqual(self.leaves(trace, "aclnnMul"), 2)
        self.replays()

    def test_streams_and_events_have_their_flags(self):
        whole = self.recorded([], self.program)
        flags = "SELECT flags FROM {} ORDER BY 1"
        expected = [whole.execute(flags.format(table)).fetchall() for table in ("stream", "event")]
        part = self.recorded(["--record-steps", "5"], self.program)
        self.assertEqual([part.execute(flags.format(table)).fetchall() for table in ("stream", "event")],
                         expected)

    def test_the_oldest_steps_go_and_the_graph_stays(self):
        source = os.path.join(self.folder, "marked_work.cpp")
        with open(source) as file:
            text = file.read()
        longer = os.path.join(self.folder, "longer_work.cpp")
        with open(longer, "w") as file:
            file.write(text.replace("step < 6", "step < 6000").replace("Step(step)", "Step(step % 6)"))
        program = os.path.join(self.folder, "longer_work")
        subprocess.run(acl_programs.build_line(longer, program, options=[
            "-I" + SOURCE, "-I" + acl_programs.FOLDER]), check=True)
        trace = self.recorded(["--max-size", "4M"], program, say=["oldest_dropped"])
        self.assertLess(self.leaves(trace, "aclnnMul"), 6000)
        captured = trace.execute("SELECT count(*) FROM call WHERE model_id IS NOT NULL AND leaf")
        self.assertEqual(captured.fetchone(), (3,))
        self.replays()


@unittest.skipUnless(TORCH2_PYTHON, "needs a Python with torch_npu (ACLTAPE_TORCH2_PYTHON)")
class Npu(WindowTest):
    PROGRAM = """
import torch, torch_npu
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for number in range(8):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 16).npu()).square().mean()
    loss.backward()
    optimizer.step()
    print(f"{float(loss.detach()):.6f}")
"""

    def test_values_that_the_device_still_computes_when_the_window_opens(self):
        self.trace = self.path("npu.db")
        self.record(self.trace, TORCH2_PYTHON, self.script(self.PROGRAM), payload="all",
                    options=["--soft", "--record-steps", "3-5"])
        for level in ("aten", "acl"):
            with self.subTest(level=level):
                self.replays("--level", level)

    # The host runs ahead of the device: no step waits for it.
    AHEAD = """
import torch, torch_npu, acltape
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(6)]).to("npu")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
batch = torch.randn(16, 64).npu()
for number in range(8):
    with acltape.window() if number == OPENED else acltape.step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
torch.npu.synchronize()
print("done")
"""

    def test_a_window_holds_the_device_work_of_its_own_operators_and_no_other(self):
        for name, opened, options in (("steps", -1, ["--record-steps", "3-5"]), ("opened", 4, ["--start-closed"])):
            with self.subTest(name):
                self.trace = self.path(f"ahead-{name}.db")
                script = self.script(f"OPENED = {opened}\n{self.AHEAD}")
                self.record(self.trace, TORCH2_PYTHON, script, payload="all", options=["--soft", *options])
                result = self.acltape("replay", self.trace, "--no-results")
                told = re.search(r"compared outputs tell of +(\d+) of (\d+)", result.out)
                self.assertIsNotNone(told, result)
                self.assertEqual(told[1], told[2], result)
                self.assertIn("equal bit for bit", result.out, result)
                others = sqlite3.connect(self.trace).execute(
                    "SELECT call_id, op FROM call WHERE op LIKE 'aclnn%' AND parent_id IS NULL").fetchall()
                self.assertEqual(others, [], "work of operators before the window")


if __name__ == "__main__":
    main()
