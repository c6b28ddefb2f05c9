#!/usr/bin/env python3
"""What goes wrong between the ranks of a training is named by `acltape ranks`, with rank and line."""
import json
import subprocess

import harness

PROGRAM = f"{harness.PROGRAMS}/ranks_faulty.py"
BOTH = "rank 0, rank 1"
# The program's kind, the rule, the rank, and a part of the message beside the line that finds it.
FAULTS = [("replica", "RANK-08", BOTH, "only rank 1 writes it by aten::add_"),
          ("no_wait", "RANK-08", BOTH, "_foreach_add_"),
          ("late", "RANK-09", "rank 1", "without a recorded call between"),
          ("died", "RANK-03", "rank 1", "does not come to collective 25"),
          ("shorter", "RANK-03", "rank 1", "does not come to collective 55"),
          ("order", "RANK-01", BOTH, "HcclBroadcast"), ("size", "RANK-02", BOTH, "count 3"),
          ("graph", "RANK-04", BOTH, "in a captured graph")]


class RankFaults(harness.NpuTest):
    def findings(self, *words):
        trace = f"{self.folder}/{'_'.join(words)}.db"
        subprocess.run([harness.BINARY, "record", "--soft", "--payload", "digest", "--force", "-o", trace, "--",
                        harness.PYTHON, PROGRAM, *words], capture_output=True, timeout=300,
                       env={**harness.os.environ, "HCCL_EXEC_TIMEOUT": "20"})
        done = subprocess.run([harness.BINARY, "ranks", trace, "--format", "json"], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return trace, json.loads(done.stdout)

    def marked(self, kind):
        with open(PROGRAM) as file:
            return [f"ranks_faulty.py:{number}" for number, line in enumerate(file, 1)
                    if line.rstrip().endswith(f"finds: {kind}")]

    def test_each_fault_is_found_with_its_rank_and_lines(self):
        for kind, rule, rank, words in FAULTS:
            with self.subTest(kind):
                _, answer = self.findings(kind)
                # The rank that sleeps in no_wait is late, too.
                found = [row for row in answer["findings"] if rule == "RANK-09" or row["rule"] != "RANK-09"]
                self.assertEqual([(row["rule"], row["rank"]) for row in found], [(rule, rank)], found)
                for word in (words, *self.marked(kind)):
                    self.assertIn(word, found[0]["message"])

    def test_the_right_twins_have_no_finding_and_say_what_was_compared(self):
        for kind in ("graph", "no_wait"):
            with self.subTest(kind):
                trace, answer = self.findings(kind, "right")
                self.assertEqual([row for row in answer["findings"] if row["rule"] != "RANK-09"], [])
                facts = {row["fact"]: row["value"] for row in answer["facts"]}
                self.assertGreaterEqual(facts["of them replicas, equal on ranks"], 4)
                self.assertGreaterEqual(facts["results of collectives compared"], 60)
                named = self.call(harness.BINARY, "query", trace, "SELECT count(*), count(parent_id) FROM collective "
                                  "WHERE model_id IS NULL", "--format", "csv").stdout.splitlines()[1].split(",")
                self.assertEqual(named[0], named[1], "each collective has the operator of PyTorch that asked for it")


if __name__ == "__main__":
    harness.main()
