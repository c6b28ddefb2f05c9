#!/usr/bin/env python3
"""What programs of the NPU adapter get of the soft device: independent random numbers, and what a strict
device finds."""
import json
import os
import sqlite3
import time

import harness

BOTH, INTERFACE = ("--level", "aten,acl"), ("--level", "acl")


class SoftDevice(harness.NpuTest):
    def record(self, program, *arguments, options=(), environment=None):
        self.trace = os.path.join(self.folder, "t.db")
        return self.call(harness.BINARY, "record", "--soft", "--force", "--payload", "all", "-o", self.trace,
                         *options, "--", harness.PYTHON, os.path.join(harness.PROGRAMS, program), *arguments,
                         environment=environment)

    def ask(self, text):
        with sqlite3.connect(self.trace) as database:
            return database.execute(text).fetchall()

    def device(self):
        return json.loads(self.ask("SELECT value FROM meta WHERE key = 'soft_device'")[0][0])

    def replays_equal(self):
        for mode in ("eager", "captured"):
            report = self.call(harness.BINARY, "replay", self.trace, "--mode", mode, "--no-results").stdout
            self.assertIn("equal bit for bit", report)

    def test_a_graph_that_waits_for_a_failed_update_does_not_hold_the_exit_up(self):
        """The adapter synchronises the device when the interpreter ends."""
        began = time.monotonic()
        done = self.call(harness.BINARY, "run", "--", harness.PYTHON, os.path.join(harness.PROGRAMS, "stuck_update.py"),
                         environment={"ACLTAPE_SOFT_SYNCHRONIZE_WAIT": "1000"})
        self.assertEqual(done.stdout, "the update failed\n")
        self.assertIn("soft device: a synchronisation drops the work of stream", done.stderr)
        self.assertLess(time.monotonic() - began, 60)

    def test_masks_are_independent_and_equal_eager_captured_and_from_run_to_run(self):
        said = []
        for level in (BOTH, INTERFACE):
            said.append(self.record("masks.py", options=level).stdout)
            self.assertEqual(self.device(), {"generator": 2})
            self.assertEqual(self.ask("SELECT * FROM ledger WHERE kind = 'strict_device'"), [])
            self.replays_equal()
        self.assertEqual(said[0], said[1])
        self.assertEqual(said[0].count("True"), 3, said[0])

    def test_an_older_trace_draws_with_the_generator_that_it_was_recorded_with(self):
        self.record("masks.py", options=INTERFACE, environment={"ACLTAPE_SOFT_GENERATOR": "1"})
        self.assertEqual(self.device(), {"generator": 1})
        with sqlite3.connect(self.trace) as database:
            database.execute("DELETE FROM meta WHERE key = 'soft_device'")
        self.replays_equal()
        # The masks are shifted copies there, so another generator makes others.
        other = self.call(harness.BINARY, "replay", self.trace, "--mode", "eager", "--no-results", code=1,
                          environment={"ACLTAPE_SOFT_GENERATOR": "2"})
        self.assertIn("different", other.stdout)

    def test_a_strict_device_names_the_operator_that_used_what_nothing_wrote(self):
        plain = self.record("unwritten.py")
        self.assertEqual(plain.stdout, "mean 10.5\n", "without poison it looks right")
        strict = self.record("unwritten.py", options=("--strict-device",))
        self.assertEqual(strict.stdout, "mean nan\n")
        self.assertEqual(self.device(), {"generator": 2, "jitter": 1, "poison": 1})
        self.assertEqual(self.ask("SELECT severity FROM ledger WHERE kind = 'strict_device'"), [("notice",)])
        found = dict(self.ask("SELECT subject, cause FROM ledger WHERE kind = 'unwritten_read'"))
        self.assertIn("nothing had written 8 of the 32 elements of its argument self", found["aclnnMuls"])
        self.assertIn("unwritten_read of aclnnMuls", strict.stderr)
        self.assertIn("unwritten_read", self.call(harness.BINARY, "info", self.trace).stdout)
        self.assertEqual(sorted(os.listdir(self.folder)), ["t.db"])

    def test_a_strict_device_accuses_no_right_twin(self):
        for option in ("--zeros", "--masked"):
            with self.subTest(option=option):
                strict = self.record("unwritten.py", option, options=("--strict-device",))
                self.assertEqual(strict.stdout, "mean 10.5\n")
                self.assertEqual(self.ask("SELECT * FROM ledger WHERE kind IN ('unwritten_read', "
                                          "'write_past_block', 'freed_memory')"), [])
                self.assertIn("the strict device saw no result of memory that nothing wrote", strict.stderr)

    def test_a_strict_device_is_the_soft_one(self):
        refused = self.call(harness.BINARY, "record", "--strict-device", "--", "true", code=2)
        self.assertIn("write --soft too", refused.stderr)


if __name__ == "__main__":
    harness.main()
