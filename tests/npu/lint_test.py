"""acltape lint on programs of the NPU adapter, recorded at both levels."""
import json
import os

import harness


class Lint(harness.NpuTest):
    def record(self, program, *options):
        self.trace = os.path.join(self.folder, "t.db")
        self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", self.trace, *options,
                  "--", harness.PYTHON, os.path.join(harness.PROGRAMS, program))

    def findings(self, *options, code=0):
        done = self.call(harness.BINARY, "lint", self.trace, "--format", "json", "--fail-on", "never",
                         *options, code=code)
        return json.loads(done.stdout)["findings"]

    def test_a_graph_per_batch_size_over_one_cache_is_right_and_its_reads_are_named(self):
        self.record("graph_per_batch.py")
        found = self.findings()
        self.assertEqual([f for f in found if f["severity"] == "error"], [])
        reads = [f for f in found if f["rule"] == "LINT-40"]
        self.assertEqual(len(reads), 1, found)
        self.assertIn("graph_per_batch.py:61", reads[0]["where"])
        self.assertGreater(reads[0]["count"], 30)

    def test_what_the_adapter_does_by_itself_is_one_line(self):
        self.record("train_step.py")
        table = self.call(harness.BINARY, "lint", self.trace, "--fail-on", "never").stdout
        self.assertEqual(table.count("aclrtQueryEventStatus"), 1, table)
        self.assertIn("inside the framework's adapter", table)
        rows = self.findings()
        queries = [f for f in rows if "aclrtQueryEventStatus" in f["message"]]
        self.assertTrue(queries)
        self.assertEqual({f["severity"] for f in queries}, {"info"})
        reads = [f for f in rows if f["rule"] == "LINT-38"]
        self.assertEqual(reads, [], "counters on the host")


    def test_a_baseline_of_one_recording_knows_the_findings_of_another(self):
        self.record("train_step.py")
        known = os.path.join(self.folder, "known.json")
        self.call(harness.BINARY, "lint", self.trace, "--write-baseline", known)
        os.remove(self.trace)
        self.record("train_step.py")
        said = self.call(harness.BINARY, "lint", self.trace, "--baseline", known).stdout
        self.assertIn("no findings in", said)

    def test_messages_name_operators_and_lines_and_edits_name_no_calls(self):
        self.record("train_step.py")
        rows = [row for row in self.findings() if row["severity"] != "info"]
        self.assertTrue(rows)
        for row in rows:
            self.assertRegex(row["message"], "^(aten|npu)::", row)
            if row["where"]:
                self.assertNotRegex(row["edit"], "call [0-9]", row)


if __name__ == "__main__":
    harness.main()
