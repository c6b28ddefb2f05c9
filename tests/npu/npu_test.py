#!/usr/bin/env python3
"""The installed torch_npu, unchanged, on the soft device: what it computes is what the CPU does."""
import json
import os
import re
import sqlite3
import subprocess
import sys
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
        self.assertEqual(done.stdout, "8\n")

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
        self.program("training.py", "mlp", "convolutions", "resnet18", "transformer", "lstm")

    def test_recurrent_layers_forward_and_backward(self):
        self.program("recurrent.py")

    def test_mixed_precision_and_a_loader_with_pinned_memory(self):
        self.program("amp.py")

    def test_recurrent_layers_bags_of_embeddings_experts_and_attentions(self):
        self.program("more_operators.py")

    def test_a_missing_operator_says_its_name(self):
        self.program("missing_operator.py")


class Layers(harness.NpuTest):
    def test_layers_losses_and_operators_compute_what_the_cpu_does(self):
        done = self.program("layers.py")
        self.assertGreater(int(re.search(r"(?m)^(\d+) uses$", done.stdout)[1]), 350)


class Formats(harness.NpuTest):
    def test_casts_to_private_formats_and_operators_on_them(self):
        for level in "01":
            with self.subTest(queue=level):
                self.program("formats.py", environment={"TASK_QUEUE_ENABLE": level})

    def test_a_newer_toolkit_has_casts_as_an_operator_and_the_adapters_mistake(self):
        # docs/soft_device.md, "What adapters of frameworks need", says where it lies.
        self.program("format_operator.py", environment={"ACLTAPE_SOFT_TOOLKIT": "9.1.0"})


class Named(harness.NpuTest):
    """Functions of the adapter that call operators by name, for which it has no other way."""

    def test_each_function_with_and_without_the_task_queue(self):
        for level in "01":
            with self.subTest(queue=level):
                self.program("named_operators.py", environment={"TASK_QUEUE_ENABLE": level})

    def test_the_status_of_results_that_saturate(self):
        for level in "01":
            with self.subTest(queue=level):
                self.program("overflow_status.py", environment={"TASK_QUEUE_ENABLE": level,
                                                                "INF_NAN_MODE_FORCE_DISABLE": "1"})

    def test_one_that_is_refused_is_an_exception_with_its_name_and_the_process_goes_on(self):
        for level in "012":
            with self.subTest(queue=level):
                done = self.call(harness.BINARY, "run", "--", harness.PYTHON, "-W", "ignore",
                                 os.path.join(harness.PROGRAMS, "refused_by_name.py"),
                                 environment={"TASK_QUEUE_ENABLE": level})
                self.assertEqual(done.stdout, "Histogram True goes on True\n"
                                 "Slice True goes on True\n")


class Queue(harness.NpuTest):
    def test_each_level_of_the_task_queue(self):
        for level in "012":
            with self.subTest(level=level):
                self.program("task_queue.py", environment={"TASK_QUEUE_ENABLE": level})


class Features(harness.NpuTest):
    """The parts of the adapter that models use work as on the CPU, and the same when they are recorded."""

    PROGRAM = os.path.join(harness.PROGRAMS, "features.py")

    def each(self, *command):
        """Name, exit code and output of each feature, and what failed with its messages."""
        done = self.call(harness.BINARY, *command, "--", harness.PYTHON, "-W", "ignore", "-B", self.PROGRAM,
                         "--each")
        results = json.loads(done.stdout)
        failed = {name: result["errors"] for name, result in results.items() if result["code"] != 0}
        self.assertEqual(failed, {})
        return {name: result["output"] for name, result in results.items()}

    def test_each_feature_alone_and_recorded(self):
        alone = self.each("run")
        self.assertGreater(len(alone), 40)
        recorded = self.each("record", "--soft", "-o", "t.db", "--payload", "inputs")
        self.assertEqual(recorded, alone)
        with sqlite3.connect(os.path.join(self.folder, "t.db")) as database:
            lost = database.execute("SELECT kind, subject, cause FROM ledger WHERE severity IN "
                                    "('data_loss', 'error')").fetchall()
        self.assertEqual(lost, [])


class DeviceCalls(harness.NpuTest):
    """Each device operator belongs to a leaf, and the leaves are replayed by device operators."""

    # Operators that have no device operator, or are made of several that nobody lowers so far.
    SUBSTITUTED = {
        "_embedding_bag_backward", "_fft_c2c", "_fft_r2c", "_linalg_det", "_linalg_eigh", "_linalg_slogdet",
        "_linalg_solve_ex", "_linalg_svd", "_pdist_backward", "_prelu_kernel_backward", "_to_dense", "_trilinear",
        "affine_grid_generator_backward", "block_diag", "copysign.Tensor", "digamma_", "dist", "fft_r2c_backward",
        "fmax", "fmin", "heaviside", "huber_loss", "huber_loss_backward", "hypot", "i0", "index_fill_.int_Tensor",
        "linalg_cholesky_ex", "linalg_householder_product", "linalg_inv_ex", "linalg_lstsq", "linalg_lu_solve",
        "linalg_matrix_exp", "linalg_pinv.atol_rtol_tensor", "linalg_solve_triangular", "logcumsumexp",
        "masked_scatter_backward", "mode", "multi_margin_loss", "multi_margin_loss_backward",
        "multilabel_margin_loss_backward", "mvlgamma", "nanmean.out", "nextafter", "npu_renorm_backward", "polygamma",
        "rot90", "special_i1", "tril_indices",
    }

    BY_NAME = {"aclnnCdistBackward"}  # the adapter calls it by name, in a thread where no leaf runs

    def recorded(self, *program):
        trace = os.path.join(self.folder, "t.db")
        done = self.call(harness.BINARY, "record", "--soft", "--force", "--quiet", "--payload", "all", "-o", trace,
                         "--", harness.PYTHON, "-W", "ignore", os.path.join(harness.PROGRAMS, program[0]),
                         *program[1:])
        self.assertEqual(done.stdout.splitlines()[-1:], ["equal"], done.stdout + done.stderr)
        with sqlite3.connect(trace) as database:
            outside = database.execute(
                "SELECT d.op, a.op FROM device_call_origin d LEFT JOIN call a ON a.call_id = d.aten_call "
                "WHERE ifnull(a.leaf, 0) = 0").fetchall()
        outside = [(op, leaf) for op, leaf in outside if op not in self.BY_NAME]
        self.assertEqual(outside, [], "device operators outside of every leaf")
        return trace

    def replayed(self, trace, substituted, least=400):
        found = json.loads(self.call(harness.BINARY, "replay", trace, "--level", "aten", "--mode", "eager",
                                     "--format", "json").stdout)
        self.assertEqual(found["differences"], [])
        summary = {row["quantity"].strip(): row["value"] for row in found["summary"]}
        self.assertGreater(summary["outputs compared"], least)
        replaced = [re.match(r"\w+::([\w.]+) is replaced", note["message"]) for note in found["notes"]]
        self.assertEqual({match[1] for match in replaced if match} - substituted, set())

    def test_operators_of_the_adapter_itself(self):
        # Its references are work of the host, which is left out.
        self.replayed(self.recorded("adapter_operators.py"), set(), least=70)

    def test_layers_losses_and_operators_on_both_devices(self):
        self.replayed(self.recorded("layers.py", "--here"), self.SUBSTITUTED)


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


def line_of(program, marker):
    """The number of the line of a program that ends with a comment."""
    with open(program) as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith("# " + marker))


class LintTest(harness.NpuTest):
    def findings(self, program, *arguments):
        """The output of the program, recorded; what lint finds in the trace."""
        trace = os.path.join(self.folder, "t.db")
        done = self.call(harness.BINARY, "record", "--soft", "--force", "--payload", "all", "-o", trace, "--",
                         harness.PYTHON, program, *arguments)
        linted = subprocess.run([harness.BINARY, "lint", trace, "--ungrouped", "--format", "json"], capture_output=True,
                                text=True)
        self.assertIn(linted.returncode, (0, 1), linted.stderr)
        return done.stdout, json.loads(linted.stdout)["findings"]


class Mistakes(LintTest):
    """Six mistakes of a step that is captured, or is to be: each is found, with its line of Python."""

    PROGRAM = os.path.join(harness.PROGRAMS, "six_mistakes.py")
    EAGER = {"host_read": "LINT-02", "sync_in_capture": "LINT-02", "unjoined_stream": "LINT-01",
             "varying_scalar": "LINT-14", "reused_buffer": "LINT-20", "missing_wait": "LINT-20"}
    # The codes by which the device refuses the capture of each, where it does.
    REFUSED = {"host_read": "107027", "sync_in_capture": "107027", "unjoined_stream": "107025"}

    def named(self, findings):
        """Pairs of a rule and a mistake whose line a finding of the rule names."""
        pairs = set()
        for mistake in self.EAGER:
            place = f"{self.PROGRAM}:{line_of(self.PROGRAM, 'mistake: ' + mistake)} "
            pairs |= {(row["rule"], mistake) for row in findings if place in row["message"]}
        return pairs

    def check(self, findings):
        named = self.named(findings)
        for mistake, rule in self.EAGER.items():
            self.assertIn((rule, mistake), named, json.dumps(findings, indent=1))

    def test_eager_steps_are_found_as_what_would_go_wrong(self):
        _, findings = self.findings(self.PROGRAM, *self.EAGER)
        self.check(findings)
        waits = [row for row in findings if row["rule"] == "LINT-02"]
        self.assertEqual({row["verdict"] for row in waits}, {"predicted"})
        for row in waits:
            self.assertIn("would be capturing", row["message"])

    def test_captures_are_found_and_those_that_fail_are_reproduced(self):
        output, findings = self.findings(self.PROGRAM, "--captured", *self.EAGER)
        self.check(findings)
        for mistake, code in self.REFUSED.items():
            self.assertRegex(output, rf"(?m)^{mistake} failed: .*{code}$")
            place = f":{line_of(self.PROGRAM, 'mistake: ' + mistake)} "
            rows = [row for row in findings if row["rule"] == self.EAGER[mistake] and place in row["message"]]
            self.assertEqual([row["verdict"] for row in rows], ["reproduced"], rows)

    def test_the_step_without_them_has_none(self):
        for arguments in ((), ("--captured",)):
            with self.subTest(arguments=arguments):
                _, findings = self.findings(self.PROGRAM, *arguments)
                errors = [row for row in findings if row["severity"] == "error"]
                self.assertEqual(errors, [])
                self.assertEqual(self.named(findings) & set((rule, mistake) for mistake, rule
                                                            in self.EAGER.items()), set())


class Compiled(LintTest):
    """Findings about a compiled function of another package name the lines of that package."""

    def test_the_copy_of_a_static_cache_is_found_with_the_line_of_transformers(self):
        installed = subprocess.run([harness.PYTHON, "-c", "import importlib.util as u; "
                                    "print(u.find_spec('transformers').origin)"],
                                   capture_output=True, text=True)
        if installed.returncode != 0:
            self.skipTest("transformers is not installed")
        cache = os.path.join(os.path.dirname(installed.stdout.strip()), "cache_utils.py")
        output, findings = self.findings(os.path.join(harness.PROGRAMS, "llama_static_cache.py"))
        self.assertRegex(output, "failed: .* 107030")
        copy, = (row for row in findings if row["rule"] == "LINT-03")
        self.assertEqual(copy["verdict"], "reproduced", copy)
        place = re.search(r"transformers/cache_utils.py:(\d+) \(", copy["message"])
        self.assertIsNotNone(place, copy)
        with open(cache) as file:
            line = file.read().splitlines()[int(place[1]) - 1]
        self.assertIn(".to(self.device)", line)


class Recording(harness.NpuTest):
    """Recorded with the task queue as it is by default: the trace is whole and replays bit for bit."""

    def record(self, *program, payload="all", options=()):
        """The output of the program, recorded, is that of the program alone; the trace's path."""
        program = [harness.PYTHON, *program]
        alone = self.call(harness.BINARY, "run", "--", *program)
        trace = os.path.join(self.folder, "t.db")
        recorded = self.call(harness.BINARY, "record", "--soft", "--force", "--payload", payload, *options, "-o",
                             trace, "--", *program)
        self.assertEqual(recorded.stdout, alone.stdout, recorded.stderr)
        with sqlite3.connect(trace) as database:
            lost = database.execute("SELECT kind, subject, cause FROM ledger WHERE severity IN "
                                    "('data_loss', 'error')").fetchall()
        self.assertEqual(lost, [])
        return trace

    def replays(self, trace, *options):
        for mode in ("eager", "captured"):
            said = self.call(harness.BINARY, "replay", trace, "--mode", mode, *options).stdout
            self.assertIn("equal bit for bit", said)
            self.assertRegex(said, "substituted by recorded outputs +0")
            self.assertRegex(said, "outputs without a reference +0")

    def check_race(self, trace, program):
        """The race of the program's graph is reproduced, has both lines, and its edit mends it."""
        said = json.loads(self.call(harness.BINARY, "lint", trace, "--prove", "--format", "json",
                                    code=1).stdout)
        race, = (row for row in said["findings"] if row["rule"] == "LINT-20")
        self.assertEqual(race["verdict"], "reproduced", race)
        self.assertEqual(race["message"].count(program + ":"), 2, race)
        mended = [probe for probe in said["probes"] if probe["edits"] == "made"]
        self.assertTrue(mended)
        for probe in mended:
            self.assertEqual(probe["differing"], 0, probe)


    def computes_every_leaf(self, trace, mode, known=True):
        """At the level of PyTorch no result is taken from the recording, and all bits are equal. `known` is false
        where the recording holds too few results for a verdict."""
        said = self.call(harness.BINARY, "replay", trace, "--level", "aten", "--mode", mode,
                         code=0 if known else 125).stdout
        self.assertIn("equal bit for bit" if known else "not known", said)
        self.assertRegex(said, r"outputs different +0")
        self.assertEqual(re.findall(r"(\S+::\S+) is replaced", said), [])


class Decoder(Recording):
    """A decoder goes through what acltape does with a program of the adapter, at both levels."""

    def test_is_recorded_replayed_proved_and_bisected(self):
        trace = self.record(os.path.join(harness.WORKLOADS, "decoder.py"), "--device", "npu", "--tokens", "5")
        # The leaves of PyTorch, whose tensors on the device have buffers and values of their own; and
        # the device's own calls.
        self.replays(trace)
        self.replays(trace, "--level", "acl")
        with sqlite3.connect(trace) as database:
            rows = database.execute("SELECT op, aten_op, file FROM device_call_origin").fetchall()
        self.assertGreater(len(rows), 100)
        self.assertEqual({os.path.basename(file or "?") for _, _, file in rows}, {"decoder.py"})
        self.assertIn(("aclnnAddmm", "aten::addmm"), {row[:2] for row in rows})
        # torch_npu has a kernel of its own for what is a composite on the CPU.
        self.assertIn(("aclnnMatmul", "aten::matmul"), {row[:2] for row in rows})
        self.assertNotIn(None, {aten_op for _, aten_op, _ in rows})

        self.call(harness.BINARY, "prove", trace)
        self.bisects(trace)

    def bisects(self, trace):
        """Three planted faults are found at the leaf that has them, with the line that called it."""
        with sqlite3.connect(trace) as database:
            lines = dict(database.execute("SELECT aten_call, file || ':' || line || ' (' || function || ')' "
                                          "FROM device_call_origin WHERE line IS NOT NULL").fetchall())
            leaf = dict(database.execute("SELECT op, min(call_id) FROM call WHERE step = 2 AND leaf = 1 "
                                         "GROUP BY op").fetchall())
        for kind, op in (("wrong_bits", "aten::matmul"), ("low_bits", "aten::_softmax"),
                         ("moved_address", "aten::div.Tensor")):
            journal = os.path.join(self.folder, kind)
            said = self.call(harness.BINARY, "bisect", trace, "--journal", journal, "--plant",
                             f"{kind}@{leaf[op]}", code=1).stdout
            self.assertRegex(said, rf"verdict +found: call \d+ {op} ", kind)
            call = int(re.search(r"verdict +found: call (\d+) ", said).group(1))
            self.assertRegex(said, rf"(?m)^ +where +{re.escape(lines[call])}$", kind)


class Recorded(Recording):
    def test_operators_of_the_adapter_are_lowered_to_what_it_calls(self):
        trace = self.record(os.path.join(harness.PROGRAMS, "own_operators.py"))
        self.computes_every_leaf(trace, "eager")

    def test_the_devices_time_for_the_leaves_of_a_decoder(self):
        trace = self.record(os.path.join(harness.WORKLOADS, "decoder.py"), "--device", "npu", "--tokens", "3",
                            options=("--device-times",))
        self.replays(trace, "--level", "acl")
        with sqlite3.connect(trace) as database:
            def ask(query):
                return database.execute(query).fetchall()
            missing = ask("SELECT * FROM ledger WHERE kind = 'device_time_missing'")
            launched = ask("SELECT call_id FROM call WHERE op GLOB 'aclnn*' AND status = 0")
            timed = ask("SELECT c.call_id FROM device_span JOIN call c USING (call_id) WHERE c.op GLOB 'aclnn*'")
            # A leaf has the sum of the spans of what its kernel launched.
            wrong = ask("""
                SELECT t.call_id, t.device_ns, sum(d.end_ns - d.begin_ns) FROM device_time t
                JOIN call c ON c.call_id = t.call_id AND c.op GLOB 'aten::*'
                JOIN call_row r ON r.parent_id = c.call_id JOIN device_span d ON d.call_id = r.call_id
                GROUP BY t.call_id HAVING t.device_ns <> sum(d.end_ns - d.begin_ns)""")
            leaves = {op: ns for op, ns in ask("SELECT op, device_ns FROM top_ops WHERE dialect = 'aten'") if ns}
        self.assertEqual(missing, [])
        self.assertGreater(len(launched), 100)
        self.assertEqual(sorted(timed), sorted(launched))
        self.assertEqual(wrong, [])
        self.assertLessEqual({"aten::addmm", "aten::matmul", "aten::_softmax"}, set(leaves))
        said = self.call(harness.BINARY, "plan", trace, "-o", "plan.json").stdout
        self.assertRegex(said, r"costs +recorded, with the device's own times of \d+ of \d+ signatures")

    def test_training_and_the_lines_of_its_backward(self):
        trace = self.record(os.path.join(harness.PROGRAMS, "training.py"))
        self.replays(trace)
        with sqlite3.connect(trace) as database:
            rows = database.execute(
                "SELECT o.op, f.op, o.file, o.line FROM device_call_origin o JOIN call f "
                "ON f.call_id = o.forward_call WHERE o.backward_node = 'AddmmBackward0'").fetchall()
        with open(os.path.join(harness.PROGRAMS, "training.py")) as source:
            forward, = (number for number, line in enumerate(source, 1) if "cross_entropy(" in line)
        self.assertGreater(len(rows), 4)
        self.assertEqual({row[1:] for row in rows},
                         {("aten::addmm", os.path.join(harness.PROGRAMS, "training.py"), forward)})

    def test_operators_by_name_are_recorded_as_what_they_are_made_of(self):
        trace = self.record(os.path.join(harness.PROGRAMS, "recurrent.py"))
        self.replays(trace, "--level", "acl")
        # The adapter calls a layer by name, in a thread of its own; the leaf is found by what it writes.
        said = self.call(harness.BINARY, "replay", trace, "--level", "aten").stdout
        self.assertRegex(said, r"substituted by recorded outputs +0\n")
        self.assertIn("equal bit for bit: all", said)

    def test_copies_and_operators_without_a_rule_are_replayed_by_what_was_recorded_in_them(self):
        trace = self.record(os.path.join(harness.PROGRAMS, "handed_over.py"), options=("--steps-from", "step"))
        for mode in ("eager", "captured"):
            said = self.call(harness.BINARY, "replay", trace, "--level", "aten", "--mode", mode).stdout
            self.assertIn("equal bit for bit: all", said)
            self.assertRegex(said, r"substituted by recorded outputs +0\n")
        with sqlite3.connect(trace) as database:
            # What the device made is no input, so nothing had to be read from it.
            read = database.execute(
                "SELECT DISTINCT c.op FROM snapshot s JOIN call c USING (call_id) JOIN buffer b ON "
                "b.buffer_id = s.tensor_id >> 24 WHERE s.moment = 'before' AND s.position < 0 AND b.device > 0 "
                "AND c.op GLOB '[an][tp][eu]*::*'").fetchall()
            self.assertEqual(read, [])
            copied = database.execute(
                "SELECT c.call_id, s.digest = k.digest FROM call c "
                "JOIN call p ON p.parent_id = c.call_id AND p.op GLOB 'aclrtMemcpyAsync*' "
                "JOIN snapshot s ON s.call_id = c.call_id AND s.moment = 'after' "
                "JOIN snapshot k ON k.call_id = p.call_id AND k.moment = 'after' WHERE c.op IN "
                "('aten::copy_', 'aten::_to_copy') AND c.step IS NOT NULL").fetchall()
        self.assertEqual([equal for _, equal in copied], [1] * 6, copied)

    def test_random_numbers_of_the_device_are_kept_with_the_inputs_alone(self):
        for payload in ("all", "inputs"):
            with self.subTest(payload=payload):
                trace = self.record(os.path.join(harness.PROGRAMS, "dropout.py"), payload=payload,
                                    options=("--steps-from", "step"))
                for mode in ("eager", "captured"):
                    self.computes_every_leaf(trace, mode, known=payload == "all")

    def test_a_result_keeps_its_value_where_the_host_later_fills_its_memory(self):
        trace = self.record(os.path.join(harness.PROGRAMS, "reused_memory.py"))
        self.assertIn("equal bit for bit", self.call(harness.BINARY, "replay", trace).stdout)
        with sqlite3.connect(trace) as database:
            kept = database.execute(
                "SELECT c.op, s.digest = host.digest, s.min FROM snapshot s JOIN call c USING (call_id) "
                "JOIN call f ON f.op = 'aten::full' JOIN snapshot host ON host.call_id = f.call_id "
                "AND host.moment = 'after' WHERE s.moment = 'after' "
                "AND c.op IN ('aten::add.Tensor', 'aten::_to_copy') ORDER BY s.call_id").fetchall()
        # Of sum and batch, twice; torch.tensor is no leaf.
        self.assertEqual(kept, [("aten::add.Tensor", 0, 2.5), ("aten::add.Tensor", 0, 8.0),
                                ("aten::add.Tensor", 0, 2.5), ("aten::_to_copy", 1, None),
                                ("aten::add.Tensor", 0, 10.0)])

    def test_a_graph_on_two_streams(self):
        trace = self.record(os.path.join(harness.WORKLOADS, "npu_streams.py"))
        self.replays(trace)
        # The graph's own pool takes memory while it captures, and the host reads a result after each execution.
        said = json.loads(self.call(harness.BINARY, "lint", trace, "--format", "json", code=1).stdout)
        self.assertEqual({row["rule"] for row in said["findings"]}, {"LINT-04", "LINT-40"})

    def test_a_missing_wait_is_found_with_its_lines_and_the_edit_mends_it(self):
        program = os.path.join(harness.WORKLOADS, "npu_streams.py")
        self.check_race(self.record(program, "--missing-wait"), program)


class PlantedMistakes(Recording):
    """A mistake that was planted after the model of a workload is named at its line, at both levels."""

    PROGRAM = os.path.join(harness.SOURCE, "tests", "torch", "programs", "planted_mistakes.py")
    DECODER = ("decoder.py", "--device", "npu", "--tokens", "4", "--layers", "1", "--width", "32")
    TRAINING = ("mlp_train.py", "--device", "npu", "--steps", "5", "--width", "32")
    LEVELS = ("aten", "acl")

    def planted(self, mistakes, workload):
        name, *arguments = workload
        trace = self.record("-B", self.PROGRAM, mistakes, os.path.join(harness.WORKLOADS, name), *arguments)
        named = os.path.join(self.folder, mistakes + ".db")
        os.rename(trace, named)
        return named

    def place(self, mark):
        with open(self.PROGRAM) as file:
            line, = (number for number, text in enumerate(file, 1) if text.endswith(f"#: {mark}\n"))
        return f"{self.PROGRAM}:{line} (Planted.leave)"

    def tables(self, *words, code=0):
        return json.loads(self.call(harness.BINARY, *words, "--format", "json", code=code).stdout)

    def test_host_read_and_varying_factor_are_named_by_lint_steps_and_plan(self):
        for workload in (self.DECODER, self.TRAINING):
            trace = self.planted("item,rate", workload)
            for level in self.LEVELS:
                with self.subTest(workload=workload[0], level=level):
                    found = self.tables("lint", trace, "--level", level, "--no-results", code=1)["findings"]
                    named = {(row["rule"], row["where"].removeprefix("backward of ")) for row in found}
                    self.assertIn(("LINT-38" if level == "aten" else "LINT-02", self.place("item")), named)
                    factors = {where for rule, where in named if rule == "LINT-14"}
                    self.assertEqual(factors, {self.place("factor")})
                    varying = [row for row in self.tables("steps", trace, "--level", level)["arguments"]
                               if row["op"] != "aclrtMemcpy"]  # from other host memory in each step
                    self.assertEqual({row["where"].removeprefix("backward of ") for row in varying},
                                     {self.place("factor")})
                    regions = self.tables("plan", trace, "--level", level, "--no-results", "-o",
                                          trace + ".json")["regions"]
                    self.assertIn(self.place("item"),
                                  {row["where"] for row in regions if row["kind"] == "eager"}, regions)

    def test_wrong_constant_is_named_by_diff_and_bisect(self):
        right, wrong = self.planted("none", self.DECODER), self.planted("constant", self.DECODER)
        for level in self.LEVELS:
            with self.subTest(level=level):
                origin = self.tables("diff", right, wrong, "--level", level, "--no-results", code=1)["origins"][0]
                self.assertEqual(origin["where"], self.place("factor"))
                said = self.call(harness.BINARY, "bisect", right, "--against", wrong, "--level", level,
                                 "--no-results", "--no-journal", code=1).stdout
                self.assertRegex(said, rf"(?m)^ +where +{re.escape(self.place('factor'))}$")


class Planned(Recording):
    """A plan for an eager program, followed by the adapter's own compilers."""

    def test_the_emitted_pass_puts_a_compiled_step_on_the_planned_streams(self):
        program = os.path.join(harness.PROGRAMS, "planned_streams.py")
        plan, planned = (os.path.join(self.folder, name) for name in ("plan.json", "planned.py"))
        eager = self.record(program)
        self.call(harness.BINARY, "plan", eager, "--streams", 2, "--spread", "-o", plan)
        self.call(harness.BINARY, "emit", eager, plan, "--as", "torchair", "-o", planned)
        expected = self.call(harness.BINARY, "run", "--", harness.PYTHON, program).stdout
        for backend in ("torchair", "npugraph_ex"):
            with self.subTest(backend=backend):
                compiled = os.path.join(self.folder, backend + ".db")
                said = self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", compiled,
                                 "--", harness.PYTHON, program, planned, backend).stdout
                self.assertEqual(said, expected)
                with sqlite3.connect(compiled) as database:
                    rows = database.execute("SELECT op, stream_id FROM device_call_origin "
                                            "WHERE model_id IS NOT NULL").fetchall()
                streams = {op: {stream for name, stream in rows if name == op} for op, _ in rows}
                # The branches trade places with their costs, and the adapter adds in place where the
                # sum runs on the stream of the products.
                (add,) = set(streams) & {"aclnnAdd", "aclnnInplaceAdd"}
                self.assertEqual(set(streams), {"aclnnMm", "aclnnAbs", "aclnnInplaceSub", add})
                self.assertEqual(streams["aclnnAbs"], streams["aclnnInplaceSub"])
                self.assertEqual(len(streams["aclnnMm"] | streams["aclnnAbs"]), 2)
                self.assertEqual(len(streams[add]), 1)
                self.assertLess(streams[add], streams["aclnnMm"] | streams["aclnnAbs"])
                linted = subprocess.run([harness.BINARY, "lint", compiled, "--format", "json"],
                                        capture_output=True, text=True)
                self.assertNotIn("LINT-20", linted.stdout)
                self.replays(compiled)


class CompiledStep(Recording):
    """A step that torchair compiles for two streams."""

    PROGRAM = os.path.join(harness.PROGRAMS, "compiled_streams.py")

    def captures(self, *options):
        """Facts and rows of `acltape captures`, without the captures that hold no operator."""
        trace = self.record("-W", "ignore", self.PROGRAM, *options)
        self.replays(trace)
        said = json.loads(self.call(harness.BINARY, "captures", trace, "--format", "json").stdout)
        facts = {row["fact"]: row["value"] for row in said["facts"]}
        return facts, [row for row in said["captures"] if row["reason"] != "empty"]


class Captures(CompiledStep):
    def test_padding_to_gears_takes_fewer(self):
        facts, rows = self.captures("--sizes", "3,4,5,4,3", "--gears", "4,8")
        self.assertEqual([row["reason"] for row in rows], ["other operators", "shape"])
        self.assertEqual([row["executions"] for row in rows], [4, 1])
        self.assertEqual(facts["most streams of graphs at a time"], 4)


class CompiledStreams(CompiledStep):
    """How often the step is captured, why, and its races."""

    def test_each_size_has_a_graph_of_its_own(self):
        facts, rows = self.captures("--sizes", "3,4,5,4,3")
        self.assertEqual([row["reason"] for row in rows], ["other operators", "shape", "shape"])
        self.assertRegex(rows[1]["difference"],
                         r"^dimension 0 of self of call \d+ aclnnMm is 4 instead of 3; ")
        self.assertEqual([row["executions"] for row in rows], [2, 2, 1])
        self.assertEqual([row["streams"] for row in rows], [2, 2, 2])
        self.assertEqual(facts["most streams of graphs at a time"], 6)

    def test_what_a_graph_updates_lies_elsewhere_and_it_is_captured_again(self):
        facts, rows = self.captures("--sizes", "4,4", "--update")
        self.assertEqual([row["reason"] for row in rows], ["other operators", "address"])
        self.assertRegex(rows[1]["difference"],
                         "^selfRef of call .* aclnnInplaceAdd, which it updates, lies elsewhere")
        self.assertIsNotNone(rows[0]["destroyed"])

    def test_a_missing_wait_is_found_with_its_lines_and_the_edit_mends_it(self):
        trace = self.record("-W", "ignore", self.PROGRAM, "--sizes", "4", "--missing-wait")
        self.check_race(trace, self.PROGRAM)


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

    def test_recorded_models_replay_at_both_levels(self):
        for name in ("mixtral", "bert"):
            with self.subTest(model=name):
                trace = self.record("-B", self.PROGRAM, name, "--device", "npu",
                                    options=("--steps-from", "training step"))
                self.replays(trace, "--level", "acl")
                for mode in ("eager", "captured"):
                    self.computes_every_leaf(trace, mode)


class Gate(harness.NpuTest):
    def test_recordings_of_a_program_with_graphs_differ_in_nothing_and_changes_are_found(self):
        trust = os.path.join(harness.SOURCE, "bench", "gate", "trust.py")
        done = self.call(sys.executable, trust, "--device", "npu", "--python", harness.PYTHON, "--recordings", "2",
                         "--load", "1", "--plants", "lost_capture,stream,execution_less")
        self.assertIn("0 false; 3 planted changes: 3 found", done.stdout)


if __name__ == "__main__":
    harness.main()
