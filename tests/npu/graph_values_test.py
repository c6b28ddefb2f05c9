"""acltape lint names why values of a program that executes graphs are wrong, and accuses no right program.

Each program of graph_values/ runs several small programs: faults, and right twins of them. A line with the comment
"finds: RULE" is where the finding of that rule has to lie; there may be no other finding. LINT-40 is left out: that
the host reads a result in each round is true of most of these programs.
"""
import json
import os
import re

import harness

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "graph_values")


def wanted(program):
    """{(rule, line)} of the comments."""
    found = set()
    with open(os.path.join(FOLDER, program)) as file:
        for number, line in enumerate(file, 1):
            for rule in re.findall(r"# finds: (LINT-\d+)", line):
                found.add((rule, number))
    return found


class GraphValues(harness.NpuTest):
    maxDiff = None

    def check(self, program):
        trace = os.path.join(self.folder, "t.db")
        self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON,
                  os.path.join(FOLDER, program))
        done = self.call(harness.BINARY, "lint", trace, "--format", "json", "--fail-on", "never")
        findings = [f for f in json.loads(done.stdout)["findings"]
                    if f["severity"] != "info" and f["rule"] != "LINT-40"]
        named = {(f["rule"], int(re.search(re.escape(program) + r":(\d+)", f["where"])[1])) for f in findings}
        self.assertEqual(named, wanted(program), json.dumps(findings, indent=1))
        for finding in findings:
            self.assertTrue(finding["edit"], finding)

    def test_results_that_are_overwritten_or_replaced(self):
        self.check("results.py")

    def test_memory_that_tensors_have_let_go(self):
        self.check("memory.py")

    def test_arguments_that_a_graph_keeps(self):
        self.check("baked.py")

    def test_state_that_warm_ups_move_and_graphs_without_work(self):
        self.check("state.py")

    def test_memory_that_nothing_wrote(self):
        self.check("undefined.py")

    def test_memory_of_the_host_the_queue_of_the_adapter_and_updates(self):
        self.check("host.py")


if __name__ == "__main__":
    harness.main()
