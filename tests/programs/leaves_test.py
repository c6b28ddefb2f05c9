#!/usr/bin/env python3
"""Programs of the ACL level, leaf by leaf: their device work in one order, with the graphs that they
execute taken apart. Every command that works on leaves of PyTorch works on it. The environment is
that of recorded_test.py.
"""
import json
import os
import subprocess
import unittest

import acl_programs
import recorded_test
from recorded_test import ACLTAPE, run_of

# The ids of a call that runs in several executions of a graph lie this far apart.
EXECUTION = 1 << 32


class LeavesTest(recorded_test.RecordedTest):
    def acltape(self, *words, codes=(0,), env=()):
        """The finished process, whose exit code is one of `codes`."""
        command = [ACLTAPE, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240,
                              env={**acl_programs.environment(), **dict(env)})
        self.assertIn(done.returncode, codes,
                      f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
        return done

    def json(self, *words, **options):
        return json.loads(self.acltape(*words, "--format", "json", **options).stdout)

    def facts(self, rows):
        """Tables of two columns."""
        return {row[next(iter(row))].strip(): row["value"] for row in rows}


class Leaves(LeavesTest):
    def test_values_from_the_host_reach_inputs_that_lie_elsewhere_in_each_step(self):
        """Steps of four threads are alike, and each thread has buffers of its own."""
        trace = self.record(run_of("multi_stream_threads", "--threads"))
        # 1: the threads came in such an order that no step found has the calls of another.
        report = self.json("replay", trace, "--streams", "leaves", "--mode", "captured",
                           codes=(0, 1))
        summary = self.facts(report["summary"])
        self.assertEqual(summary["outputs different"], 0)

    def test_host_functions_are_left_out_with_a_note(self):
        trace = self.record(run_of("callbacks"))
        notes = self.json("replay", trace, "--streams", "leaves")["notes"]
        functions = [note for note in notes if note["rule"] == "REPLAY-LEFT-OUT"]
        self.assertGreater(len(functions), 0)
        self.assertGreater(sum(note["calls"] for note in functions), 0)

    def test_work_that_failed_is_refused_in_a_sentence(self):
        trace = self.record(run_of("error_handling"))
        refused = self.acltape("replay", trace, "--streams", "leaves", codes=(3,))
        self.assertIn("holds device work that failed with code 507011", refused.stderr)


class Commands(LeavesTest):
    """Two streams, a graph on two streams, an update of a task, copies and fills."""

    def setUp(self):
        super().setUp()
        if acl_programs.missing("mixed_work.cpp"):
            self.skipTest("the SDK has no task updates")
        self.trace = self.record(run_of("mixed_work"))
        self.plan_path = self.trace + ".plan.json"

    # A recording on a busy machine makes single calls slow, and so their capture. With that many
    # steps after it the cost of a capture has no part in what is planned.
    REPLAYS = ("--expected-replays", "1000000000")

    def plan(self, *options):
        """The printed tables and the file."""
        report = self.json("plan", self.trace, "-o", self.plan_path, *self.REPLAYS, *options)
        with open(self.plan_path) as file:
            return report, json.load(file)

    def call(self, op, nth=0):
        """The id of the nth call of an operator after the start of the first execution."""
        return self.scalar(self.trace, "SELECT call_id FROM call WHERE op = '%s' ORDER BY call_id "
                           "LIMIT 1 OFFSET %d" % (op, nth))

    def test_steps_are_those_of_the_program(self):
        report, plan = self.plan()
        figures = self.facts(report["plan"])
        self.assertEqual(figures["steps"], 6)
        self.assertEqual(figures["steps served"], 6)
        # Copy in, fill, three operators, three of the graph, copy, copy out.
        self.assertEqual(figures["calls of the step"], 10)
        self.assertEqual(plan["first_call"], self.call("aclrtMemcpyAsync"))

    def test_a_plan_captures_what_no_graph_of_the_program_holds_and_replays_bit_for_bit(self):
        for streams, options in ((1, ()), (2, ("--spread",))):
            with self.subTest(options=options):
                report, plan = self.plan("--streams", streams, *options)
                self.assertEqual([region["kind"] for region in plan["regions"]],
                                 ["captured", "captured", "eager", "eager"])
                self.assertEqual([region["reason"] for region in plan["regions"]][1:],
                                 ["captured already, by the program", "too short: 1 of at least 2 calls", "host read"])
                self.assertEqual([len(region["placements"]) for region in plan["regions"][:2]], [5, 3])
                figures = self.facts(report["plan"])
                self.assertEqual((figures["calls captured"], figures["calls captured already"]), (5, 3))
                self.assertEqual([update["argument"] for update in plan["updates"]], ["other"])
                self.assertEqual(plan["streams"], streams)
                replay = self.json("replay", self.trace, "--plan", self.plan_path)
                summary = self.facts(replay["summary"])
                self.assertEqual(summary["steps run captured"], 6)
                self.assertEqual(summary["updates made"], 5)
                self.assertEqual(summary["outputs different"], 0)
                self.assertEqual(summary["outputs without a reference"], 0)
                self.assertEqual(summary["outputs compared"], 6 * 9)

    def test_the_graph_of_the_program_and_its_eager_form_have_the_same_leaves(self):
        eager = self.json("plan", self.record(run_of("mixed_work", "--eager")), "-o",
                          self.trace + ".eager.json", *self.REPLAYS)
        captured, _ = self.plan()
        for figure in ("steps", "calls of the step", "calls captured", "argument updates per step"):
            self.assertEqual(self.facts(eager["plan"])[figure],
                             self.facts(captured["plan"])[figure], figure)

    def test_a_diff_aligns_what_graphs_hold_with_its_eager_form(self):
        eager = self.record(run_of("mixed_work", "--eager"))
        report = self.json("diff", eager, self.trace)
        summary = self.facts(report["summary"])
        self.assertEqual(summary["aligned"], 6 * 10)
        self.assertEqual((summary["inserted in B"], summary["deleted from A"]), (0, 0))
        # Six operators, the copy on the device and the one to the host; fills and other copies have no recorded result.
        self.assertEqual(summary["results equal"], 6 * 8)
        self.assertEqual(summary["results different"], 0)

    def test_a_later_execution_has_ids_of_its_own(self):
        _, plan = self.plan()
        placed = [place["call"] for place in plan["regions"][1]["placements"]]
        held = self.scalar(self.trace, "SELECT call_id FROM call WHERE op = 'aclnnAdds'")
        self.assertIn(held, placed)
        self.acltape("replay", self.trace, "--streams", "leaves", "--keep-matches")
        compared = self.scalar(self.trace, "SELECT group_concat(DISTINCT call_id) FROM comparison "
                               f"WHERE call_id % {EXECUTION} = {held}").split(",")
        self.assertEqual(sorted(map(int, compared)), [held + EXECUTION * k for k in range(6)])

    def test_compare_measures_eager_against_captured(self):
        self.plan()
        report = self.json("compare", self.trace, "--plan", self.plan_path, "--repetitions", "3")
        setting = self.facts(report["setting"])
        self.assertEqual(setting["steps of the captured kind"], 6)
        self.assertEqual(setting["device calls per step"], 8)

    def test_prove_tries_to_break_the_plan_and_fails(self):
        self.plan("--spread", "--streams", "2")
        summary = self.facts(self.json("prove", self.trace, "--plan", self.plan_path)["summary"])
        self.assertEqual(summary["trials failed"], 0)
        self.assertGreater(summary["outputs compared"], 100)
        self.assertIn("holds in", summary["verdict"])

    def test_bisect_names_the_call_of_each_planted_fault(self):
        _, plan = self.plan("--spread", "--streams", "2")
        operators = {call for call, in self.ask(
            self.trace, "SELECT call_id FROM call WHERE op LIKE 'aclnn%'")}
        # If operators were recorded as quicker than a wait, only a copy may be on another stream.
        joined = next((wait["wait_before"] for wait in plan["regions"][0]["waits"]
                       if {wait["record_after"], wait["wait_before"]} <= operators), None)
        product, scale = self.call("aclnnMul"), self.call("aclnnMuls", 2)
        added = joined or self.call("aclnnAdd", 1)
        for fault, call, cause in (("wrong_bits", added, "numeric"),
                                   ("low_bits", product, "numeric"),
                                   ("stale_input", added, "stale argument"),
                                   ("baked_scalar", scale, "stale argument"),
                                   ("missing_wait", joined, "ordering"),
                                   ("moved_address", product, "address")):
            if call is None:
                continue
            with self.subTest(fault=fault, call=call):
                report = self.json("bisect", self.trace, "--plan", self.plan_path, "--plant",
                                   f"{fault}@{call}", "--restart", codes=(1,))
                guesses = [row for row in report["found"] if row["first_guess"] == "yes"]
                self.assertEqual([row["class"] for row in guesses], [cause])
                self.assertIn(f"call {call} ", guesses[0]["what"])

    def test_regions_and_updates_are_bisected_too(self):
        self.plan()
        for what, fault in (("regions", f"wrong_bits@{self.call('aclnnMul')}"),
                            ("updates", f"baked_scalar@{self.call('aclnnMuls', 2)}")):
            with self.subTest(what=what):
                report = self.json("bisect", self.trace, "--plan", self.plan_path, "--what", what,
                                   "--plant", fault, "--restart", codes=(0, 1))
                self.assertIn("verdict", self.facts(report["summary"]))

    def test_an_experiment_takes_calls_by_number_and_step(self):
        self.plan()
        for calls in ("all", "none", str(self.call("aclnnAdds")), "step:2"):
            with self.subTest(calls=calls):
                report = self.json("experiment", self.trace, "--plan", self.plan_path,
                                   "--captured", calls)
                (table,) = [rows for rows in report.values() if rows] if isinstance(
                    report, dict) else (report,)
                facts = self.facts(table)
                self.assertEqual(facts["executions different"], 0)
                self.assertEqual(facts["calls captured"],
                                 {"all": 7, "none": 0, "step:2": 7}.get(calls, 1))

    def test_emit_shows_the_step_with_its_streams(self):
        self.plan()
        fx = self.json("emit", self.trace, self.plan_path, "--as", "fx")
        rows = fx if isinstance(fx, list) else next(iter(fx.values()))
        calls = [row for row in rows if row["opcode"] == "call_function"]
        self.assertEqual(len(calls), 10)
        self.assertEqual([row["region"] for row in calls], [0] * 5 + [1] * 3 + [2, 3])
        self.assertIn("digraph plan",
                      self.acltape("emit", self.trace, self.plan_path, "--as", "dot").stdout)
        resolved = json.loads(
            self.acltape("emit", self.trace, self.plan_path, "--as", "json").stdout)
        self.assertEqual(resolved["step"], 0)
        refused = self.acltape("emit", self.trace, self.plan_path, "--as", "torchair", codes=(2,))
        self.assertIn("aten level", refused.stderr)

    def test_a_step_is_exported_as_a_program_that_runs(self):
        folder = self.trace + ".export"
        self.acltape("export", self.trace, "--to", "cpp", "-o", folder, "--calls", "step:1")
        run = subprocess.run([os.path.join(folder, "repro")], capture_output=True, text=True,
                             timeout=60, cwd=folder)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("0 of 7 results differ", run.stdout)

    def trim(self, *options):
        """The printed facts, and the trimmed trace."""
        small = self.trace + ".trim.db"
        table = self.json("trim", self.trace, "-o", small, "--force", *options)
        rows = table if isinstance(table, list) else next(iter(table.values()))
        return self.facts(rows), small

    def test_trimmed_steps_are_replayed_planned_and_bisected(self):
        facts, small = self.trim("--calls", "step:1", "--steps", "2,3")
        self.assertEqual(facts["calls kept"], 3 * 10)
        self.assertEqual(facts["replayed"], "eager, captured")
        for options in ((), ("--streams", "leaves"), ("--mode", "captured")):
            with self.subTest(options=options):
                summary = self.facts(self.json("replay", small, *options)["summary"])
                self.assertEqual(summary["outputs different"], 0)
                self.assertGreaterEqual(summary["outputs equal"], 3 * 7)
        self.acltape("plan", small, "-o", self.plan_path, *self.REPLAYS)
        summary = self.facts(self.json("replay", small, "--plan", self.plan_path)["summary"])
        self.assertEqual(summary["steps run captured"], 3)
        self.assertEqual(summary["outputs compared"], 3 * 9)
        self.assertEqual(summary["outputs different"], 0)
        # The ninth call of the first step, which a graph held: it has an id of its own now.
        product = self.scalar(small, "SELECT min(call_id) FROM call WHERE op = 'aclnnMul'")
        report = self.json("bisect", small, "--plan", self.plan_path, "--plant",
                           f"wrong_bits@{product}", codes=(1,))
        self.assertIn(f"call {product} ", report["found"][0]["what"])

    def test_one_call_of_a_graph_is_trimmed_with_its_inputs_or_their_producers(self):
        held = self.scalar(self.trace, "SELECT call_id FROM call WHERE op = 'aclnnAdds'")
        alone, small = self.trim("--calls", held + 2 * EXECUTION)
        self.assertEqual((alone["calls kept"], alone["inputs stored for calls left out"]), (1, 1))
        self.assertEqual(self.scalar(small, "SELECT value FROM meta WHERE key = 'trimmed_ids'"),
                         f"[{held + 2 * EXECUTION}]")
        made, _ = self.trim("--calls", held + 2 * EXECUTION, "--with-producers", "2")
        # both = left + right: the three that make it, and the one input of the first two.
        self.assertEqual((made["calls kept"], made["inputs stored for calls left out"]), (4, 1))

    def test_what_is_not_given_at_this_level_ends_in_a_sentence(self):
        gears = self.acltape("gears", self.trace, codes=(2,))
        self.assertIn("no dimension varies", gears.stderr)


class MissingWait(LeavesTest):
    """A product on one stream and a sum on another that does not wait for it."""

    def record_seed(self, *options):
        return self.record(acl_programs.Run("seed_streams", "seed_streams.cpp",
                                            ("--missing-wait", *options)))

    def replays(self, trace, *options):
        """Differing outputs and added waits of replays with several orders of the streams."""
        outcomes = []
        for seed in range(1, 5):
            report = self.json("replay", trace, *options, codes=(0, 1),
                               env={"ACLTAPE_SOFT_JITTER": str(seed)}.items())
            summary = self.facts(report["summary"])
            outcomes.append((summary["outputs different"], summary.get("waits added by edits")))
        return outcomes

    def sum_and_product(self, trace):
        return [self.scalar(trace, f"SELECT min(call_id) FROM call WHERE op = '{op}'")
                for op in ("aclnnAdd", "aclnnMatmul")]

    def test_lint_names_both_calls_and_the_edit_mends_the_captured_program(self):
        trace = self.record_seed("--capture")
        added = self.sum_and_product(trace)[0]
        found = self.json("lint", trace, codes=(1,))["findings"]
        self.assertEqual([(row["rule"], row["call_id"]) for row in found], [("LINT-20", added)])
        self.assertRegex(found[0]["edit"], "record an event after aclnnMatmul at .*, on its stream, and let the stream "
                                           "of aclnnAdd at .* wait for it before that call")
        unedited = self.replays(trace)
        for edit in ("LINT-20", f"LINT-20@{added}", "all"):
            with self.subTest(edit=edit):
                mended = self.replays(trace, "--edit", edit)
                # None differ, unless the recorded executions themselves raced.
                self.assertEqual(mended, [(mended[0][0], 1)] * 4)
                self.assertTrue(any(row[0] != mended[0][0] for row in unedited), unedited)

    def test_the_edit_is_made_in_each_step_of_an_eager_program(self):
        for _ in range(5):  # on a loaded machine a recording can race in each step, as each replay then does
            trace = self.record_seed()
            unedited = self.replays(trace)
            mended = self.replays(trace, "--edit", "LINT-19")
            if any(row[0] != mended[0][0] for row in unedited):
                break
        else:
            self.fail(f"no replay differs from the edited one: {unedited}, {mended}")
        # The calls that still differ raced when they were recorded: the same in each order.
        self.assertEqual(mended, [(mended[0][0], 5)] * 4)
        self.assertEqual(self.replays(trace, "--edit", "LINT-19", "--mode", "captured"), mended)
        first = self.sum_and_product(trace)[0]
        report = self.json("replay", trace, "--edit", f"LINT-19@{first}", codes=(0, 1))
        self.assertEqual(self.facts(report["summary"])["waits added by edits"], 1)

    def test_streams_are_bisected_to_the_missing_wait(self):
        trace = self.record(run_of("seed_streams"))
        plan_path = trace + ".plan.json"
        operators = {call for call, in self.ask(
            trace, "SELECT call_id FROM call WHERE op LIKE 'aclnn%'")}
        for costs in (("--calibrate",), ("--no-results",)):
            self.json("plan", trace, "-o", plan_path, "--spread", "--streams", "2", *costs)
            with open(plan_path) as file:
                waits = json.load(file)["regions"][0]["waits"]
            if any({wait["record_after"], wait["wait_before"]} <= operators for wait in waits):
                break
        else:
            self.skipTest("measured and recorded costs both keep the operators on one stream")
        added = self.sum_and_product(trace)[0]
        report = self.json("bisect", trace, "--plan", plan_path, "--what", "streams", "--plant",
                           f"missing_wait@{added}", "--restart", codes=(1,))
        self.assertEqual([row["class"] for row in report["found"]], ["ordering"])
        self.assertIn(f"call {added} aclnnAdd does not wait for call",
                      self.facts(report["summary"])["evidence"])

    def test_an_edit_that_cannot_be_made_is_refused_in_a_sentence(self):
        trace = self.record_seed()
        for options, sentence in (
                (("--edit", "LINT-99"), "has no finding 'LINT-99'"),
                (("--edit", "all", "--streams", "leaves"), "--streams recorded"),
                (("--edit", "all", "--repetitions", "2"), "without a plan")):
            with self.subTest(options=options):
                refused = self.acltape("replay", trace, *options, codes=(2,))
                self.assertIn(sentence, refused.stderr)
        right = self.record(run_of("seed_streams"))
        refused = self.acltape("replay", right, "--edit", "all", codes=(2,))
        self.assertIn("has no finding 'all'", refused.stderr)


class PlantedMistakes(LeavesTest):
    """seed_streams.cpp with one line that is wrong: each command names that line."""

    SUB = "RUN_OP(main_, aclnnSub, tensors_[kSize], tensors_[kB], one_, tensors_[kDifference]);"
    SUB_BY = SUB.replace("one_", "MakeScalar(%s)")
    ADD = "RUN_OP(main_, aclnnAdd, tensors_[kDifference], tensors_[kProduct], one_, tensors_[kTotal]);"

    def planted(self, name, old="", new="", options=()):
        """The trace of the program with `new` in place of `old`, and the place of the line."""
        with open(os.path.join(acl_programs.FOLDER, "seed_streams.cpp")) as file:
            text = file.read()
        self.assertEqual(text.count(old or self.ADD), 1)
        source, binary = (os.path.join(self.folder, name + end) for end in (".cpp", ".bin"))
        with open(source, "w") as file:
            file.write(text.replace(old, new) if old else text)
        flags = ("-g", "-O2", "-I" + acl_programs.FOLDER)
        built = subprocess.run(acl_programs.build_line(source, binary, options=flags), capture_output=True,
                               text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        trace = os.path.join(self.folder, name + ".db")
        self.acltape("record", "--force", "--quiet", "--level", "acl", "--payload", "all", "-o", trace, "--",
                     binary, *options)
        wanted = new or self.ADD
        with open(source) as file:
            line, = (number for number, text in enumerate(file, 1) if wanted in text)
        # Names of files are shortened where they lie in the folder of the recording.
        return trace, f"{name}.cpp:{line} ("

    def assertNames(self, place, rows, **wanted):
        """A row with these cells has this place in its column `where`."""
        found = [row for row in rows if wanted.items() <= row.items() and place in (row["where"] or "")]
        self.assertTrue(found, (place, wanted, rows))

    def test_host_read_in_a_step(self):
        read = "CHECK_ACL(aclrtMemcpy(host_, 4, blocks_[kA], 4, ACL_MEMCPY_DEVICE_TO_HOST)); "
        trace, place = self.planted("read", self.SUB, read + self.SUB)
        self.assertNames(place, self.json("lint", trace, codes=(1,))["findings"], rule="LINT-03")
        regions = self.json("plan", trace, "-o", trace + ".json")["regions"]
        self.assertNames(place, regions, kind="eager", reason="host read")

    def test_number_that_varies_between_steps(self):
        trace, place = self.planted("rate", self.SUB, "static int uses = 0; " + self.SUB_BY % "++uses")
        self.assertNames(place, self.json("lint", trace, codes=(1,))["findings"], rule="LINT-14")
        self.assertNames(place, self.json("steps", trace)["arguments"], op="aclnnSub", argument="alpha",
                         kind="varying")

    def test_wrong_constant(self):
        right, place = self.planted("right", self.SUB, self.SUB_BY % 1)
        wrong, _ = self.planted("wrong", self.SUB, self.SUB_BY % 3)
        origins = self.json("diff", right, wrong, codes=(1,))["origins"]
        self.assertIn(place, origins[0]["where"])
        summary = self.facts(self.json("bisect", right, "--against", wrong, "--no-journal",
                                       codes=(1,))["summary"])
        self.assertIn(place, summary["where"])

    def test_race_of_two_streams(self):
        trace, place = self.planted("race", options=("--missing-wait",))
        rows = self.json("lint", trace, codes=(1,))["findings"]
        self.assertNames(place, rows, rule="LINT-19")


if __name__ == "__main__":
    unittest.main()
