#!/usr/bin/env python3
"""Traces of torch_npu programs made smaller and handed on: what trim keeps gives its recorded results at both levels
and is read by every command, and redact leaves nothing of the machine.
"""
import json
import os
import re
import sqlite3
import subprocess

import harness


class HandedOn(harness.NpuTest):
    DECODER = (os.path.join(harness.WORKLOADS, "decoder.py"), "--device", "npu", "--tokens", "5", "--layers", "1",
               "--width", "64", "--vocabulary", "64")
    TRAINING = (os.path.join(harness.PROGRAMS, "training_loop.py"),)
    GRAPHS = (os.path.join(harness.PROGRAMS, "changing_batches.py"),)

    def record(self, *program, payload="all"):
        self.call(harness.BINARY, "record", "--soft", "--force", "--quiet", "--payload", payload, "-o", "t.db", "--",
                  harness.PYTHON, "-W", "ignore", *program)

    def ask(self, query, trace="t.db"):
        with sqlite3.connect(os.path.join(self.folder, trace)) as database:
            return [row[0] for row in database.execute(query)]

    def trim(self, *options, code=0):
        done = self.call(harness.BINARY, "trim", "t.db", "-o", "small.db", "--force", "--format", "json", *options,
                         code=code)
        return {row["quantity"].strip(): row["value"] for row in json.loads(done.stdout)}

    def check(self, *options, level):
        """Trims, and lets the other commands read what was trimmed."""
        with self.subTest(trim=options, level=level):
            facts = self.trim("--level", level, *options)
            self.assertEqual(facts["outputs different, as in the whole trace"], 0, facts)
            self.assertEqual(facts["substituted by recorded outputs"], 0, facts)
            seen = facts["with a result in the recording"] + facts.get("overwritten later in their graph", 0)
            self.assertGreaterEqual(seen, 0.95 * facts["calls that compute"], facts)
            self.assertGreater(facts["outputs compared"], 0, facts)
            # What was trimmed at the ACL level has no other.
            for chosen in ((), ("--level", level)):
                done = self.call(harness.BINARY, "replay", "small.db", "--format", "json", *chosen)
                summary = {row["quantity"].strip(): row["value"] for row in json.loads(done.stdout)["summary"]}
                self.assertGreater(summary["outputs compared"], 0, summary)
                self.assertEqual(summary["outputs equal"], summary["outputs compared"], summary)
            for command in ("info", "steps", "plan"):
                done = subprocess.run([harness.BINARY, command, "small.db"], cwd=self.folder, capture_output=True,
                                      text=True, timeout=harness.LONGEST)
                self.assertIn(done.returncode, (0, 3) if command == "steps" else (0,), done.stderr)
            self.call(harness.BINARY, "report", "small.db", "-o", "small.html", "--force")
            self.call(harness.BINARY, "query", "small.db", "top_ops")
            return facts

    def operators(self, like):
        """Five operator calls from the last third of the program, as a selection."""
        calls = self.ask(f"SELECT call_id FROM call WHERE leaf AND op LIKE '{like}' ORDER BY call_id")
        self.assertGreater(len(calls), 10)
        return ",".join(str(call) for call in calls[2 * len(calls) // 3:][:5])

    def test_a_decoder_is_trimmed_at_both_levels(self):
        self.record(*self.DECODER)
        for level, like in (("aten", "aten::%mm"), ("acl", "aclnn%")):
            whole = self.check("--calls", "1-", level=level)
            self.assertEqual(whole["calls kept"], whole["calls of the whole trace"])
            self.check("--calls", "step:2", level=level)
            self.check("--calls", self.operators(like), level=level)
        self.assertEqual(self.check("--calls", "step:2", "--steps", "3", level="aten")["replayed"], "eager, captured")

    def test_a_training_loop_with_workers_is_trimmed_at_both_levels(self):
        self.record(*self.TRAINING, "2")
        main = self.ask("SELECT process_id FROM thread JOIN call USING (thread_id) WHERE op LIKE 'aclnn%' LIMIT 1")[0]
        for level in ("aten", "acl"):
            self.check("--calls", "1-", "--process", str(main), level=level)
            self.check("--calls", "step:1", "--process", str(main), level=level)

    def test_a_graph_for_each_batch_size_is_trimmed(self):
        self.record(*self.GRAPHS)
        facts = self.check("--calls", "1-", level="acl")
        self.assertGreater(facts["overwritten later in their graph"], 0)
        self.check("--calls", "step:1", level="acl")

    def test_few_results_are_no_proof(self):
        self.record(*self.TRAINING, payload="inputs")
        facts = self.trim("--calls", "1-", "--level", "aten", code=125)
        self.assertLess(facts["with a result in the recording"], facts["calls that compute"] / 2)
        self.call(harness.BINARY, "info", "small.db")

    def test_a_redacted_trace_has_no_path_and_no_name_of_the_machine(self):
        self.record(*self.TRAINING)
        self.call(harness.BINARY, "redact", "t.db", "-o", "redacted.db")
        with open(os.path.join(self.folder, "redacted.db"), "rb") as file:
            content = file.read()
        host = self.ask("SELECT value FROM meta WHERE key = 'host'")[0]
        # Parts of three letters or more: in a file of this size two slashes lie close to each other by chance.
        paths = re.findall(rb"(?:/[A-Za-z0-9_.+-]{3,}){2,}", content)
        self.assertEqual(paths, [])
        for word in (self.folder, os.path.dirname(harness.PYTHON), "python3", "training_loop", "acl_default"):
            self.assertNotIn(word.encode(), content)
        if len(host) > 4:  # a shorter name is a part of other words
            self.assertNotIn(host.encode(), content)
        self.call(harness.BINARY, "replay", "redacted.db", "--data", "synthesised", "--mode", "captured", "--level",
                  "aten")


if __name__ == "__main__":
    harness.main()
