#!/usr/bin/env python3
"""The installed torch_npu, unchanged, on the soft device: what it computes is what the CPU does."""
import json

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


if __name__ == "__main__":
    harness.main()
