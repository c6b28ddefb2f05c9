#!/usr/bin/env python3
"""ACL programs print the same while they are recorded at the ACL level. Their traces lack nothing and
replay bit for bit: eagerly and captured, on their own streams and on one, and leaf by leaf. The
environment is that of recorded_test.py.
"""
import itertools
import json
import subprocess
import unittest

import acl_programs
import conformance
import recorded_test
import trimmed_steps
from acl_programs import RUNS
from recorded_test import ACLTAPE, run_of

WAYS = [(mode, streams) for mode in ("eager", "captured") for streams in ("recorded", "flat")]
# conformance_test.py replays these on the recorded streams.
ON_RECORDED_STREAMS = {(program.source, program.options) for program in conformance.PROGRAMS if not program.reason}


class Replayed(recorded_test.RecordedTest):
    def replay(self, trace, mode, streams, *options):
        """Exit code and summary of a replay."""
        command = [ACLTAPE, "replay", trace, "--mode", mode, "--streams", streams, "--format", "json", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                              env=acl_programs.environment())
        evidence = f"$ {' '.join(command)}\n{done.stdout}{done.stderr}"
        self.assertIn(done.returncode, (0, 1), evidence)
        report = json.loads(done.stdout)
        summary = {row["quantity"]: row["value"] for row in report["summary"]}
        return done.returncode, summary, evidence

    def test_every_program_gives_the_recorded_bits_in_every_way(self):
        for run in RUNS:
            if acl_programs.missing(run.source):
                continue
            trace = self.record(run)
            with self.subTest(run=run.name, options=run.options):
                # A stream that a failure has stopped refuses the recorder's copies too.
                lost = self.ask(trace, "SELECT kind FROM ledger WHERE severity = 'data_loss'")
                allowed = [("value_not_kept",)] if run.name == "error_handling" else []
                self.assertLessEqual(set(lost), set(allowed))
            elsewhere = (run.source, run.options) in ON_RECORDED_STREAMS
            ways = [(mode, streams) for mode, streams in WAYS if streams == "flat" or not elsewhere]
            if run.name != "error_handling":  # leaves_test.py: such work has no leaves
                ways.append(("eager", "leaves"))
            for (mode, streams), process in itertools.product(ways, self.processes(trace)):
                with self.subTest(run=run.name, options=run.options, mode=mode, streams=streams, process=process):
                    code, summary, evidence = self.replay(trace, mode, streams, *process)
                    self.assertEqual(code, 0, evidence)
                    self.assertGreater(summary["outputs equal"], 0, evidence)
                    self.assertEqual(summary["outputs different"], 0, evidence)
                    self.assertEqual(summary["  substituted by recorded outputs"], 0, evidence)
                    if streams != "leaves":  # a leaf is always known
                        self.assertEqual(summary["  unknown, left out"], 0, evidence)
                    if run.name != "error_handling" and streams != "leaves":  # results of failed work are not compared
                        self.assertEqual(summary["outputs without a reference"], 0, evidence)
            for process in self.processes(trace):
                trimmed_steps.check(self, trace, run.source, run.options, process)

    def test_an_event_of_another_process_is_one_of_its_own(self):
        trace = self.record(acl_programs.Run("shared_event", "shared_event.cpp"))
        processes = self.processes(trace)
        self.assertEqual(len(processes), 2)
        for process in processes:
            trimmed_steps.check(self, trace, "shared_event.cpp", process=process)
            for mode, streams in WAYS:
                with self.subTest(mode=mode, streams=streams, process=process):
                    code, summary, evidence = self.replay(trace, mode, streams, *process)
                    self.assertEqual(code, 0, evidence)
                    self.assertGreater(summary["outputs equal"], 0, evidence)
                    self.assertEqual(summary["  unknown, left out"], 0, evidence)

    def test_memory_and_notifies_of_two_processes_replay_for_each_alone(self):
        trace = self.record(acl_programs.SHARED_MEMORY)
        processes = self.processes(trace)
        self.assertEqual(len(processes), 2)
        for process in processes:
            trimmed_steps.check(self, trace, "shared_memory.cpp", process=process)
            for mode, streams in WAYS:
                with self.subTest(mode=mode, streams=streams, process=process):
                    code, summary, evidence = self.replay(trace, mode, streams, *process)
                    self.assertEqual(code, 0, evidence)
                    self.assertEqual(summary["outputs equal"], 2, evidence)
                    self.assertEqual(summary["outputs without a reference"], 0, evidence)
                    self.assertEqual(summary["  unknown, left out"], 0, evidence)

    def test_what_another_process_wrote_is_an_input_each_time(self):
        trace = self.record(acl_programs.SHARED_MEMORY)
        # The parent copies from the shared block, which its own operator wrote before the child did.
        kept = self.scalar(trace, "SELECT count(*) FROM snapshot JOIN call USING (call_id) "
                           "WHERE op = 'aclrtMemcpyAsync' AND moment = 'before' AND position = -1")
        self.assertEqual(kept, 1)

    def test_a_program_with_a_failed_kernel_replays(self):
        trace = self.record(acl_programs.EXCEPTION_INFO)
        trimmed_steps.check(self, trace, "exception_info.cpp")
        for mode, streams in WAYS:
            code, summary, evidence = self.replay(trace, mode, streams)
            self.assertEqual(code, 0, evidence)
            self.assertGreater(summary["outputs equal"], 0, evidence)
            self.assertEqual(summary["  unknown, left out"], 0, evidence)

    def test_inputs_alone_are_enough_to_compare_captured_with_eager(self):
        trace = self.record(run_of("workload", "--capture"), payload="inputs")
        for streams in ("recorded", "flat"):
            code, summary, evidence = self.replay(trace, "captured", streams)
            self.assertEqual(code, 0, evidence)
            self.assertGreater(summary["outputs equal"], 50, evidence)

    def test_steps_of_equal_work_share_a_graph(self):
        trace = self.record(run_of("workload"))
        code, summary, evidence = self.replay(trace, "captured", "recorded")
        self.assertEqual(code, 0, evidence)
        self.assertEqual(summary["graphs made of eager work"], 1, evidence)
        self.assertEqual(summary["executions of those"], 8, evidence)

    def test_a_changed_value_in_the_trace_is_found(self):
        trace = self.record(run_of("single_op"))
        call = self.scalar(trace, "SELECT max(call_id) FROM snapshot WHERE moment = 'after'")
        connection = recorded_test.sqlite3.connect(trace)
        table = connection.execute("SELECT type FROM sqlite_master WHERE name = 'snapshot'").fetchone()
        self.assertEqual(table, ("table",))
        connection.execute("UPDATE snapshot SET digest = ? WHERE call_id = ? AND moment = 'after'",
                           ("0" * 32, call))
        connection.commit()
        connection.close()
        for mode, streams in WAYS:
            code, summary, evidence = self.replay(trace, mode, streams)
            self.assertEqual(code, 1, evidence)
            self.assertEqual(summary["outputs different"], 1, evidence)
            self.assertIn("acltape replay", summary["reproduce"], evidence)

    def test_a_level_that_the_trace_lacks_is_refused(self):
        trace = self.record(run_of("single_op"))
        command = [ACLTAPE, "replay", trace, "--level", "acl"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                              env=acl_programs.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        command[-1] = "aten"
        done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                              env=acl_programs.environment())
        self.assertNotIn(done.returncode, (0, 1), done.stdout + done.stderr)
        self.assertIn("holds no leaf of PyTorch", done.stderr)

    def test_an_operator_without_arguments_is_refused_not_called_different(self):
        trace = self.record(run_of("single_op"))
        connection = recorded_test.sqlite3.connect(trace)
        call, op = connection.execute("SELECT call_id, op_id FROM call WHERE op = 'aclnnMul'").fetchone()
        # An operator whose first phase was not seen is recorded like this.
        connection.execute("INSERT INTO signature(signature_id, op_id) VALUES(1000000, ?)", (op,))
        connection.execute("UPDATE call_row SET signature_id = 1000000, buffers = NULL "
                           "WHERE call_id = ?", (call,))
        connection.commit()
        connection.close()
        for mode, streams in WAYS:
            command = [ACLTAPE, "replay", trace, "--mode", mode, "--streams", streams]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                                  env=acl_programs.environment())
            self.assertNotIn(done.returncode, (0, 1), done.stdout + done.stderr)
            self.assertIn(f"call {call} aclnnMul has no arguments", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
