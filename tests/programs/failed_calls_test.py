#!/usr/bin/env python3
"""Programs in which a call fails (failed_calls.cpp), each beside its right twin: lint names the failure with the
device's text, the code, the line and the operator; info and replay tell it too. The environment is that of
recorded_test.py.
"""
import json
import os
import subprocess
import unittest

import acl_programs
import recorded_test
from recorded_test import ACLTAPE

# The program's word, then of the first failure: function, code, a part of the device's text, the operator that the text
# names, and the rule that tells it.
FAILURES = (
    ("capture", "aclrtSynchronizeStream", 107027, "is capturing", None, "LINT-02"),
    ("gather", "aclrtSynchronizeStream", 507015, "index out of range", "aclnnIndexSelect", "LINT-50"),
    ("graph", "aclrtSynchronizeStream", None, "index out of range", "aclnnIndexSelect", "LINT-50"),
    ("memory", "aclrtMalloc", 207001, "no room for", None, "LINT-50"),
    ("update", "aclmdlRICaptureTaskUpdateEnd", 507000, "2 kernels and 1 were launched", None, "LINT-50"),
)


class FailedCalls(recorded_test.RecordedTest):
    def recorded(self, *words, code=0):
        binary = os.path.join(self.folder, "failed_calls")
        if not os.path.exists(binary):
            subprocess.run(acl_programs.build_line("failed_calls.cpp", binary, options=("-g",)), check=True)
        trace = binary + "_".join(("", *words)) + ".db"
        done = subprocess.run([ACLTAPE, "record", "--level", "acl", "--payload", "all", "--force", "-o", trace, "--",
                               binary, *words],
                              capture_output=True, text=True, timeout=120, env=acl_programs.environment())
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return trace, done

    def acltape(self, *words):
        return subprocess.run([ACLTAPE, *words], capture_output=True, text=True, timeout=120,
                              env=acl_programs.environment())

    def lint(self, trace, *words):
        done = self.acltape("lint", trace, "--no-results", "--format", "json", *words)
        return done.returncode, json.loads(done.stdout)

    def test_the_first_failure_is_told_with_the_devices_text(self):
        for word, function, status, text, operator, rule in FAILURES:
            with self.subTest(program=word):
                trace, done = self.recorded(word, code=1)
                self.assertIn(text, done.stderr, "the program gets its text as without a recording")
                code, tables = self.lint(trace, "--fail-on", "error")
                self.assertEqual(code, 1, tables)
                first = tables["failures"][0]
                self.assertEqual(first["function"], function)
                if status is not None:
                    self.assertEqual(first["code"], status)
                self.assertIn(text, first["the_device_said"])
                self.assertIn("failed_calls.cpp:", first["where"])
                self.assertEqual(first["what_became_of_it"], "the program ended with code 1")
                if operator:
                    self.assertIn(operator, first["operator"])
                    self.assertIn("failed_calls.cpp:", first["operator_where"])
                errors = [row["rule"] for row in tables["findings"] if row["severity"] == "error"]
                self.assertEqual(errors, [rule])
                info = self.acltape("info", trace)
                self.assertIn(text, " ".join(info.stdout.split()))
                self.assertIn("next: acltape lint", info.stderr)

    def test_right_twins_have_no_finding(self):
        for word, *_ in FAILURES:
            with self.subTest(program=word):
                code, tables = self.lint(self.recorded(word, "--right")[0])
                self.assertEqual((code, tables.get("failures", []), tables.get("findings", [])), (0, [], []))

    def test_a_failure_that_the_program_expects_is_told_and_is_no_finding(self):
        trace, _ = self.recorded("memory", "--handled")
        code, tables = self.lint(trace)
        self.assertEqual((code, tables.get("findings", [])), (0, []))
        self.assertEqual([row["what_became_of_it"] for row in tables["failures"]], ["handled"])
        self.assertIn("1 call failed and was handled", self.acltape("lint", trace, "--no-results").stdout)

    def test_a_replay_says_what_failed_in_the_recording_and_suggests_no_captured_replay(self):
        replayed = self.acltape("replay", self.recorded("update", code=1)[0], "--no-results")
        self.assertIn("first failure of the recording", replayed.stdout)
        self.assertNotIn("--mode captured", replayed.stderr)
        replayed = self.acltape("replay", self.recorded("gather", code=1)[0], "--no-results")
        self.assertEqual(replayed.returncode, 125, replayed.stdout + replayed.stderr)
        self.assertIn("index out of range", " ".join(replayed.stdout.split()))

    def test_two_recordings_of_one_program_are_equal(self):
        first, _ = self.recorded("graph", "--right")
        other = first + ".other"
        os.rename(first, other)
        second, _ = self.recorded("graph", "--right")
        compared = self.acltape("diff", other, second, "--no-results")
        self.assertEqual(compared.returncode, 0, compared.stdout + compared.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
