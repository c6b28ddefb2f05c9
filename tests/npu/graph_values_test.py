"""acltape lint names why values of a program that executes graphs are wrong, and accuses no right program.

Each program of graph_values/ has functions: a `fault_NAME`, whose text says its mechanism, and beside it its right twin
`right_NAME`, which does the same work and gives back the values that the fault should. A line of a fault with the
comment "finds: RULE" is where the finding of that rule has to lie. There may be no other finding, of any severity, but
for one: what the adapter does by itself is a line of the report (LINT-04, info). In a right program only reads of the
host have such a comment (LINT-40).

`python3 tests/npu/graph_values_test.py --table` prints a table of all faults: mechanism, finding, line, mend, and what
was found in the twin.
"""
import ast
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import harness

FOLDER = os.path.join(harness.FOLDER, "graph_values")
PROGRAMS = sorted(name for name in os.listdir(FOLDER) if name.endswith(".py") and name != "programs.py")

HOST_READS = "LINT-40"  # it says no more than that the host waits there, which right programs may want

Function = collections.namedtuple("Function", "name first last mechanism by_time wanted")


def functions(program):
    """The functions of a program that are run, with (rule, line) of the findings that each has to have."""
    with open(os.path.join(FOLDER, program)) as file:
        text = file.read()
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith(("fault_", "right_")):
            continue
        wanted = {(rule, number) for number in range(node.lineno, node.end_lineno + 1)
                  for rule in re.findall(r"# finds: (LINT-\d+)", lines[number - 1])}
        by_time = any(isinstance(mark, ast.Name) and mark.id == "by_time" for mark in node.decorator_list)
        yield Function(node.name, node.lineno, node.end_lineno, ast.get_docstring(node) or "", by_time, wanted)


def place_of(finding, program):
    """(rule, line) of a finding; line 0 if it lies outside of the program's functions."""
    place = re.search(r"(?:^|\W)" + re.escape(program) + r":(\d+)", finding["where"])
    return finding["rule"], int(place[1]) if place else 0


def is_within(finding, program, function):
    return function.first <= place_of(finding, program)[1] <= function.last


def is_of_adapter(finding):
    return finding["severity"] == "info" and finding["rule"] == "LINT-04"


class GraphValues(harness.NpuTest):
    maxDiff = None

    def check(self, program):
        trace = os.path.join(self.folder, "t.db")
        recorded = self.call(harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON,
                             os.path.join(FOLDER, program))
        values = json.loads(re.search(r"^values (.*)$", recorded.stdout, re.M)[1])
        done = self.call(harness.BINARY, "lint", trace, "--format", "json", "--fail-on", "never")
        findings = [f for f in json.loads(done.stdout)["findings"] if not is_of_adapter(f)]
        wanted = set()
        for function in functions(program):
            wanted |= function.wanted
            if function.name.startswith("right_"):
                self.assertLessEqual({rule for rule, _ in function.wanted}, {HOST_READS}, function.name)
                continue
            self.assertTrue(function.wanted, f"{function.name} has no line that says what lint finds")
            if not function.by_time:
                self.assertNotEqual(values[function.name], values["right_" + function.name[len("fault_"):]],
                                    f"{function.name} gives the right values")
        self.assertEqual({place_of(f, program) for f in findings}, wanted, json.dumps(findings, indent=1))
        for finding in findings:
            self.assertTrue(finding["edit"], finding)

    def test_numbers_that_a_graph_keeps(self):
        self.check("scalars.py")

    def test_lists_slices_and_shapes_that_a_graph_keeps(self):
        self.check("shapes.py")

    def test_branches_that_a_graph_keeps(self):
        self.check("branches.py")

    def test_results_that_are_overwritten_or_replaced(self):
        self.check("results.py")

    def test_memory_that_tensors_have_let_go(self):
        self.check("memory.py")

    def test_state_that_warm_ups_move_and_graphs_without_work(self):
        self.check("state.py")

    def test_memory_that_nothing_wrote(self):
        self.check("undefined.py")

    def test_nothing_is_wrong_in_programs_that_serve_and_train_by_graphs(self):
        self.check("serving.py")

    def test_memory_of_the_host_other_streams_the_queue_of_the_adapter_and_updates(self):
        self.check("host.py")

    def test_each_program_is_checked_and_each_fault_says_its_mechanism_and_has_a_twin(self):
        with open(os.path.abspath(__file__)) as file:
            checked = re.findall(r'self\.check\("(\w+\.py)"\)', file.read())
        self.assertEqual(sorted(checked), PROGRAMS)
        faults = [(program, f) for program in PROGRAMS for f in functions(program) if f.name.startswith("fault_")]
        self.assertGreaterEqual(len(faults), 82)
        mechanisms = [fault.mechanism for _, fault in faults]
        self.assertEqual(len(set(mechanisms)), len(faults))
        for program, fault in faults:
            self.assertTrue(fault.mechanism, fault.name)
            twin = "right_" + fault.name[len("fault_"):]
            self.assertIn(twin, [function.name for function in functions(program)])


def print_table():
    """Records and lints each program; a row for each fault, in Markdown."""
    faults = right = found = false_findings = 0
    print("| program | mechanism | finding | at | what it says | mend | twin |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="acltape_npu_") as folder:
        for program in PROGRAMS:
            trace = os.path.join(folder, program + ".db")
            subprocess.run([harness.BINARY, "record", "--soft", "--payload", "all", "-o", trace, "--", harness.PYTHON,
                            os.path.join(FOLDER, program)], check=True, capture_output=True)
            done = subprocess.run([harness.BINARY, "lint", trace, "--format", "json", "--fail-on", "never"],
                                  check=True, capture_output=True, text=True)
            findings = [f for f in json.loads(done.stdout)["findings"] if not is_of_adapter(f)]
            known = {function.name: function for function in functions(program)}
            right += sum(name.startswith("right_") for name in known)
            false_findings += sum(place_of(f, program) not in
                                  {one for function in known.values() for one in function.wanted} for f in findings)
            for name, function in known.items():
                if not name.startswith("fault_"):
                    continue
                faults += 1
                of_fault = [f for f in findings if is_within(f, program, function)]
                found += function.wanted <= {place_of(f, program) for f in of_fault}
                twin = known["right_" + name[len("fault_"):]]
                of_twin = sum(is_within(f, program, twin) for f in findings)
                cell = lambda texts: "<br>".join(texts).replace("|", "\\|") or "-"
                print(f"| {program[:-3]}.{name[len('fault_'):]} | {function.mechanism} | "
                      f"{cell(f['rule'] for f in of_fault)} | "
                      f"{cell(str(place_of(f, program)[1]) for f in of_fault)} | "
                      f"{cell(f['message'] for f in of_fault)} | "
                      f"{cell(sorted({f['edit'] for f in of_fault}))} | "
                      f"{f'{of_twin} findings' if of_twin else 'no finding'} |")
    print(f"\n{faults} faults, of {found} cause and line are named; {right} right programs; "
          f"{false_findings} false findings")


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        print_table()
    else:
        harness.main()
