#!/usr/bin/env python3
"""Programs with tasks that work on memory in place, with mapped memory, with waits for values, and with graphs
in which the device chooses what runs: recorded, they print what they print without, and replay bit for bit,
eagerly and captured. The environment is that of recorded_test.py.
"""
import json
import os
import subprocess
import sys
import unittest

import acl_programs
import recorded_test
import trimmed_steps
from acl_programs import Run
from recorded_test import ACLTAPE

sys.path.insert(0, os.path.join(acl_programs.SOURCE, "acl", "generate"))
import meaning  # noqa: E402

RECORDED = [(mode, "recorded") for mode in ("eager", "captured")]
ALL_WAYS = RECORDED + [(mode, "flat") for mode in ("eager", "captured")]


def program(name):
    return Run(name, name + ".cpp")


class ModelPrograms(recorded_test.RecordedTest):
    def record_program(self, name, payload="all"):
        """The trace of a program, which printed what it should."""
        trace = self.record(program(name), payload)
        with open(os.path.join(acl_programs.FOLDER, "expected", name + ".txt")) as file:
            expected = file.read()
        binary = self.build(name + ".cpp")
        bare = subprocess.run([binary], capture_output=True, text=True, env=acl_programs.environment(), timeout=120)
        self.assertEqual(bare.stdout, expected)
        lost = self.ask(trace, "SELECT kind FROM ledger WHERE severity = 'data_loss'")
        self.assertEqual(lost, [])
        return trace

    def replay(self, trace, *options):
        command = [ACLTAPE, "replay", trace, "--format", "json", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=acl_programs.environment())
        return done, f"$ {' '.join(command)}\n{done.stdout}{done.stderr}"

    def expect_equal(self, trace, ways, at_least):
        """Every way gives the recorded bits, of so many results."""
        for mode, streams in ways:
            with self.subTest(mode=mode, streams=streams):
                done, evidence = self.replay(trace, "--mode", mode, "--streams", streams)
                self.assertEqual(done.returncode, 0, evidence)
                summary = {row["quantity"]: row["value"] for row in json.loads(done.stdout)["summary"]}
                self.assertGreaterEqual(summary["outputs equal"], at_least, evidence)
                self.assertEqual(summary["outputs different"], 0, evidence)
                self.assertEqual(summary["outputs without a reference"], 0, evidence)
                self.assertEqual(summary["  substituted by recorded outputs"], 0, evidence)
                self.assertEqual(summary["  unknown, left out"], 0, evidence)
                self.assertNotIn("ACL-LEFT-OUT", done.stdout, evidence)

    def plant(self, trace, position):
        """Changes what the trace says of the last result at a position."""
        connection = recorded_test.sqlite3.connect(trace)
        row, = connection.execute("SELECT max(rowid) FROM snapshot WHERE moment = 'after' AND position = ?",
                                  (position,)).fetchone()
        connection.execute("UPDATE snapshot SET digest = ? WHERE rowid = ?", ("0" * 32, row))
        connection.commit()
        connection.close()

    def test_reductions_and_random_numbers_repeat(self):
        trace = self.record_program("memory_tasks")
        self.expect_equal(trace, ALL_WAYS, 20)
        trimmed_steps.check(self, trace, "memory_tasks.cpp")

    def test_a_reduction_reads_what_it_changes(self):
        trace = self.record_program("memory_tasks")
        uses = self.ask(trace, "SELECT DISTINCT name, direction FROM tensor_use u JOIN call c USING (call_id) "
                        "WHERE c.op IN ('aclrtReduceAsync', 'aclrtRandomNumAsync') ORDER BY 1")
        self.assertEqual(uses, [("counter", "inout"), ("dst", "inout"), ("result", "out"), ("second", "in"),
                                ("src", "in")])

    def test_random_numbers_that_differ_are_found(self):
        trace = self.record_program("memory_tasks")
        self.plant(trace, 3)  # the numbers of the last task
        for mode, streams in ALL_WAYS:
            done, evidence = self.replay(trace, "--mode", mode, "--streams", streams)
            self.assertEqual(done.returncode, 1, evidence)
            self.assertIn("aclrtRandomNumAsync", done.stdout, evidence)

    def test_a_reservation_takes_the_memory_that_is_used(self):
        trace = self.record_program("virtual_memory")
        self.assertGreaterEqual(self.scalar(trace, "SELECT max(bytes) FROM buffer"), 64 << 30)
        self.expect_equal(trace, ALL_WAYS, 5)
        trimmed_steps.check(self, trace, "virtual_memory.cpp")
        done, evidence = self.replay(trace)
        summary = {row["quantity"]: row["value"] for row in json.loads(done.stdout)["summary"]}
        self.assertLess(summary["device memory, bytes"], 64 << 20, evidence)

    def test_a_wait_that_nothing_recorded_releases_is_named_and_passed(self):
        for payload in ("all", "inputs"):
            trace = self.record_program("value_waits", payload)
            for mode, streams in ALL_WAYS:
                if payload == "inputs" and mode == "eager":
                    continue  # there is nothing to compare with
                with self.subTest(payload=payload, mode=mode, streams=streams):
                    done, evidence = self.replay(trace, "--mode", mode, "--streams", streams)
                    self.assertEqual(done.returncode, 0, evidence)
                    self.assertIn("ACL-VALUE-WAIT", done.stdout, evidence)
                    summary = {row["quantity"]: row["value"] for row in json.loads(done.stdout)["summary"]}
                    self.assertEqual(summary["  not given back, left out"], 1, evidence)
        trace = self.record_program("value_waits")
        self.expect_equal(trace, ALL_WAYS, 3)
        trimmed_steps.check(self, trace, "value_waits.cpp")

    def test_conditional_graphs_choose_again(self):
        self.expect_equal(self.record_program("conditional_graph"), RECORDED, 20)

    def test_another_choice_in_a_conditional_graph_is_found(self):
        trace = self.record_program("conditional_graph")
        # The last number that was written into a condition: other rounds of the loop, or the other branch.
        cells = "SELECT buffer_id FROM tensor_use WHERE name = 'cell'"
        call = self.scalar(trace, "SELECT max(call_id) FROM tensor_use u JOIN call c USING (call_id) WHERE "
                           f"c.op = 'aclrtMemcpy' AND u.name = 'dst' AND u.buffer_id IN ({cells})")
        other = self.scalar(trace, "SELECT digest FROM snapshot s JOIN tensor_use u USING (call_id) JOIN call c "
                            "USING (call_id) WHERE c.op = 'aclrtMemcpy' AND u.name = 'dst' AND s.position = 2 AND "
                            f"u.buffer_id IN ({cells}) AND s.digest <> (SELECT digest FROM snapshot WHERE "
                            "call_id = ? AND position = 2) LIMIT 1", call)
        connection = recorded_test.sqlite3.connect(trace)
        connection.execute("UPDATE snapshot SET digest = ? WHERE call_id = ? AND position = 2", (other, call))
        connection.commit()
        connection.close()
        for mode, streams in RECORDED:
            done, evidence = self.replay(trace, "--mode", mode, "--streams", streams)
            self.assertEqual(done.returncode, 1, evidence)

    def test_built_models_run_again(self):
        self.expect_equal(self.record_program("built_model"), RECORDED, 20)

    def test_what_the_device_chooses_has_no_order_on_one_stream(self):
        for name in ("conditional_graph", "built_model"):
            trace = self.record_program(name)
            done, evidence = self.replay(trace, "--streams", "flat")
            self.assertEqual(done.returncode, 3, evidence)
            self.assertIn("executes a graph in which the device chooses what runs", done.stderr, evidence)
            trimmed_steps.check(self, trace, name + ".cpp")
            self.assertIn("--streams recorded", done.stderr, evidence)

    def test_lint_finds_no_mistake_in_programs_that_make_none(self):
        for name in ("memory_tasks", "virtual_memory", "conditional_graph", "value_waits"):
            with self.subTest(name=name):
                command = [ACLTAPE, "lint", self.record_program(name)]
                done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                                      env=acl_programs.environment())
                self.assertEqual(done.returncode, 0, f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")

    def test_every_exported_function_has_a_meaning_or_a_reason(self):
        known = meaning.Meaning()
        wrapped = {function["name"] for function in known.wrapped}
        exported = acl_programs.exported("libascendcl.so") & wrapped
        self.assertGreater(len(exported), 200)
        unknown = [name for name in sorted(exported) if known.row(name).get("kind", "unknown") == "unknown"]
        self.assertEqual(unknown, [], "say in acl/data/meaning.json what they mean, or why they are left out")
        with open(os.path.join(acl_programs.SOURCE, meaning.PAGE)) as file:
            table = file.read().split("## What cannot be given back")[1]
        for name in sorted(exported):
            if known.reason(name):
                self.assertIn(f"| `{name}` | {known.reason(name)} |", table)

    def test_unknown_functions_are_in_no_trace_of_them(self):
        for name in ("memory_tasks", "virtual_memory", "value_waits", "conditional_graph", "built_model"):
            with self.subTest(name=name):
                done, evidence = self.replay(self.record_program(name))
                self.assertEqual(done.returncode, 0, evidence)
                self.assertNotIn("ACL-UNKNOWN", done.stdout, evidence)


if __name__ == "__main__":
    unittest.main(verbosity=2)
