#!/usr/bin/env python3
"""Steps that are guessed are those that the program marks itself, in eight shapes of programs.

programs/step_shapes.py marks its iterations as ranges and plants a read by the host in each. Each
shape is recorded once. The marks say where the steps are; then they are taken out of a copy of the
trace, and steps are found without them.
"""
import os
import shutil
import sqlite3

from harness import TORCH_PYTHON, CommandTest, main

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "step_shapes.py")
SHAPES = ("sgd", "adam", "gan", "accumulation", "cache", "validation", "warm_up", "by_hand")
GUESS = "a guess, by what repeats; record --steps-from NAME takes the program's own ranges"


def ask(trace, query):
    connection = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def without_marks(trace, copy):
    shutil.copy(trace, copy)
    connection = sqlite3.connect(copy)
    connection.execute("DELETE FROM step")
    connection.execute("DELETE FROM scope_range WHERE scope_id IN "
                       "(SELECT scope_id FROM scope WHERE name = 'step mark')")
    connection.commit()
    connection.close()


def leaves_by_step(trace, outside):
    """The leaves of each step, without those that `outside` holds."""
    steps = ask(trace, "SELECT first_call, last_call FROM step ORDER BY step")
    leaves = [row[0] for row in ask(trace, "SELECT call_id FROM call WHERE leaf = 1")]
    return [[leaf for leaf in leaves if first <= leaf <= last and leaf not in outside]
            for first, last in steps]


class StepShapes(CommandTest):
    """One test per shape, made below."""

    def check(self, shape):
        marked, found = self.path(f"{shape}.db"), self.path(f"{shape}_found.db")
        self.record(marked, TORCH_PYTHON, PROGRAM, shape, payload="none",
                    options=["--steps-from", "step mark"])
        without_marks(marked, found)
        report = self.json("steps", found)
        self.assertEqual(report["steps"][-1], {"fact": "steps come from", "value": GUESS})

        marks = leaves_by_step(marked, outside=())
        inside = {leaf for step in marks for leaf in step}
        # torch before 2.0 has a leaf of its own in front of each mark, which is in none.
        outside = {row[0] for row in ask(marked, "SELECT call_id FROM call WHERE leaf = 1")} - inside
        self.assertEqual(leaves_by_step(found, outside), marks)
        self.check_that_lint_names_the_reads(found, marks)

    def check_that_lint_names_the_reads(self, trace, marks):
        reads = {row[0] for row in
                 ask(trace, "SELECT call_id FROM call WHERE op = 'aten::_local_scalar_dense'")}
        planted = {max(reads & set(step)) for step in marks}
        report = self.json("lint", trace, code=1)
        self.assertEqual(report["steps"], [{"fact": "steps come from", "value": GUESS}])
        named = [row for row in report["findings"] if row["call_id"] in planted]
        # LINT-38 is found if the step has work after the read.
        self.assertLessEqual({row["rule"] for row in named}, {"LINT-38", "LINT-40"}, named)
        self.assertEqual(sum(row["count"] for row in named), len(planted), named)


for each in SHAPES:
    setattr(StepShapes, f"test_{each}", lambda self, shape=each: self.check(shape))


class StepsAreAGuess(CommandTest):
    """Whatever is built on steps says where they come from."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "sgd.db")
        # Unmarked: the ranges would lie where the steps are, and be no step all the same.
        cls.recorded = cls("test_record_says_it_last").record(cls.trace, TORCH_PYTHON, PROGRAM, "sgd")

    def source(self, rows):
        return [row["value"] for row in rows if "steps come from" in row.values()]

    def test_record_says_it_last(self):
        *_, said, following = self.recorded.err.splitlines()
        self.assertEqual(said, f"acltape: the steps are {GUESS}")
        self.assertTrue(following.startswith("next: acltape info "), following)

    def test_tables_of_facts_have_a_row_for_it(self):
        plan = self.path("plan.json")
        for table, words, code in (("trace", ("info",), 0), ("steps", ("steps",), 0), ("plan", ("plan", "-o", plan), 0),
                                   ("steps", ("lint",), 1), ("summary", ("replay", "--mode", "captured"), 0),
                                   ("setting", ("compare", "--repetitions", "3", "--warmup", "1"), 0),
                                   ("facts", ("joint",), 0)):
            with self.subTest(command=words[0]):
                report = self.json(*words, self.trace, code=code)
                self.assertEqual(self.source(report[table]), [GUESS])

    def test_ranges_of_the_program_are_named(self):
        trace = self.path("ranges.db")
        self.record(trace, TORCH_PYTHON, PROGRAM, "sgd", options=["--steps-from", "step mark"])
        self.assertEqual(self.source(self.json("info", trace)["trace"]),
                         ["ranges of the program, step mark"])


if __name__ == "__main__":
    main()
