#!/usr/bin/env python3
"""acltape lint names why values of a program on the ACL interface are wrong, and accuses no right program.

graph_values.cpp runs faults and right twins of them, one after the other. A line with the comment "finds: RULE" is
where the finding of that rule has to lie; there may be no other finding. See corpus.py for the environment.
"""
import os
import re
import tempfile
import unittest

import corpus
from corpus import acl_programs

SOURCE = os.path.join(corpus.FOLDER, "graph_values.cpp")


def wanted():
    """{(rule, line)} of the comments."""
    found = set()
    with open(SOURCE) as file:
        for number, line in enumerate(file, 1):
            found.update((rule, number) for rule in re.findall(r"// finds: (LINT-\d+)", line))
    return found


class GraphValues(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="acltape_graph_values_")
        cls.addClassCleanup(cls.holder.cleanup)
        cls.binary = os.path.join(cls.holder.name, "graph_values")
        line = acl_programs.build_line(SOURCE, cls.binary, options=("-g", "-std=c++17"))
        corpus.run(line + ["-I" + acl_programs.FOLDER])

    def findings(self, payload):
        trace = os.path.join(self.holder.name, payload + ".db")
        corpus.run([corpus.ACLTAPE, "record", "--quiet", "--level", "acl", "--payload", payload, "-o", trace, "--",
                    self.binary], env=acl_programs.environment())
        report, _ = corpus.lint(trace)
        return report["findings"]

    def test_each_fault_is_named_at_its_line_and_no_right_twin(self):
        findings = self.findings("all")
        named = {(one["rule"], int(re.search(r"graph_values\.cpp:(\d+)", one["where"])[1])) for one in findings}
        self.assertEqual(named, wanted(), findings)
        for one in findings:
            self.assertTrue(one["edit"], one)

    def test_a_trace_without_values_lacks_what_needs_them(self):
        rules = {one["rule"] for one in self.findings("none")}
        self.assertEqual(rules, {rule for rule, _ in wanted()} - {"LINT-45"})


if __name__ == "__main__":
    unittest.main()
