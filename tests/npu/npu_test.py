#!/usr/bin/env python3
"""The installed torch_npu, unchanged, on the soft device: what it computes is what the CPU does."""
import json
import os
import re
import sqlite3
import subprocess
import unittest

import harness


class Names(harness.NpuTest):
    """Every name that the adapter's libraries ask for is defined."""

    def test_no_name_of_a_library_that_can_be_loaded_is_left(self):
        done = self.call(harness.BINARY, "env", "--check", "--format", "json", harness.PYTHON)
        rows = [row for row in json.loads(done.stdout) if not row["remark"]]
        self.assertGreater(len(rows), 4)
        self.assertEqual([row["library"] for row in rows if row["unresolved"]], [])
        for row in rows:
            self.assertEqual(row["needed"], row["exported"] + row["generated"], row)

    def test_settings_for_a_shell_are_those_of_run(self):
        settings = self.call(harness.BINARY, "env", harness.PYTHON).stdout
        line = f'eval "$SETTINGS" && {harness.PYTHON} -c "import torch; print(torch.npu.device_count())"'
        done = self.call("sh", "-c", line, environment={"SETTINGS": settings})
        self.assertEqual(done.stdout, "1\n")

    def test_a_program_keeps_its_exit_code(self):
        self.call(harness.BINARY, "run", "--", harness.PYTHON, "-c", "raise SystemExit(7)", code=7)

    def test_without_a_compiler_one_sentence_says_what_to_do(self):
        done = self.call(harness.BINARY, "run", "--", harness.PYTHON, "-c", "print(1)", code=4,
                         environment={"ACLTAPE_CACHE": self.folder, "CXX": "", "PATH": "/nowhere"})
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("no C++ compiler", done.stderr)


class Eager(harness.NpuTest):
    def test_tensors_streams_events_and_pinned_memory(self):
        self.program("tensors.py")

    def test_training_has_the_losses_of_the_cpu(self):
        self.program("training.py")

    def test_mixed_precision_and_a_loader_with_pinned_memory(self):
        self.program("amp.py")

    def test_a_missing_operator_says_its_name(self):
        self.program("missing_operator.py")


class Formats(harness.NpuTest):
    def test_casts_to_private_formats_and_operators_on_them(self):
        for level in "01":
            with self.subTest(queue=level):
                self.program("formats.py", environment={"TASK_QUEUE_ENABLE": level})


class Queue(harness.NpuTest):
    def test_each_level_of_the_task_queue(self):
        for level in "012":
            with self.subTest(level=level):
                self.program("task_queue.py", environment={"TASK_QUEUE_ENABLE": level})


class Allocator(harness.NpuTest):
    def test_expandable_segments(self):
        self.program("expandable.py")


class Graphs(harness.NpuTest):
    """The tokens of a decoder are those of the CPU, whichever way the NPU runs it."""

    def test_eager(self):
        self.program("graphs.py", "eager")

    def test_npu_graph(self):
        self.program("graphs.py", "graph")

    def test_npugraph_ex(self):
        self.program("graphs.py", "npugraph_ex")

    def test_torchair(self):
        self.program("graphs.py", "torchair")


class Profiler(harness.NpuTest):
    def test_host_ranges_are_written(self):
        self.program("host_ranges.py", self.folder)


class Recording(harness.NpuTest):
    """Recorded with the task queue as it is by default: the trace is whole and replays bit for bit."""

    def record(self, *program):
        """The output of the program, recorded, is that of the program alone; the trace's path."""
        program = [harness.PYTHON, *program]
        alone = self.call(harness.BINARY, "run", "--", *program)
        trace = os.path.join(self.folder, "t.db")
        recorded = self.call(harness.BINARY, "record", "--soft", "--force", "--payload", "all", "-o", trace,
                             "--", *program)
        self.assertEqual(recorded.stdout, alone.stdout, recorded.stderr)
        with sqlite3.connect(trace) as database:
            lost = database.execute("SELECT kind, subject, cause FROM ledger WHERE severity IN "
                                    "('data_loss', 'error')").fetchall()
        self.assertEqual(lost, [])
        return trace

    def replays(self, trace):
        for mode in ("eager", "captured"):
            said = self.call(harness.BINARY, "replay", trace, "--mode", mode).stdout
            self.assertIn("equal bit for bit", said)
            self.assertRegex(said, "substituted by recorded outputs +0")


class Recorded(Recording):
    def test_a_decoder(self):
        trace = self.record(os.path.join(harness.WORKLOADS, "decoder.py"), "--device", "npu", "--tokens", "5")
        self.replays(trace)
        with sqlite3.connect(trace) as database:
            rows = database.execute("SELECT op, aten_op, file FROM device_call_origin").fetchall()
        self.assertGreater(len(rows), 100)
        self.assertEqual({os.path.basename(file or "?") for _, _, file in rows}, {"decoder.py"})
        self.assertIn(("aclnnAddmm", "aten::addmm"), {row[:2] for row in rows})

    def test_a_graph_on_two_streams(self):
        trace = self.record(os.path.join(harness.WORKLOADS, "npu_streams.py"))
        self.replays(trace)
        # The graph's own pool takes memory while it captures, which is a finding: code 1.
        said = json.loads(self.call(harness.BINARY, "lint", trace, "--format", "json", code=1).stdout)
        self.assertEqual({row["rule"] for row in said["findings"]}, {"LINT-04"})

    def test_a_missing_wait_is_found_with_its_lines_and_the_edit_mends_it(self):
        trace = self.record(os.path.join(harness.WORKLOADS, "npu_streams.py"), "--missing-wait")
        said = json.loads(self.call(harness.BINARY, "lint", trace, "--prove", "--format", "json",
                                    code=1).stdout)
        race, = (row for row in said["findings"] if row["rule"] == "LINT-20")
        self.assertEqual(race["verdict"], "reproduced", race)
        self.assertEqual(race["message"].count("npu_streams.py:"), 2, race)
        for probe in said["probes"]:
            if probe["edits"] == "made":
                self.assertEqual(probe["differing"], 0, probe)


class Models(Recording):
    """Small random models of transformers train and generate on the NPU as on the CPU."""

    PROGRAM = os.path.join(harness.SOURCE, "tests", "torch", "models", "small_model.py")
    TOLERANCE = 1e-4  # relative, of losses and norms of gradients; kernels differ in how they round

    @classmethod
    def setUpClass(cls):
        look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('transformers') is None)"
        if subprocess.run([harness.PYTHON, "-c", look], check=False).returncode != 0:
            raise unittest.SkipTest("the interpreter has no transformers")

    def numbers(self, line):
        return [float(number) for number in re.findall(r"(?:loss|gradients) ([-+.\de]+)", line)]

    def compare(self, name):
        """The lines that a model prints on the CPU and on the NPU."""
        program = (harness.PYTHON, "-B", self.PROGRAM, name)
        cpu = self.call(*program).stdout.splitlines()
        npu = self.call(harness.BINARY, "run", "--", *program, "--device", "npu").stdout.splitlines()
        self.assertEqual(len(npu), len(cpu), npu)
        for ours, wanted in zip(npu, cpu):
            if not wanted.startswith("step"):
                self.assertEqual(ours, wanted)
                continue
            for value, reference in zip(self.numbers(ours), self.numbers(wanted), strict=True):
                self.assertLessEqual(abs(value - reference), self.TOLERANCE * abs(reference),
                                     f"{name}: {ours} instead of {wanted}")

    def test_losses_and_tokens_are_those_of_the_cpu(self):
        for name in ("llama", "mixtral", "vit"):
            with self.subTest(model=name):
                self.compare(name)

    def test_a_recorded_model_replays(self):
        self.replays(self.record("-B", self.PROGRAM, "mixtral", "--device", "npu"))


if __name__ == "__main__":
    harness.main()
