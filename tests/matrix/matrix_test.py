"""The matrix itself: every command has a row, and every check finds the answer that it is there for."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import checks  # noqa: E402
import matrix  # noqa: E402
import tables  # noqa: E402
from cells import Result  # noqa: E402
from recordings import BINARY  # noqa: E402

# Commands that answer nothing about a trace, and one that needs packages of Python (tests/fleet has them).
ELSEWHERE = {"record", "run", "env", "standards", "torch", "doctor", "completion", "man", "fleet"}
# Queries whose answer is a plain list of what the trace has; the tests of the command take them.
PLAIN_QUERIES = {"device_gaps", "scopes", "payloads", "findings", "runs", "differences", "witnesses", "meta"}


class Cell:
    """A cell that has run: what was printed is given."""

    def __init__(self, out="", err="", code=0, command="plan", rows=None, **facts):
        facts = {"name": "p", "run": ("train.py",), "device": "npu", "levels": "aten,acl", **facts}
        self.program = tables.Program(**facts)
        known = {row.name: row for row in tables.commands()}
        self.command = known[command]
        out = out if isinstance(out, str) else json.dumps(out)
        self.result = Result((command, "t.db"), code, out, err, 0.1)
        self.rows, self.failures, self.kinds = rows or [], [], []
        self.next_code = 0

    def ask(self, sql, name="t.db"):
        return self.rows

    def run(self, words, seconds=60):
        return Result(tuple(words), self.next_code, "", "acltape: the next command failed", 0.1)

    def fail(self, kind, seen):
        self.kinds.append(kind)


def kinds(check, *words, **options):
    cell = Cell(*words, **options)
    check(cell)
    return cell.kinds


class Tables(unittest.TestCase):
    def test_every_command_that_answers_something_has_a_row(self):
        said = subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout
        commands = set(re.findall(r"^  (\w+) {3,}", said[said.index("Subcommands:"):], re.M))
        self.assertEqual(commands - {row.words[0] for row in tables.commands()} - ELSEWHERE, set())

    def test_every_named_query_has_a_row(self):
        said = subprocess.run([BINARY, "query", "--list", "--format", "json"], capture_output=True, check=True).stdout
        queries = {row["name"] for row in json.loads(said)}
        taken = {row.words[2] for row in tables.commands() if row.words[0] == "query"}
        self.assertEqual(queries - taken - PLAIN_QUERIES, set())

    def test_every_program_has_a_source_and_names_are_unique(self):
        names = [row.name for row in (*tables.programs(), *tables.commands())]
        self.assertEqual(len(names), len(set(names)))
        for program in tables.programs():
            self.assertTrue(os.path.exists(program.source), program.name)

    def test_every_check_and_code_that_the_tables_name_exists(self):
        commands = {row.name for row in tables.commands()}
        for row in tables.commands():
            self.assertEqual(set(row.checks) - set(checks.CHECKS), set(), row.name)
        for row in tables.programs():
            self.assertEqual(set(row.codes) - commands, set(), row.name)

    def test_the_matrix_has_forty_programs_and_sixty_commands(self):
        self.assertGreaterEqual(len(tables.programs()), 40)
        self.assertGreaterEqual(len(tables.commands()), 60)

    def test_a_sample_has_programs_of_each_device_and_depends_on_the_seed_alone(self):
        cells = [(program, command) for program in tables.programs() for command in tables.commands()
                 if command.applies_to(program)]
        first, again, other = (matrix.sample(cells, 90, seed) for seed in ("a", "a", "b"))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertEqual({program.device for program, _ in first}, {"host", "npu", "acl"})

    def test_a_known_failure_that_is_gone_is_a_failure(self):
        row = tables.Known(kind="steps", why="", program="p", command="plan")
        known, tables.known = tables.known, lambda: [row]
        try:
            self.assertEqual(matrix.judged([], True), ([], [row]))
        finally:
            tables.known = known


class Checks(unittest.TestCase):
    def test_a_wrong_exit_code_and_an_end_by_time_are_told(self):
        self.assertEqual(kinds(checks.exit_code, code=3, err="acltape: no"), ["exit code"])
        self.assertEqual(kinds(checks.exit_code, code=None), ["time limit"])
        self.assertEqual(kinds(checks.exit_code, code=2, codes={"plan": 2}), [])

    def test_crashes_and_errors_without_a_sentence_are_told(self):
        self.assertEqual(kinds(checks.no_crash, err="acltape: internal error at a.cpp:1"), ["crash"])
        self.assertEqual(kinds(checks.no_crash, code=-11), ["crash"])
        self.assertEqual(kinds(checks.says_a_sentence, code=3, err="no such thing"), ["no sentence"])

    def test_numbers_that_cannot_be_are_told_in_text(self):
        self.assertEqual(kinds(checks.text_numbers, "host  -19.7 ms"), ["negative time"])
        self.assertEqual(kinds(checks.text_numbers, "host time captured, %   210.9"), ["share above 100"])
        self.assertEqual(kinds(checks.text_numbers, "scalar 4607182418800017408"), ["number as bits"])
        self.assertEqual(kinds(checks.text_numbers, "mean nan"), ["not a number"])
        self.assertEqual(kinds(checks.text_numbers, "steps 1-3, 5 ms, graph-2 ms, 100 %"), [])

    def test_numbers_that_cannot_be_are_told_in_json(self):
        self.assertEqual(kinds(checks.numbers_of_json, [{"wall_ns": -1}], command="info-json"), ["negative time"])
        self.assertEqual(kinds(checks.numbers_of_json, {"plan": [{"figure": "host time captured, %", "value": 210.9}]}),
                         ["share above 100"])
        self.assertEqual(kinds(checks.numbers_of_json, [{"integer": 4607182418800017408}]), ["number as bits"])
        self.assertEqual(kinds(checks.numbers_of_json, "{"), ["form"])
        self.assertEqual(kinds(checks.numbers_of_json, [{"wall_ns": 5, "percent": 100}]), [])

    def test_a_proposed_command_that_fails_is_told(self):
        cell = Cell(err="next: acltape replay t.db")
        cell.next_code = 3
        checks.next_lines(cell)
        self.assertEqual(cell.kinds, ["next"])

    def test_totals_of_commands_are_held_against_the_trace(self):
        self.assertEqual(kinds(checks.info, "calls   7\nleaves  4\n", rows=[(8, 4)]), ["totals"])
        self.assertEqual(kinds(checks.top_ops, [{"calls": 3, "percent": 100}], rows=[(4,)]), ["totals"])
        self.assertEqual(kinds(checks.step_count, "steps   5\n", steps=6), ["steps"])
        self.assertEqual(kinds(checks.step_rows, [{}] * 5, steps=6), ["steps"])

    def test_findings_are_those_of_the_table(self):
        row = {"rule": "LINT-38", "severity": "error", "where": "train.py:76 (main)", "message": "m"}
        self.assertEqual(kinds(checks.findings, {"findings": [row]}), ["false finding"])
        self.assertEqual(kinds(checks.findings, {"findings": [row]}, findings=("LINT-38@train.py:76",)), [])
        self.assertEqual(kinds(checks.findings, {"findings": [row]}, findings=("LINT-38@other.py",)), ["false finding"])
        self.assertEqual(kinds(checks.findings, {"findings": []}, findings=("LINT-38",), command="lint-json"),
                         ["missed"])

    def test_first_nan_has_the_calls_that_turn_and_no_other(self):
        row = {"turns": "NaN"}
        self.assertEqual(kinds(checks.first_nan, [row, row]), ["false finding"])
        self.assertEqual(kinds(checks.first_nan, [row, row], nan=2), [])
        self.assertEqual(kinds(checks.first_nan, [], nan=2), ["missed"])

    def test_a_ratio_is_that_of_its_medians(self):
        def times(ratio):
            return {"times": [{"quantity": "host", "execution": "eager", "low": 1, "median": 316, "high": 400},
                              {"quantity": "host", "execution": "captured", "low": 1, "median": 5.19, "high": 9}],
                    "ratios": [{"quantity": "host", "execution": "captured", "median": ratio}]}
        self.assertEqual(kinds(checks.compare_numbers, times(44.79)), ["ratio"])
        self.assertEqual(kinds(checks.compare_numbers, times(60.9)), [])

    def test_a_promise_for_steps_that_never_repeat_is_told(self):
        self.assertEqual(kinds(checks.plan, "pays after 2 steps", varies=True), ["false promise"])
        self.assertEqual(kinds(checks.plan, "pays after 2 steps"), [])

    def test_an_absolute_address_in_sarif_is_told(self):
        self.assertEqual(kinds(checks.sarif, {"artifactLocation": {"uri": "file:///home/train.py"}}),
                         ["absolute address"])
        self.assertEqual(kinds(checks.sarif, {"artifactLocation": {"uri": "train.py"}}), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
