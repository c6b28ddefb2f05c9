#!/usr/bin/env python3
"""acltape export --to perfetto and --to chrome: recorded programs as timelines of other tools.

What the files hold is read by timeline_files.py and compared with rows of the trace. Where a package
index is reached, the published definition of Perfetto's format reads them too.
"""
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import unittest

import timeline_files
from harness import SOURCE, TORCH_PYTHON, WORKLOADS, CommandTest, main

sys.path.insert(0, os.path.join(SOURCE, "tests", "programs"))
import acl_programs  # noqa: E402

HOSTILE = b'quote " backslash \\ newline \n null-ish \x01 bad \xff\xc0\xaf\xed\xa0\x80 end \xe2\x82'


class TimelineTest(CommandTest):
    def both(self, trace, *options):
        """The timeline in both formats, which must agree."""
        perfetto = os.path.join(self.folder, "t.perfetto-trace")
        chrome = os.path.join(self.folder, "t.json")
        self.acltape("export", trace, "--to", "perfetto", "--force", "-o", perfetto, *options)
        self.acltape("export", trace, "--to", "chrome", "--force", "-o", chrome, *options)
        one, other = timeline_files.Perfetto(perfetto), timeline_files.Chrome(chrome)
        shape = lambda t: [(s.name, s.category, s.begin, s.end, s.depth, s.arguments)
                           for s in t.slices]
        self.assertEqual(shape(one), shape(other))
        self.assertEqual(one.counters, other.counters)
        self.assertEqual(len(one.arrows), len(other.arrows))
        return one

    def ask(self, trace, query):
        connection = sqlite3.connect(trace)
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            rows = connection.execute(query).fetchall()
            connection.commit()
            return rows
        finally:
            connection.close()

    def copy(self, trace, name):
        path = os.path.join(self.folder, name)
        shutil.copy(trace, path)
        return path


class TorchTimeline(TimelineTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "mlp.db")
        program = [TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"), "--steps", "3"]
        cls("test_every_call_is_a_slice").record(cls.trace, *program, payload="none",
                                                 options=["--modules"])

    def test_every_call_is_a_slice(self):
        timeline = self.both(self.trace)
        calls = timeline.by_call()
        rows = self.ask(self.trace, "SELECT call_id, op, begin_ns, end_ns, leaf, step FROM call")
        self.assertEqual(len(calls), len(rows))
        for call_id, op, begin, end, leaf, step in rows:
            s = calls[call_id]
            self.assertEqual((s.name, s.begin, s.end), (op, begin, end))
            self.assertEqual(s.category == "leaf", leaf == 1)
            self.assertEqual(s.arguments.get("step"), step)

    def test_calls_lie_inside_the_calls_around_them(self):
        calls = self.both(self.trace).by_call()
        rows = self.ask(self.trace, "SELECT call_id, parent_id FROM call WHERE parent_id IS NOT NULL")
        self.assertGreater(len(rows), 50)
        for call_id, parent in rows:
            self.assertEqual(calls[call_id].track, calls[parent].track)
            self.assertGreater(calls[call_id].depth, calls[parent].depth)

    def test_shapes_and_modules_are_arguments(self):
        calls = self.both(self.trace).by_call()
        linear = next(s for s in calls.values() if s.name == "aten::addmm")
        dtype, shape = self.ask(self.trace, "SELECT dtype, shape FROM argument WHERE name = 'mat1' "
                                f"AND call_id = {linear.arguments['call_id']}")[0]
        self.assertIn(dtype + shape, linear.arguments["in"])
        self.assertTrue(linear.arguments["module"].startswith("Sequential/"), linear)

    def test_steps_ranges_and_modules_have_tracks_of_their_own(self):
        timeline = self.both(self.trace)
        steps = [s for s in timeline.slices if s.category == "step"]
        self.assertEqual([s.name for s in steps], ["step 0", "step 1", "step 2"])
        for s, (first, last) in zip(steps, self.ask(
                self.trace, "SELECT min(begin_ns), max(end_ns) FROM call WHERE step IS NOT NULL "
                            "GROUP BY step ORDER BY step")):
            self.assertEqual((s.begin, s.end), (first, last))
        ranges = [(s.name, s.begin, s.end) for s in timeline.slices
                  if s.category in ("user", "module")]
        self.assertEqual(sorted(ranges), sorted(self.ask(
            self.trace, "SELECT s.name, r.begin_ns, r.end_ns FROM scope_range r JOIN scope s USING "
                        "(scope_id)")))
        tracks = {timeline.tracks[s.track][1] for s in timeline.slices}
        self.assertEqual(tracks, {"steps", "ranges of python3", "python3"})

    def test_the_counter_ends_with_what_is_never_freed_and_has_the_peak_of_the_trace(self):
        counters = self.both(self.trace).counters
        values = [value for _, value in counters["bytes in use, host"]]
        left, = self.ask(self.trace, "SELECT ifnull(sum(bytes), 0) FROM buffer "
                                     "WHERE alloc_ns IS NOT NULL AND free_ns IS NULL")[0]
        peak, = self.ask(self.trace, """
            SELECT max(alive) FROM (SELECT sum(change) OVER (ORDER BY at, change) AS alive FROM (
              SELECT alloc_ns AS at, bytes AS change FROM buffer WHERE alloc_ns IS NOT NULL
              UNION ALL SELECT free_ns, -bytes FROM buffer WHERE free_ns IS NOT NULL))""")[0]
        self.assertEqual(values[-1], left)
        self.assertEqual(max(values), peak)

    def test_arrows_lead_from_leaves_to_their_backward_nodes(self):
        arrows = self.both(self.trace).arrows
        rows = self.ask(self.trace, "SELECT forward_call, call_id FROM call "
                                    "WHERE forward_call IS NOT NULL")
        self.assertGreater(len(rows), 20)
        self.assertEqual(sorted((a.arguments["call_id"], b.arguments["call_id"])
                                for a, b in arrows), sorted(rows))

    def test_a_selection_keeps_its_calls_and_what_lies_in_their_time(self):
        timeline = self.both(self.trace, "--calls", "step:1")
        rows = self.ask(self.trace, "SELECT call_id FROM call WHERE step = 1")
        self.assertEqual(sorted(timeline.by_call()), sorted(row[0] for row in rows))
        self.assertEqual([s.name for s in timeline.slices if s.category == "step"], ["step 1"])
        named = self.both(self.trace, "--calls", "step:1/op:aten::addmm")
        self.assertEqual({s.name for s in named.by_call().values()}, {"aten::addmm"})
        self.assertEqual(named.arrows, [])

    def test_work_of_the_device_has_a_track_per_stream_and_arrows_to_it(self):
        trace = self.copy(self.trace, "device.db")
        self.ask(trace, "INSERT INTO device_span SELECT call_id, 1 + call_id % 2, begin_ns + 500, "
                        "begin_ns + 600, 0 FROM call WHERE leaf ORDER BY call_id DESC")
        self.ask(trace, "INSERT INTO device_span SELECT call_id, 1, begin_ns + 700, begin_ns + 750, 0 "
                        "FROM call WHERE call_id = 1")
        timeline = self.both(trace)
        device = [s for s in timeline.slices if s.category == "device"]
        rows = self.ask(trace, "SELECT call_id, begin_ns, end_ns FROM device_span")
        self.assertEqual(sorted((s.arguments["call_id"], s.begin, s.end) for s in device),
                         sorted(rows))
        tracks = {timeline.tracks[s.track][1].split(" of ")[0] for s in device}
        self.assertLessEqual({"stream 1", "stream 2"}, tracks)
        launches = [(a, b) for a, b in timeline.arrows if b.category == "device"]
        self.assertEqual(len(launches), len(rows) - 1)  # one call has two pieces of work
        for host, work in launches:
            self.assertEqual(host.arguments["call_id"], work.arguments["call_id"])

    def test_places_in_the_source_are_arguments_where_the_trace_has_them(self):
        trace = self.copy(self.trace, "places.db")
        self.ask(trace, "DELETE FROM stack")
        self.ask(trace, "INSERT INTO stack SELECT call_id, json_array(json_object('file', 'model.py', 'line', "
                        "call_id + 100, 'function', 'forward')), 0 FROM call_row")
        self.ask(trace, "UPDATE call_row SET stack_id = call_id")
        self.ask(trace, "UPDATE call_extra SET forward_call = NULL, stack_id = NULL")
        for call_id, s in self.both(trace).by_call().items():
            self.assertEqual(s.arguments["source"], f"model.py:{call_id + 100} (forward)")

    def test_hostile_names_stay_valid_and_slices_that_overlap_get_a_track_each(self):
        trace = self.copy(self.trace, "hostile.db")
        connection = sqlite3.connect(trace)
        for statement in ("UPDATE op SET name = CAST(? AS TEXT) WHERE name = 'aten::addmm'",
                          "UPDATE scope SET name = CAST(? AS TEXT)",
                          "UPDATE thread SET name = CAST(? AS TEXT)",
                          "UPDATE process SET name = CAST(? AS TEXT)"):
            connection.execute(statement, (HOSTILE,))
        # One range begins inside another and ends after it.
        first, last = connection.execute("SELECT min(begin_ns), max(end_ns) FROM scope_range "
                                         "WHERE scope_id = 1").fetchone()
        connection.execute("INSERT INTO scope_range VALUES (1, 1, 1, 1, ?, ?)",
                           (first - 1000, first + 10))
        connection.commit()
        connection.close()
        timeline = self.both(trace)
        # Each byte that is part of no character is replaced on its own; Python replaces some together.
        name = ('quote " backslash \\ newline \n null-ish \x01 bad ' + "\ufffd" * 6 + " end " +
                "\ufffd" * 2)
        self.assertTrue(timeline.named(name))
        self.assertIn(name, [name for _, name, _ in timeline.tracks.values()])
        self.assertIn(f"ranges of {name} (overlapping 1)",
                      [name for _, name, _ in timeline.tracks.values()])

    def test_a_trace_without_rows_of_threads_and_processes_is_shown_all_the_same(self):
        trace = self.copy(self.trace, "bare.db")
        self.ask(trace, "DELETE FROM thread")
        self.ask(trace, "DELETE FROM process")
        self.assertEqual(len(self.both(trace).by_call()), len(self.both(self.trace).by_call()))

    def test_a_name_that_ends_in_gz_is_compressed(self):
        for form, reader, name in (("perfetto", timeline_files.Perfetto, "t.perfetto-trace.gz"),
                                   ("chrome", timeline_files.Chrome, "t.json.gz")):
            path = self.path(name)
            self.acltape("export", self.trace, "--to", form, "-o", path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(2), b"\x1f\x8b")
            self.assertEqual(len(reader(path).by_call()),
                             self.ask(self.trace, "SELECT count(*) FROM call")[0][0])

    def test_what_does_not_fit_is_refused_in_a_sentence(self):
        out = self.path("refused.json")
        refuse = lambda *words, code=2: self.acltape("export", self.trace, *words, code=code)
        self.assertSentence(refuse("--to", "cpp", "-o", out), "--calls")
        self.assertSentence(refuse("-o", out), "--calls")
        for options in (["--plant", "wrong_bits@8"], ["--captured", "8"], ["--runs", "2"],
                        ["--no-trace"], ["--plan", "p.json"], ["--level", "aten"],
                        ["--watch", "every"], ["--run-steps", "1,2"]):
            self.assertSentence(refuse("--to", "chrome", "-o", out, *options), options[0],
                                "--to cpp alone")
        self.assertSentence(refuse("--to", "chrome", "-o", out, "--calls", "op:none"), "picks no call")
        self.assertSentence(refuse("--to", "chrome", "-o", out, "--calls", "step:a"), "selection")
        self.assertSentence(refuse("--to", "json", "-o", out), "json")
        self.assertSentence(refuse("--to", "chrome", "-o", self.trace, "--force"), "the trace itself")
        self.assertSentence(refuse("--to", "chrome", "-o", self.folder), "is a folder")
        self.assertSentence(refuse("--to", "chrome", "-o", self.path("no/where.json"), code=4),
                            "cannot be written")
        self.assertFalse(os.path.exists(out))
        refuse("--to", "chrome", "-o", out, code=0)
        self.assertSentence(refuse("--to", "chrome", "-o", out), "--force")

    def test_options_of_output_are_taken_and_the_viewer_is_named(self):
        path = self.path("viewed.perfetto-trace")
        said = self.acltape("export", self.trace, "--to", "perfetto", "-o", path, "--wide", "--color", "never",
                            "--no-pager", code=0)
        self.assertIn(f"next: open {path} at https://ui.perfetto.dev", said.err)

    def test_calls_are_picked_by_their_line(self):
        file, line = self.ask(self.trace, "SELECT file, line FROM call_location JOIN call USING (call_id) "
                                          "WHERE leaf GROUP BY 1, 2 ORDER BY count(*) DESC LIMIT 1")[0]
        calls = {call for call, in self.ask(
            self.trace, f"SELECT call_id FROM call_location WHERE file = '{file}' AND line = {line}")}
        shown = self.both(self.trace, "--calls", f"line:{os.path.basename(file)}:{line}").by_call()
        self.assertEqual(set(shown), calls)

    def test_a_full_disk_is_said_and_leaves_no_file(self):
        def full():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        before = os.listdir(self.folder)
        for name in ("full.json", "full.json.gz"):
            said = self.acltape("export", self.trace, "--to", "perfetto", "-o", self.path(name), code=4,
                                preexec_fn=full)
            self.assertSentence(said, "cannot write", "File too large")
            self.assertEqual(os.listdir(self.folder), before)


class ProcessTimeline(TimelineTest):
    def test_each_process_has_its_own_tracks_and_one_can_be_chosen(self):
        trace = self.path("processes.db")
        program = self.script("""
import os, threading, torch
def work():
    for _ in range(5):
        torch.ones(4) + 1
child = os.fork()
if child == 0:
    work()
    os._exit(0)
thread = threading.Thread(target=work)
thread.start()
thread.join()
os.waitpid(child, 0)
""")
        self.record(trace, TORCH_PYTHON, program, payload="none")
        threads = self.ask(trace, "SELECT thread_id, process_id, count(*) FROM call JOIN thread "
                                  "USING (thread_id) GROUP BY thread_id")
        self.assertEqual(len({process for _, process, _ in threads}), 2)
        timeline = self.both(trace)
        tracks = {}
        for s in timeline.by_call().values():
            tracks[s.track] = tracks.get(s.track, 0) + 1
        self.assertEqual(sorted(tracks.values()), sorted(count for _, _, count in threads))
        parents = {timeline.tracks[track][2] for track in tracks}
        self.assertEqual({timeline.tracks[parent][0] for parent in parents}, {"process"})
        self.assertEqual(len(parents), 2)
        for process in (1, 2):
            self.assertEqual(
                len(self.both(trace, "--process", str(process)).by_call()),
                sum(count for _, owner, count in threads if owner == process))
        self.assertSentence(self.acltape("export", trace, "--to", "chrome", "--process", "9", "-o",
                                         self.path("no.json"), code=2), "9")


class AclTimeline(TimelineTest):
    def test_arrows_lead_from_records_of_events_to_waits(self):
        binary, trace = self.path("multi_stream"), self.path("acl.db")
        built = subprocess.run(acl_programs.build_line("multi_stream.cpp", binary),
                               capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        self.acltape("record", "--force", "--level", "acl", "-o", trace, "--", binary, "--threads",
                     env=acl_programs.environment())
        timeline = self.both(trace)
        calls = timeline.by_call()
        self.assertEqual(len(calls), self.ask(trace, "SELECT count(*) FROM call")[0][0])
        waits = self.ask(trace, """
            SELECT w.call_id, max(r.call_id) FROM call w
            JOIN argument we ON we.call_id = w.call_id AND we.name = 'event'
            JOIN call r ON r.op = 'aclrtRecordEvent' AND r.call_id < w.call_id
            JOIN argument re ON re.call_id = r.call_id AND re.name = 'event'
              AND re.integer = we.integer
            WHERE w.op = 'aclrtStreamWaitEvent' GROUP BY w.call_id""")
        self.assertGreater(len(waits), 0)
        self.assertEqual(sorted((b.arguments["call_id"], a.arguments["call_id"])
                                for a, b in timeline.arrows), sorted(waits))
        self.assertIn("stream", next(s for s in calls.values()
                                     if s.name.startswith("aclnn")).arguments)


class PublishedDefinition(TimelineTest):
    """The package `perfetto` holds the project's own definition of the format."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        environment = os.path.join(cls.folder, "environment")
        try:
            subprocess.run([sys.executable, "-m", "venv", environment], check=True,
                           capture_output=True, timeout=120)
            subprocess.run([os.path.join(environment, "bin", "pip"), "install", "-q", "--timeout",
                            "10", "--retries", "0", "perfetto"], check=True, capture_output=True,
                           timeout=180)
        except (subprocess.SubprocessError, OSError) as error:
            raise unittest.SkipTest("no package index is reached that has the package perfetto") from error
        cls.python = os.path.join(environment, "bin", "python")

    def read(self, program, *words):
        done = subprocess.run([self.python, "-c", program, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_table_of_fields_has_the_numbers_of_the_definition(self):
        table = timeline_files.declared_fields()
        self.assertGreater(sum(map(len, table.values())), 40)
        self.read("""
import sys, perfetto.protos.perfetto.trace.perfetto_trace_pb2 as pb
for message, fields in eval(sys.argv[1]).items():
    message = pb.ClockSnapshot.Clock if message == "Clock" else getattr(pb, message)
    for name, number in fields.items():
        assert message.DESCRIPTOR.fields_by_name[name].number == number, (message, name, number)
assert pb.TrackEvent.TYPE_SLICE_BEGIN == 1 and pb.TrackEvent.TYPE_SLICE_END == 2
assert pb.TrackEvent.TYPE_COUNTER == 4 and pb.CounterDescriptor.UNIT_SIZE_BYTES == 3
assert pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED == 1
assert pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE == 2 and pb.TrackDescriptor.EXPLICIT == 3
assert pb.BUILTIN_CLOCK_MONOTONIC == 3 and pb.BUILTIN_CLOCK_REALTIME == 1
""", repr(table))

    def test_the_definition_reads_every_packet_and_knows_every_field(self):
        trace, path = self.path("mlp.db"), self.path("mlp.perfetto-trace")
        self.record(trace, TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"), "--steps", "2",
                    payload="none", options=["--modules"])
        self.acltape("export", trace, "--to", "perfetto", "-o", path)
        counts = self.read("""
import sys, perfetto.protos.perfetto.trace.perfetto_trace_pb2 as pb
data = open(sys.argv[1], "rb").read()
trace = pb.Trace.FromString(data)
same = trace.SerializeToString()
trace.DiscardUnknownFields()
assert trace.SerializeToString() == same, "fields that the definition does not know"
assert len(same) == len(data)
print(len(trace.packet), sum(p.track_event.type == 1 for p in trace.packet if p.HasField("track_event")))
""", path).split()
        timeline = timeline_files.Perfetto(path)
        self.assertEqual([int(count) for count in counts], [timeline.packets, len(timeline.slices)])


if __name__ == "__main__":
    main()
