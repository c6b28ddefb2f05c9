#!/usr/bin/env python3
"""What goes wrong between ranks is found, with its rule, rank and lines; the right twins have no finding."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from harness import BINARY, CommandTest, main, run  # noqa: E402

PROGRAM = os.environ.get("ACLTAPE_RANK_FAULTS", "build/bin/rank_faults")
SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rank_faults.cpp")
# The program's kind, the rule, and the rank that the finding names.
# Of two ranks that differ nobody knows which one is right; then both are named.
BOTH = "rank 0, rank 1"
FAULTS = [("order", "RANK-01", BOTH), ("size", "RANK-02", BOTH), ("reduction", "RANK-02", BOTH),
          ("missing", "RANK-03", "rank 1"), ("died", "RANK-03", "rank 1"), ("graph", "RANK-04", BOTH),
          ("communicators", "RANK-05", BOTH), ("message", "RANK-06", BOTH), ("unanswered", "RANK-06", "rank 1"),
          ("batch", "RANK-06", BOTH), ("partner", "RANK-06", "rank 1"), ("matrix", "RANK-02", BOTH),
          ("late", "RANK-09", "rank 1"), ("device", "RANK-09", "rank 1"), ("unordered", "RANK-10", "rank 1"),
          ("branches", "RANK-10", "rank 1"), ("captures", "RANK-11", BOTH)]
CALLS = {"batch": "Exchange", "partner": "Exchange"}  # the function with the lines of these kinds
RIGHT = [kind for kind, _, _ in FAULTS] + ["streams"]


def marked_lines(kind, rule):
    """The lines of the function of this kind that say what they find, as the answer names them."""
    with open(SOURCE) as file:
        text = file.read()
    function = re.search(rf"^void {CALLS.get(kind, kind.capitalize())}\(.*?^}}", text, re.M | re.S)
    first = text.count("\n", 0, function.start()) + 1
    return [f"rank_faults.cpp:{first + at}" for at, line in enumerate(function[0].splitlines())
            if f"finds {rule}" in line]


class RankFaults(CommandTest):
    def findings(self, *words):
        return self.findings_in(self.recorded(*words))

    def recorded(self, *words, options=()):
        trace = self.path("_".join(words) + ".db")
        # A rank that waits for ever ends by the time-out of HCCL.
        run(BINARY, "record", "--soft", "--payload", "digest", *options, "--force", "-o", trace, "--", PROGRAM, *words,
            env={**os.environ, "HCCL_EXEC_TIMEOUT": "3"})
        return trace

    def findings_in(self, trace):
        done = run(BINARY, "ranks", trace, "--format", "json")
        found = json.loads(done.out)["findings"]
        self.assertEqual(done.code, 1 if any(row["severity"] == "error" for row in found) else 0, done)
        kept = self.acltape("query", trace, "SELECT rule FROM finding WHERE rule LIKE 'RANK-%'", "--format", "csv").out
        self.assertEqual(kept.split()[1:], [row["rule"] for row in found])
        return found

    def test_each_fault_is_found_with_its_rank_and_lines(self):
        for kind, rule, rank in FAULTS:
            with self.subTest(kind):
                found = self.findings(kind)
                self.assertEqual([(row["rule"], row["rank"]) for row in found], [(rule, rank)], found)
                for line in marked_lines(kind, rule):
                    self.assertIn(line, found[0]["message"])

    def test_the_right_twins_have_no_finding(self):
        for kind in RIGHT:
            with self.subTest(kind):
                self.assertEqual(self.findings(kind, "right"), [])

    def test_a_rank_that_comes_late_out_of_a_collective_is_no_finding(self):
        """The time before a collective of the late rank is moved into the synchronisation before it."""
        late = self.recorded("late")
        trace = self.changed_copy(
            late, "left_late.db",
            "CREATE TEMP TABLE moved AS SELECT m.call_id AS fill, "
            "(SELECT max(call_id) FROM call WHERE op GLOB 'aclrtSynchronize*' AND thread_id = m.thread_id "
            "AND call_id < m.call_id) AS wait, "
            "(SELECT min(begin_ns) FROM call WHERE op = 'HcclAllReduce' AND thread_id = m.thread_id "
            "AND call_id > m.call_id) - m.end_ns AS ns "
            "FROM call m WHERE m.op = 'aclrtMemset' AND m.thread_id IN "
            "(SELECT thread_id FROM call JOIN collective USING (call_id) WHERE rank = 1)",
            "UPDATE call_row SET begin_ns = begin_ns + (SELECT ns FROM moved WHERE fill = call_id) "
            "WHERE call_id IN (SELECT fill FROM moved)",
            "UPDATE call_row SET duration_ns = duration_ns + (SELECT ns FROM moved WHERE wait = call_id) "
            "WHERE call_id IN (SELECT wait FROM moved)")
        self.assertEqual(self.findings_in(late)[0]["rule"], "RANK-09")
        self.assertEqual(self.findings_in(trace), [])

    def test_a_rank_that_received_other_values_is_found(self):
        right = self.recorded("late", "right")
        trace = self.changed_copy(right, "received.db", "UPDATE snapshot SET digest = '0' || substr(digest, 2) "
                                  "WHERE call_id = (SELECT call_id FROM collective WHERE rank = 1 AND number = 7)")
        found = self.findings_in(trace)
        self.assertEqual([(row["rule"], row["rank"]) for row in found], [("RANK-07", BOTH)], found)
        self.assertIn("collective 7 of", found[0]["message"])

    def test_the_devices_clock_tells_how_much_communication_is_hidden(self):
        trace = self.recorded("late", options=["--device-times"])
        done = run(BINARY, "ranks", trace, "--format", "json")
        told = json.loads(done.out)
        self.assertEqual([row["rank"] for row in told["communication"]], [0, 1])
        for row in told["communication"]:
            self.assertEqual(row["hidden_ns"] + row["exposed_ns"], row["communication_ns"], row)
        # Rank 0 waits 12 times for the other one, which sleeps for 20 ms before each collective.
        waiting, late = told["communication"]
        self.assertGreater(waiting["communication_ns"], 200_000_000)
        self.assertLess(late["communication_ns"], waiting["communication_ns"])
        (moved,) = told["transfers"]
        self.assertEqual(moved["bytes"], 12 * 1000 * 4)
        self.assertLess(moved["time_ns"], waiting["communication_ns"])

    def test_each_rank_says_how_many_graphs_it_captured_and_executed(self):
        told = self.json("ranks", self.recorded("captures", "right"))
        self.assertEqual([(row["graphs"], row["executions"]) for row in told["ranks"]], [(2, 2), (2, 2)])

    def test_without_it_nothing_is_said_of_that(self):
        told = self.json("ranks", self.recorded("late", "right"))
        self.assertEqual((told["communication"], told["transfers"]), ([], []))

    def test_only_parts_of_a_program_are_not_compared(self):
        right = self.recorded("order")
        trace = self.changed_copy(right, "parts.db", "INSERT INTO recorded_window SELECT window_id + 10, process_id, "
                                  "first_call, last_call, begin_ns, end_ns FROM recorded_window")
        self.assertEqual(self.findings_in(trace), [])
        self.assertIn("only parts of the program were recorded", self.acltape("ranks", trace).out)

    def test_the_page_has_the_rules(self):
        rows = self.json("ranks", "--rules")
        with open(os.path.join(SOURCES, "docs", "many_ranks.md")) as file:
            page = file.read()
        self.assertGreaterEqual(len(rows), 11)
        for row in rows:
            self.assertIn("| " + " | ".join(row.values()) + " |", page)

    def test_a_program_without_collectives_gets_a_sentence(self):
        trace = self.path("none.db")
        self.acltape("record", "--soft", "--force", "-o", trace, "--", PROGRAM, "none")
        done = self.acltape("ranks", trace, code=2)
        self.assertIn("has no collective of HCCL", done.err)


if __name__ == "__main__":
    main()
