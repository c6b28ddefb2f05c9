#!/usr/bin/env python3
"""Steps of vLLM's engine are steps of the trace. A small package stands for vLLM here."""
import os
import sqlite3
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, "tests", "cli")]
from harness import TORCH_PYTHON, CommandTest, main  # noqa: E402

# A vllm with what the recorder looks for: a wrapper that makes a worker, which makes a model runner.
WORKER_BASE = """
class WorkerWrapperBase:
    def __init__(self, worker):
        self.worker = worker

    def init_device(self):
        self.worker.init_device()

    def __getattr__(self, name):
        return getattr(self.worker, name)
"""
FORWARD_CONTEXT = """
import enum
from types import SimpleNamespace

class CUDAGraphMode(enum.Enum):
    NONE = 0
    FULL = 2

now = None

def get_forward_context():
    assert now is not None
    return now

def set_context(rows, mode):
    global now
    now = SimpleNamespace(batch_descriptor=SimpleNamespace(num_tokens=rows), cudagraph_runtime_mode=mode)
"""
# Two requests: a prompt of five tokens in chunks of three, one of two tokens; then they decode together.
PROGRAM = """
import threading
from types import SimpleNamespace
import torch
import vllm
from vllm import forward_context
from vllm.v1.worker.worker_base import WorkerWrapperBase

class Runner:
    def _model_forward(self, rows, input_ids=None):
        return input_ids.tanh()

    def _dummy_run(self, num_tokens):
        return self._model_forward(num_tokens, torch.ones(num_tokens, 2))

    def capture_model(self):
        self._dummy_run(4)

    def execute_model(self, scheduled):
        rows = max(4, scheduled.total)
        forward_context.set_context(rows, forward_context.CUDAGraphMode.FULL)
        self.result = self._model_forward(rows, input_ids=torch.ones(rows, 2))

    def sample_tokens(self, grammar):
        return self.result.sin()

class Worker:
    def init_device(self):
        self.model_runner = Runner()

    def EXECUTE(self, scheduled):
        return self.model_runner.execute_model(scheduled)

    def sample_tokens(self, grammar):
        return self.model_runner.sample_tokens(grammar)

def new(request, prompt):
    return SimpleNamespace(req_id=request, prompt_token_ids=[1] * prompt)

def scheduled(tokens, first=(), known=()):
    cached = SimpleNamespace(req_ids=[name for name, _ in known], num_computed_tokens=[count for _, count in known])
    return SimpleNamespace(num_scheduled_tokens=tokens, total=sum(tokens.values()), finished_req_ids=set(),
                           scheduled_new_reqs=list(first), scheduled_cached_reqs=cached)

def work():
    engine = WorkerWrapperBase(Worker())
    engine.init_device()
    engine.model_runner.capture_model()
    for step in (scheduled({"a": 3}, [new("a", 5)]),
                 scheduled({"a": 2, "b": 2}, [new("b", 2)], [("a", 3)]),
                 scheduled({"a": 1, "b": 1}, (), [("a", 5), ("b", 2)]),
                 scheduled({})):
        engine.EXECUTE(step)
        engine.sample_tokens(None)
    torch.zeros(2).cos()

WAY
print("done")
"""
STEPS = [("range:vllm.step prefill=3 decode=0 requests=1",), ("range:vllm.step prefill=4 decode=0 requests=2",),
         ("range:vllm.step prefill=0 decode=2 requests=2",)]


class EngineSteps(CommandTest):
    def follow(self, name, way="work()", execute="execute_model", worker_base=WORKER_BASE):
        """The trace of the program with a package vllm; no file for `worker_base` None."""
        folder = self.path("packages_" + name)
        os.makedirs(os.path.join(folder, "vllm", "v1", "worker"))
        files = {"vllm/__init__.py": "", "vllm/v1/__init__.py": "", "vllm/v1/worker/__init__.py": "",
                 "vllm/forward_context.py": FORWARD_CONTEXT, "vllm/v1/worker/worker_base.py": worker_base}
        for file, text in files.items():
            if text is not None:
                with open(os.path.join(folder, file), "w") as out:
                    out.write(text)
        os.environ["PYTHONPATH"] = folder
        trace = self.path(name + ".db")
        program = self.script(PROGRAM.replace("WAY", way).replace("EXECUTE", execute))
        self.assertIn("done\n", self.record(trace, TORCH_PYTHON, program).out)
        return sqlite3.connect(trace)

    def test_a_step_reaches_from_execution_to_sampling(self):
        trace = self.follow("whole")
        self.assertEqual(trace.execute("SELECT found_by FROM step ORDER BY step").fetchall(), STEPS)
        ops = trace.execute("SELECT step, op FROM call WHERE op IN ('aten::tanh', 'aten::sin', 'aten::cos') "
                            "ORDER BY call_id").fetchall()
        self.assertEqual(ops, [(None, "aten::tanh"), (0, "aten::tanh"), (0, "aten::sin"), (1, "aten::tanh"),
                               (1, "aten::sin"), (2, "aten::tanh"), (2, "aten::sin"), (None, "aten::tanh"),
                               (None, "aten::sin"), (None, "aten::cos")])
        self.assertEqual(trace.execute("SELECT count(*) FROM ledger WHERE kind LIKE 'engine_step%'").fetchone(), (0,))

    def test_warm_up_and_the_forward_are_ranges_of_other_names(self):
        trace = self.follow("ranges")
        paths = [path for path, in trace.execute(
            "SELECT s.path FROM scope_range r JOIN scope s USING (scope_id) ORDER BY r.begin_ns")]
        self.assertEqual(paths[:3], ["vllm.capture", "vllm.capture/vllm.warm-up rows=4",
                                     "vllm.capture/vllm.warm-up rows=4/vllm.forward rows=4"])
        self.assertIn(STEPS[2][0][len("range:"):] + "/vllm.forward rows=4 graph=FULL", paths)
        self.assertIn("vllm.update", paths)

    def test_an_engine_in_a_process_of_its_own_has_its_steps(self):
        for method in ("fork", "spawn"):
            with self.subTest(method):
                way = ("import multiprocessing\n"
                       "if __name__ == '__main__':\n"
                       f"    process = multiprocessing.get_context('{method}').Process(target=work)\n"
                       "    process.start()\n"
                       "    process.join()")
                trace = self.follow(method, way)
                self.assertEqual(trace.execute("SELECT found_by FROM step ORDER BY step").fetchall(), STEPS)

    def test_a_vllm_without_these_functions_is_recorded_without_its_steps(self):
        cases = (("worker", {"execute": "run_model"}, "Worker", "this worker has no function execute_model"),
                 ("wrapper", {"worker_base": "class WorkerWrapperBase:\n    pass\n", "way": "torch.ones(2)"}, "vllm",
                  "the module vllm.v1.worker.worker_base has no WorkerWrapperBase.init_device"))
        for name, changes, subject, cause in cases:
            with self.subTest(name):
                trace = self.follow("without_" + name, **changes)
                rows = trace.execute("SELECT severity, subject, cause FROM ledger "
                                     "WHERE kind = 'engine_steps_not_followed'").fetchall()
                self.assertEqual(rows, [("notice", subject, cause)])
                self.assertEqual(trace.execute("SELECT count(*) FROM step WHERE found_by LIKE 'range:%'").fetchone(),
                                 (0,))

    def test_tokens_that_cannot_be_counted_leave_the_step(self):
        trace = self.follow("odd", way="scheduled = lambda *parts: SimpleNamespace(total=1)\nwork()")
        self.assertEqual(trace.execute("SELECT found_by FROM step").fetchall(), [("range:vllm.step",)] * 4)
        self.assertEqual(trace.execute("SELECT count FROM ledger WHERE kind = 'engine_step_unknown'").fetchall(),
                         [(1,)])


if __name__ == "__main__":
    main()
