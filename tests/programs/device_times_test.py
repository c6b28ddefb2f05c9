#!/usr/bin/env python3
"""record --device-times: when the device did the work of each call. The programs of this folder do
the same with and without it. The environment is that of recorded_test.py.
"""
import json
import subprocess
import unittest

import acl_programs
import recorded_test
from acl_programs import RUNS, Run
from recorded_test import ACLTAPE, run_of

# Calls that put work on a stream, outside of captures, and no call of which two threads share a
# stream.
WORK = ("SELECT c.call_id, c.op, c.stream_id, c.begin_ns, c.end_ns FROM call c WHERE c.status = 0 AND "
        "c.model_id IS NULL AND (c.op GLOB 'aclnn*' OR c.op IN ('aclrtMemcpyAsync', "
        "'aclrtMemsetAsync', 'aclmdlRIExecuteAsync')) ORDER BY c.call_id")
MISSING = ("SELECT subject, sum(count) FROM ledger WHERE kind = 'device_time_missing' "
           "GROUP BY subject")


class DeviceTimesTest(recorded_test.RecordedTest):
    def timed(self, run, payload="none", **more):
        return self.record(run, payload, options=("--device-times",), **more)

    def acltape(self, *words):
        done = subprocess.run([ACLTAPE, *words], capture_output=True, text=True, timeout=120,
                              env=acl_programs.environment())
        self.assertEqual(done.returncode, 0, f"$ acltape {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def spans(self, trace):
        """(begin, end, error, stream) by call."""
        rows = self.ask(trace, "SELECT call_id, begin_ns, end_ns, error_ns, stream_id FROM device_span")
        self.assertEqual(len({row[0] for row in rows}), len(rows), "a call has two spans")
        return {row[0]: row[1:] for row in rows}


class Times(DeviceTimesTest):
    def test_each_call_has_one_span_within_its_begin_and_the_next_wait(self):
        for name, options in (("multi_stream", ()), ("mixed_work", ("--eager",)), ("workload", ()),
                              ("workload", ("--capture",)), ("capture_fork_join", ())):
            with self.subTest(name=name, options=options):
                trace = self.timed(run_of(name, *options))
                self.assertEqual(self.ask(trace, MISSING), [])
                work, spans = self.ask(trace, WORK), self.spans(trace)
                self.assertGreater(len(work), 8)
                self.assertEqual(sorted(spans), [row[0] for row in work])
                waits = self.ask(trace, "SELECT call_id, end_ns FROM call WHERE op = "
                                        "'aclrtSynchronizeDevice' OR op = 'aclrtSynchronizeStream' "
                                        "OR op = 'aclrtSynchronizeEvent' ORDER BY call_id")
                for call, op, stream, begin, _ in work:
                    first, last, error, on = spans[call]
                    self.assertEqual(on, stream, op)
                    self.assertGreaterEqual(first, begin, op)
                    self.assertGreaterEqual(last, first, op)
                    # Every round of these programs ends with a wait for all that it began.
                    wait = next(end for waiting, end in waits if waiting > call)
                    self.assertLessEqual(last - error, wait, f"{op}, call {call}")

    def test_spans_of_a_stream_do_not_overlap(self):
        threads = next(run for run in RUNS if run.name == "multi_stream_threads")
        for run in (threads, run_of("task_queue"), run_of("seed_streams")):
            with self.subTest(name=run.name):
                trace = self.timed(run)
                overlaps = self.scalar(trace, """
                    SELECT count(*) FROM (SELECT begin_ns - max(end_ns) OVER (PARTITION BY stream_id
                      ORDER BY begin_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS gap
                      FROM device_span) WHERE gap < 0""")
                self.assertEqual(overlaps, 0)
                self.assertGreater(len(self.spans(trace)), 10)

    def test_the_duration_is_that_of_the_work(self):
        # The soft device delays each aclnnAdd by 20 ms.
        run = run_of("single_op")
        trace = self.timed(run._replace(environment={"ACLTAPE_SOFT_FAULTS": "aclnnAdd delay=20ms"}))
        rows = self.ask(trace, "SELECT c.op, d.end_ns - d.begin_ns, c.duration_ns FROM device_span d "
                               "JOIN call c USING (call_id) WHERE c.op = 'aclnnAdd'")
        self.assertEqual(len(rows), 1)
        self.assertGreaterEqual(rows[0][1], 20e6)
        top = json.loads(self.acltape("query", trace, "top_ops", "--format", "json"))
        add, = [row for row in top if row["op"] == "aclnnAdd"]
        self.assertEqual(add["device_ns"], rows[0][1])
        device = json.loads(self.acltape("query", trace, "top_device_ops", "--format", "json"))
        self.assertEqual(device[0]["op"], "aclnnAdd")

    def test_an_executed_graph_has_one_span_and_is_captured_as_without(self):
        graph = ("SELECT op, model_id IS NULL, status, count(*) FROM call WHERE op NOT GLOB "
                 "'aclrtSynchronize*' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3")
        results = ("SELECT op, position, moment, digest FROM snapshot JOIN call USING (call_id) "
                   "ORDER BY call_id, position, moment")
        for name, options in (("capture_fork_join", ()), ("workload", ("--capture",)),
                              ("task_update", ()), ("mixed_work", ())):
            with self.subTest(name=name):
                run = run_of(name, *options)
                bare, timed = self.record(run), self.timed(run, payload="all")
                self.assertEqual(self.ask(timed, graph), self.ask(bare, graph))
                self.assertEqual(self.ask(timed, results), self.ask(bare, results))
                executed = self.ask(timed, "SELECT call_id FROM call WHERE op = 'aclmdlRIExecuteAsync' "
                                           "AND status = 0")
                spans = self.spans(timed)
                self.assertGreater(len(executed), 0)
                for call, in executed:
                    self.assertIn(call, spans)
                captured = self.ask(timed, "SELECT call_id FROM call WHERE model_id IS NOT NULL")
                self.assertTrue(captured)
                self.assertFalse(set(spans) & {row[0] for row in captured})

    def test_a_busy_device_and_what_made_it_wait(self):
        trace = self.timed(run_of("workload"))
        use = json.loads(self.acltape("query", trace, "device_idle", "--format", "json"))
        device, stream = use
        self.assertIsNone(device["stream_id"])
        self.assertEqual(device["tasks"], len(self.spans(trace)))
        # One stream: it is busy when the device is.
        for column in ("tasks", "busy_ns", "idle_ns"):
            self.assertEqual(device[column], stream[column], column)
        self.assertEqual(device["busy_ns"],
                         self.scalar(trace, "SELECT sum(end_ns - begin_ns) FROM device_span"))
        self.assertEqual(device["busy_ns"] + device["idle_ns"],
                         self.scalar(trace, "SELECT max(end_ns) - min(begin_ns) FROM device_span"))
        gaps = json.loads(self.acltape("query", trace, "device_gaps", "--format", "json"))
        self.assertEqual(gaps[0]["idle_ns"], device["longest_idle_ns"])
        self.assertIn("workload", gaps[0]["where"])
        # Between two steps the host fills its buffer, for which nothing of the device is needed.
        late = [gap for gap in gaps if gap["cause"] == "the host was late"]
        self.assertIn("aclrtMemcpyAsync", {gap["op"] for gap in late})
        self.assertIn("device busy", self.acltape("info", trace))
        self.assertIn("device busy", self.acltape("steps", trace))

    def test_the_timeline_and_the_page_show_the_spans_beside_their_calls(self):
        trace = self.timed(run_of("multi_stream"))
        spans = self.spans(trace)
        self.acltape("export", trace, "--to", "chrome", "-o", trace + ".json")
        with open(trace + ".json", encoding="utf-8") as file:
            begins = [event for event in json.load(file)["traceEvents"] if event["ph"] == "B"]
        work = {event["args"]["call_id"]: event for event in begins if event.get("cat") == "device"}
        calls = {event["args"]["call_id"]: event for event in begins
                 if event.get("cat") != "device" and "call_id" in event.get("args", {})}
        self.assertEqual(set(work), set(spans))
        self.assertEqual(len({event["tid"] for event in work.values()}), 3)  # streams
        for call, (begin, _, _, _) in spans.items():
            called = self.scalar(trace, "SELECT begin_ns FROM call WHERE call_id = ?", call)
            self.assertAlmostEqual(work[call]["ts"] - calls[call]["ts"], (begin - called) / 1e3,
                                   delta=0.002)
        self.acltape("report", trace, "-o", trace + ".html")

    def test_a_plan_takes_the_costs_of_the_device_from_the_trace(self):
        # Products that take far longer on the device than to launch.
        run = run_of("workload")._replace(
            environment={"ACLTAPE_SOFT_FAULTS": "aclnnMatmul delay=3ms"})
        makespans = {}
        for name, options in (("without", ()), ("with", ("--device-times",))):
            trace = self.record(run, "inputs", options=options)
            summary = json.loads(self.acltape("plan", trace, "-o", f"{self.folder}/{name}.json", "--format",
                                              "json"))["plan"]
            rows = {row["figure"]: row["value"] for row in summary}
            makespans[name] = rows["makespan of the graphs"]
            if options:
                self.assertRegex(rows["costs"], "^recorded, with the device's own times of [0-9]+ of")
            else:
                self.assertEqual(rows["costs"], "recorded")
        # Seven products follow each other in a step.
        self.assertGreater(makespans["with"], 15e6)
        self.assertLess(makespans["without"], 15e6)

    def test_copies_of_the_trace_keep_the_spans(self):
        trace = self.timed(run_of("workload"), payload="all")
        spans = len(self.spans(trace))
        for command, options in (("redact", ()), ("trim", ("--calls", "step:2"))):
            copy = f"{trace}.{command}.db"
            self.acltape(command, trace, "-o", copy, *options)
            kept = self.spans(copy)
            if command == "redact":
                self.assertEqual(kept, self.spans(trace))
                continue
            self.assertGreater(len(kept), 5)
            self.assertLess(len(kept), spans)
            for call, (begin, _, _, _) in kept.items():
                self.assertGreaterEqual(begin, self.scalar(
                    copy, "SELECT begin_ns FROM call WHERE call_id = ?", call))


class Unchanged(DeviceTimesTest):
    def test_every_program_prints_the_same(self):
        for run in RUNS:
            if acl_programs.missing(run.source):
                continue
            with self.subTest(run=run.name, options=run.options):
                self.timed(run, payload="inputs")

    def test_it_is_off_unless_asked_for(self):
        # The program uses no event of its own, so each fault would be the recorder's.
        faults = "aclrtCreateEventExWithFlag return=207007; aclrtRecordEvent return=507015"
        run = run_of("single_op")._replace(environment={"ACLTAPE_SOFT_FAULTS": faults})
        trace = self.record(run, "none")
        self.assertEqual(self.scalar(trace, "SELECT count(*) FROM device_span"), 0)
        self.assertEqual(self.ask(trace, MISSING), [])
        self.assertEqual(self.ask(self.timed(run), MISSING), [("events", 3)])

    def test_the_level_of_pytorch_alone_has_no_work_of_streams(self):
        done = subprocess.run([ACLTAPE, "record", "--level", "aten", "--device-times", "--", "true"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--device-times needs the ACL level", done.stderr)

    def test_refused_events_cost_spans_and_leave_no_error_behind(self):
        # error_handling asks for the thread's last error and message all the time.
        for fault, subject in (("aclrtRecordEvent return=507015", "refused events"),
                               ("aclrtCreateEventExWithFlag return=207007", "events"),
                               ("aclrtEventGetTimestamp return=507015", "refused events")):
            with self.subTest(fault=fault):
                run = run_of("single_op")._replace(environment={"ACLTAPE_SOFT_FAULTS": fault})
                trace = self.timed(run)
                self.assertEqual(self.spans(trace), {})
                self.assertIn(subject, dict(self.ask(trace, MISSING)))
                run = run_of("error_handling")
                self.timed(run._replace(environment={**run.environment, "ACLTAPE_SOFT_FAULTS":
                                                     "aclrtEventGetTimestamp return=507015"}))

    def test_streams_and_devices_may_end_before_their_work(self):
        trace = self.timed(Run("unfinished_work", "unfinished_work.cpp"))
        missing = dict(self.ask(trace, MISSING))
        known = {"unfinished work", "threads on one stream", "refused events", "events"}
        self.assertLessEqual(set(missing), known)
        # Each fill is a span or is counted.
        fills = self.scalar(trace, "SELECT count(*) FROM call WHERE op = 'aclrtMemsetAsync' AND status = 0")
        self.assertEqual(len(self.spans(trace)) + sum(missing.values()), fills)

    def test_a_replay_does_not_see_the_events(self):
        for name in ("multi_stream", "capture_fork_join"):
            trace = self.timed(run_of(name), payload="all")
            for mode in ("eager", "captured"):
                summary = json.loads(self.acltape("replay", trace, "--mode", mode, "--streams",
                                                  "recorded", "--format", "json"))["summary"]
                rows = {row["quantity"]: row["value"] for row in summary}
                self.assertGreater(rows["outputs equal"], 0)
                self.assertEqual(rows["outputs different"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
