#!/usr/bin/env python3
"""Prepared questions find what was planted and where, and find nothing in the same fleet without it."""
import glob
import re
import shlex

import packages

packages.enter()
import made_fleet  # noqa: E402
from harness import CommandTest, main  # noqa: E402

from acltape import fleet  # noqa: E402
from acltape.fleet import questions, source_lines  # noqa: E402

# By question: what is planted, and cells of the row that must tell it.
PLANTED = {
    "waits": ({"slow_link": (2, 4)}, {"link": "the link from rank 2 to rank 3"}),
    "waited_for": ({"late_rank": 4}, {"rank": 4, "communicator": "world"}),
    "slow_ranks": ({"slow_op": (3, "aclnnMatmul", 1.4)}, {"rank": 3, "op": "aclnnMatmul"}),
    "operator_spread": ({"slow_op": (1, "aclnnGelu", 1.2)}, {"rank": 1, "op": "aclnnGelu", "line": "train.py:12"}),
    "parted_replicas": ({"parting": (5, 7)}, {"rank": 5, "step": 7, "equal_until": 6}),
    "collective_order": ({"other_order": (2, 9)}, {"rank": 2, "step": 9, "op": "HcclBroadcast",
                                                   "others_op": "HcclAllReduce"}),
    "graph_share": ({"without_graphs": 0}, {"rank": 0, "percent": 0.0, "usual_percent": 100.0}),
    "rank_memory": ({"more_memory": 4}, {"rank": 4, "device": 1}),
}


class Questions(CommandTest):
    def findings(self, folder, question):
        with fleet.open(self.path(folder)) as opened:
            return opened.arrow(f"SELECT * FROM {question} WHERE finding = 1").to_pylist()

    def test_what_is_planted_is_found_and_nothing_in_the_right_twin(self):
        made_fleet.write(self.path("right"), "night")
        for name, (planted, expected) in PLANTED.items():
            with self.subTest(question=name):
                made_fleet.write(self.path(name), "night", **planted)
                rows = self.findings(name, name)
                self.assertTrue(rows)
                self.assertEqual({key: rows[0][key] for key in expected}, expected)
                self.assertEqual(len({row["rank"] for row in rows}), 1, rows)
                self.assertEqual(self.findings("right", name), [])
                row = rows[0]
                self.assertRegex(questions.in_words(questions.ALL[name], row), r"^[^?]*\.$")
                command = shlex.split(questions.command(questions.ALL[name], row))
                self.assertEqual(command[:3], ["acltape", "query", f"/traces/night.rank{row['rank']}.db"])

    def test_a_regression_of_three_percent_is_found_with_its_noise(self):
        for name, times in (("slower", 1.03), ("same", 1.0)):
            made_fleet.write(self.path(name), "monday", recorded="2026-01-05T01:00:00Z")
            made_fleet.write(self.path(name), "tuesday", recorded="2026-01-06T01:00:00Z", seed=1,
                             slow_op=(None, "aclnnMatmul", times))
        row, = self.findings("slower", "regression")
        self.assertEqual((row["run"], row["before"], row["op"]), ("tuesday", "monday", "aclnnMatmul"))
        self.assertAlmostEqual(row["change_percent"], 3, delta=0.3)
        self.assertLess(row["noise_percent"], 0.3)
        self.assertEqual(self.findings("same", "regression"), [])

    def test_a_rank_of_one_night_stands_out_among_all_nights(self):
        for night in range(4):
            for name, planted in (("odd", {"slow_op": (2, "aclnnAdd", 1.5)} if night == 1 else {}), ("even", {})):
                made_fleet.write(self.path(name), f"night{night}", seed=night, **planted)
        row, = self.findings("odd", "outliers")
        self.assertEqual((row["run"], row["rank"], row["op"], row["parts"]), ("night1", 2, "aclnnAdd", 24))
        self.assertEqual(self.findings("even", "outliers"), [])

    def test_questions_that_are_asked_together_are_answered_as_each_alone(self):
        for night in ("one", "two"):
            made_fleet.write(self.path("both"), night, ranks=4, slow_link=(2, 4), late_rank=1, parting=(3, 7))
        with fleet.open(self.path("both")) as alone, fleet.open(self.path("both")) as opened:
            with opened.together(questions.texts()):
                for name in questions.ALL:
                    self.assertEqual(questions.answers(opened, name), questions.answers(alone, name))
                    self.assertEqual(opened.arrow(name).num_rows, alone.arrow(name).num_rows, name)
                self.assertEqual(opened.arrow("tensor_flow").num_rows, alone.arrow("tensor_flow").num_rows)

    def test_a_damaged_file_of_questions_that_are_asked_together_is_left_out_of_all(self):
        made_fleet.write(self.path("damaged"), "night", ranks=4)
        path, = glob.glob(self.path("damaged/data/device_span/run=night/rank=2/*/*.parquet"))
        with fleet.open(self.path("damaged")) as opened, opened.together(questions.texts()):
            opened.folder.judge(["device_span"])
            with open(path, "r+b") as file:  # once it was judged
                file.seek(40)
                file.write(b"\xff" * 400)
            self.assertEqual(sorted(set(opened.arrow("waited_for")["rank"].to_pylist())), [0, 1, 3])
            self.assertEqual(sorted(set(opened.arrow("slow_ranks")["rank"].to_pylist())), [0, 1, 3])
            self.assertIn("rank 2 of run night", opened.head[0])

    def test_one_slow_step_is_no_slow_operator(self):
        for night in range(2):
            made_fleet.write(self.path("once"), f"night{night}", seed=night, slow_once=(2, 5, "aclnnGelu", 80))
        for question in ("operator_spread", "outliers", "slow_ranks", "regression"):
            self.assertEqual(self.findings("once", question), [], question)

    def test_results_in_other_places_of_a_step_are_not_taken_for_parted_ones(self):
        made_fleet.write(self.path("moved"), "night", more_results=(2, 11))
        self.assertEqual(self.findings("moved", "parted_replicas"), [])

    def test_a_line_is_that_of_the_nearest_call_around(self):
        made_fleet.write(self.path("lines"), "night", ranks=1, steps=1)
        with fleet.open(self.path("lines")) as opened:
            calls = {row["op"]: row["call_id"] for row in opened.arrow(
                "SELECT op, min(call_id) AS call_id FROM call GROUP BY op").to_pylist()}
            keys = {op: ("night", 0, call) for op, call in calls.items()}
            lines = source_lines.lines_of(opened, [*keys.values(), ("night", 0, None), ("night", 7, 1)])
            self.assertEqual({op: lines.get(key) for op, key in keys.items()}, made_fleet.LINES)
            self.assertEqual(set(lines), set(keys.values()))

    def test_without_what_it_needs_a_question_says_so(self):
        made_fleet.write(self.path("alone"), "night", ranks=1)
        with fleet.open(self.path("alone")) as opened:
            for name in set(questions.ALL) - {"regression"}:
                answer, = questions.answers(opened, name)
                self.assertTrue(answer.answer.startswith("Not known: this needs that "), answer)

    def test_texts_of_a_trace_stay_one_word_of_the_shell_and_one_text_of_sql(self):
        question = questions.ALL["operator_spread"]
        command = questions.command(question, {"trace": "a b;$(c).db", "op": "x'); DROP $(y)\x1b"})
        self.assertEqual(shlex.split(command), ["acltape", "query", "a b;$(c).db",
                                                "SELECT * FROM top_ops WHERE op = 'x''); DROP $(y)?'"])

    def test_each_file_says_all_that_a_question_has(self):
        for question in questions.ALL.values():
            self.assertNotIn(None, question)
            columns = set(re.findall(r"{(\w+)", question.answer + question.next))
            made_fleet.write(self.path("one"), "night", ranks=1, steps=1)
            with fleet.open(self.path("one")) as opened:
                self.assertEqual(columns - set(opened.arrow(question.name).column_names), set(), question.name)


if __name__ == "__main__":
    main()
