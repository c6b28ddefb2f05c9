#!/usr/bin/env python3
"""ACL programs that know nothing of acltape are recorded at the ACL level: they print what they print
without, and the trace answers which stream, event and capture each call belongs to.

ACLTAPE_BINARY names acltape; the rest is as in acl_programs.py. Traces of failed tests are kept.
"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import acl_programs
from acl_programs import RUNS

ACLTAPE = os.environ.get("ACLTAPE_BINARY", os.path.join(acl_programs.SOURCE, "build", "bin", "acltape"))


class RecordedTest(unittest.TestCase):
    maxDiff = None
    binaries = {}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="acltape_recorded_programs_")
        cls.binaries = {}
        cls.alone = {}
        cls.failed = False

    @classmethod
    def tearDownClass(cls):
        if cls.failed:
            print("traces kept in", cls.folder)
        else:
            shutil.rmtree(cls.folder, ignore_errors=True)

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            type(self).failed = True

    def build(self, source, dlopen=False):
        lacking = acl_programs.missing(source)
        if lacking:
            self.skipTest(f"{source}: the SDK does not export {', '.join(lacking)}")
        binary = os.path.join(self.folder, source + (".dl" if dlopen else ".bin"))
        if binary not in self.binaries:
            done = subprocess.run(acl_programs.build_line(source, binary, dlopen=dlopen),
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.binaries[binary] = True
        return binary

    def run_alone(self, binary, run, timeout=120):
        """The finished program without acltape; it is started once, since it prints the same in each run."""
        key = (binary, run.options, tuple(sorted(run.environment.items())))
        if key not in self.alone:
            self.alone[key] = subprocess.run([binary, *run.options], capture_output=True, text=True, timeout=timeout,
                                             env=acl_programs.environment(run.environment))
        return self.alone[key]

    def record(self, run, payload="all", dlopen=False, level="acl", options=()):
        """The trace; the program printed and returned the same without recording."""
        binary = self.build(run.source, dlopen)
        environment = acl_programs.environment(run.environment)
        bare = self.run_alone(binary, run)
        trace = os.path.join(self.folder, f"{self.id().split('.')[-1]}_{run.name}_{payload}.db")
        command = [ACLTAPE, "record", "--force", "--quiet", "--level", level, "--payload", payload,
                   "-o", trace, *options, "--", binary, *run.options]
        recorded = subprocess.run(command, capture_output=True, text=True, env=environment,
                                  timeout=120)
        evidence = f"\n$ {' '.join(command)}\n{recorded.stderr}"
        self.assertEqual(recorded.stdout, bare.stdout, evidence)
        self.assertEqual(recorded.returncode, bare.returncode, evidence)
        return trace

    def ask(self, trace, query, *values):
        connection = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    def processes(self, trace):
        """The options that pick each process of the trace: none where there is one process."""
        rows = self.ask(trace, "SELECT DISTINCT process_id FROM thread WHERE thread_id IN "
                               "(SELECT thread_id FROM call_row)")
        return [("--process", str(process)) for process, in rows] if len(rows) > 1 else [()]

    def scalar(self, trace, query, *values):
        return self.ask(trace, query, *values)[0][0]


def run_of(name, *options):
    return next(run for run in RUNS if run.name == name and run.options == options)


class Unchanged(RecordedTest):
    """At every payload policy, linked and by dlopen. replayed_test.py records every program."""

    def test_every_policy_leaves_the_program_alone(self):
        for payload in ("none", "digest", "inputs"):
            for name in ("multi_stream", "capture_fork_join"):
                with self.subTest(payload=payload, name=name):
                    trace = self.record(run_of(name), payload)
                    kept = self.scalar(trace, "SELECT count(*) FROM snapshot")
                    self.assertEqual(kept == 0, payload == "none")

    def test_dlopen_gives_the_same_calls_as_linking(self):
        query = "SELECT op, count(*), group_concat(DISTINCT status) FROM call GROUP BY op ORDER BY op"
        for name in ("single_op", "capture_fork_join"):
            with self.subTest(name=name):
                linked = self.record(run_of(name))
                opened = self.record(run_of(name), dlopen=True, payload="inputs")
                self.assertEqual(self.ask(linked, query), self.ask(opened, query))


class Calls(RecordedTest):
    def test_an_operator_has_both_phases_arguments_and_stream(self):
        trace = self.record(run_of("single_op"))
        rows = self.ask(trace, "SELECT call_id, prepare_ns, launch_ns, stream_id, leaf, status "
                               "FROM call WHERE op = 'aclnnAdd'")
        self.assertEqual(len(rows), 1)
        call, prepare, launch, stream, leaf, status = rows[0]
        self.assertGreater(prepare, 0)
        self.assertGreater(launch, 0)
        self.assertEqual((leaf, status), (1, 0))
        created = self.scalar(trace, "SELECT op FROM call WHERE call_id = "
                                     "(SELECT create_call FROM stream WHERE stream_id = ?)", stream)
        self.assertEqual(created, "aclrtCreateStream")
        arguments = self.ask(trace, "SELECT name, direction, kind, real, dtype, shape FROM argument "
                                    "WHERE call_id = ? ORDER BY position", call)
        self.assertEqual([row[:3] for row in arguments],
                         [("self", "in", "tensor"), ("other", "in", "tensor"),
                          ("alpha", "in", "scalar"), ("out", "out", "tensor"),
                          ("workspace", "out", "none")])
        self.assertEqual(arguments[2][3], 1.5)
        self.assertEqual({row[4] for row in arguments if row[2] == "tensor"}, {"float32"})

    def test_repeated_launches_name_the_memory_that_they_use(self):
        trace = self.record(run_of("repeated_executor"))
        adds = self.ask(trace, """
            SELECT c.prepare_ns IS NULL, s.buffer_id, o.buffer_id FROM call c
            JOIN argument s ON s.call_id = c.call_id AND s.name = 'self'
            JOIN argument o ON o.call_id = c.call_id AND o.name = 'out'
            JOIN thread t ON t.thread_id = c.thread_id
            WHERE c.op = 'aclnnAdd' AND t.process_id = 1 ORDER BY c.call_id""")
        self.assertEqual(len(adds), 3)
        # The first phase was made once; then the input moves, then the output.
        self.assertEqual([row[0] for row in adds], [0, 1, 1])
        self.assertNotEqual(adds[0][1], adds[1][1])
        self.assertEqual(adds[0][2], adds[1][2])
        self.assertEqual(adds[1][1], adds[2][1])
        self.assertNotEqual(adds[1][2], adds[2][2])
        lists = self.ask(trace, "SELECT json_group_array(u.buffer_id) FROM tensor_use u "
                                "JOIN call c USING (call_id) JOIN thread t USING (thread_id) "
                                "WHERE c.op = 'aclnnCat' AND u.direction = 'in' AND t.process_id = 1 "
                                "GROUP BY c.call_id ORDER BY c.call_id")
        self.assertEqual(len(lists), 2)
        self.assertNotEqual(lists[0], lists[1])

    def test_a_forked_child_is_a_process_of_its_own(self):
        trace = self.record(run_of("repeated_executor"))
        processes = self.ask(trace, "SELECT process_id, count(*) FROM call JOIN thread USING (thread_id) "
                                    "GROUP BY process_id")
        self.assertEqual(len(processes), 2)
        self.assertEqual(processes[0][1], processes[1][1])
        shared = self.ask(trace, "SELECT u.buffer_id FROM tensor_use u JOIN call c USING (call_id) "
                                 "JOIN thread t USING (thread_id) WHERE u.buffer_id > 0 "
                                 "GROUP BY u.buffer_id HAVING count(DISTINCT process_id) > 1")
        self.assertEqual(shared, [])

    def test_memory_is_named_by_the_block_around_it_and_its_life_is_known(self):
        trace = self.record(run_of("single_op"))
        rows = self.ask(trace, "SELECT a.op, f.op, b.device, b.bytes FROM buffer b "
                               "JOIN call a ON a.call_id = b.alloc_call "
                               "JOIN call f ON f.call_id = b.free_call")
        self.assertEqual(len(rows), self.scalar(trace, "SELECT count(*) FROM buffer"))
        self.assertEqual({row[:3] for row in rows}, {("aclrtMalloc", "aclrtFree", 1)})
        # All bytes that an operator reads were written by a copy before it.
        unexplained = self.ask(trace, """
            SELECT u.call_id FROM tensor_use u JOIN call c USING (call_id)
            WHERE c.leaf = 1 AND u.direction = 'in' AND NOT EXISTS (
              SELECT 1 FROM tensor_use w WHERE w.buffer_id = u.buffer_id
                AND w.call_id < u.call_id AND w.direction <> 'in')""")
        self.assertEqual(unexplained, [])

    def test_sub_allocated_blocks_are_byte_ranges_of_one_buffer(self):
        trace = self.record(run_of("workload"))
        device = self.ask(trace, "SELECT buffer_id FROM buffer WHERE device = 1")
        self.assertEqual(len(device), 1)
        offsets = self.scalar(trace, "SELECT count(DISTINCT byte_offset) FROM tensor "
                                     "WHERE buffer_id = ?", device[0][0])
        self.assertGreater(offsets, 4)

    def test_the_graph_tells_the_parts_of_a_block_apart(self):
        trace = self.record(run_of("workload"))
        text = subprocess.run([ACLTAPE, "graph", trace, "--format", "json"], check=True,
                              capture_output=True, text=True).stdout
        nodes = json.loads(text)
        calls = [node for node in nodes if node["opcode"] == "call_function"][:4]
        self.assertEqual([(node["name"], node["args"]) for node in calls],
                         [("aclnnMatmul", "input_1, input_2, 0"),
                          ("aclnnMatmul_1", "aclnnMatmul, input_3, 0"),
                          ("aclnnSoftmax", "aclnnMatmul_1, 1"),
                          ("aclnnMatmul_2", "aclnnSoftmax, input_4, 0")])

    def test_host_bytes_of_a_copy_are_the_ones_that_arrive(self):
        trace = self.record(run_of("single_op"))
        copies = self.ask(trace, """
            SELECT h.digest, o.digest FROM snapshot o JOIN call c ON c.call_id = o.call_id
            JOIN argument a ON a.call_id = c.call_id AND a.name = 'out'
            JOIN argument s ON s.buffer_id = a.buffer_id AND s.name = 'src'
            JOIN snapshot h ON h.call_id = s.call_id AND h.moment = 'after'
            WHERE c.leaf = 1 AND o.moment = 'after' AND o.position = a.position""")
        self.assertEqual(len(copies), 3)
        for arrived, computed in copies:
            self.assertEqual(arrived, computed)

    def test_a_message_of_a_queue_that_goes_into_device_memory_is_a_copy_from_the_host(self):
        for dlopen in (False, True):
            trace = self.record(run_of("queue_routes"), dlopen=dlopen)
            copies = self.ask(trace, "SELECT status FROM call WHERE op = 'aclrtMemcpy'")
            self.assertEqual(copies, [(0,)] * 4)

    def test_outputs_have_statistics(self):
        trace = self.record(run_of("single_op"), payload="digest")
        rows = self.ask(trace, """
            SELECT c.op, s.min, s.max, s.mean, s.l2, s.nan_count FROM snapshot s
            JOIN call c USING (call_id) WHERE c.leaf = 1 AND s.moment = 'after' ORDER BY call_id""")
        self.assertEqual([row[0] for row in rows], ["aclnnAdd", "aclnnMul", "aclnnMatmul"])
        # mul: 10 -2 30 -4 50 -6
        self.assertEqual(rows[1][1:4], (-6, 50, 13))
        self.assertAlmostEqual(rows[1][4], (100 + 4 + 900 + 16 + 2500 + 36) ** 0.5, places=4)
        # matmul, in half precision: -2 -1 -2.5 -4 8.5 6.5 2 5
        self.assertEqual(rows[2][1:4], (-4, 8.5, 12.5 / 8))

    def test_phases_in_two_threads_are_one_call_with_its_arguments(self):
        # Twenty times, with work of the device delayed differently each time.
        for jitter in range(20):
            trace = self.record(run_of("task_queue")._replace(
                environment={"ACLTAPE_SOFT_JITTER": str(jitter + 1)}))
            with self.subTest(jitter=jitter + 1):
                self.assertEqual(self.ask(trace, "SELECT kind FROM ledger"), [("strict_device",)])
                rows = self.ask(trace, """
                    SELECT c.op, count(*), count(DISTINCT c.thread_id), count(prepare_ns),
                      min((SELECT count(*) FROM argument a WHERE a.call_id = c.call_id))
                    FROM call c WHERE c.leaf = 1 GROUP BY c.op ORDER BY c.op""")
                self.assertEqual(rows, [("aclnnInplaceAdd", 80, 1, 80, 4),
                                        ("aclnnInplaceMuls", 80, 1, 80, 3)])
                # Each is about the tensors of its own producer: 40 on each stream's two buffers.
                tensors = self.ask(trace, """
                    SELECT c.stream_id, count(DISTINCT u.buffer_id), count(*) FROM tensor_use u
                    JOIN call c USING (call_id) WHERE c.leaf = 1 AND u.name = 'selfRef'
                    GROUP BY c.stream_id""")
                self.assertEqual([row[1:] for row in tensors], [(2, 80), (2, 80)])

    def test_calls_name_the_line_of_python_that_they_come_from(self):
        script = os.path.join(acl_programs.FOLDER, "python_lines.py")
        with open(script) as file:
            lines = file.read().splitlines()
        trace = os.path.join(self.folder, "lines.db")
        program = [sys.executable, "-B", script]
        alone = subprocess.run(program, capture_output=True, text=True, env=acl_programs.environment())
        recorded = subprocess.run([ACLTAPE, "record", "--force", "--quiet", "--level", "acl", "-o", trace,
                                   "--", *program], capture_output=True, text=True,
                                  env=acl_programs.environment())
        self.assertEqual((recorded.returncode, recorded.stdout), (0, alone.stdout), recorded.stderr)
        # Wherever an operator is launched, its line is that of its first phase.
        rows = self.ask(trace, "SELECT file, line, function FROM device_call_origin ORDER BY call_id")
        self.assertEqual(len(rows), 3)
        for file, line, function in rows:
            self.assertEqual((file, function), (script, "prepare"))
            self.assertIn("InplaceMulsGetWorkspaceSize", lines[line - 1])
        last = self.scalar(trace, "SELECT json_extract(frames, '$[0].line') FROM call JOIN stack "
                                  "USING (stack_id) WHERE op = 'aclrtMemcpy' ORDER BY call_id DESC")
        self.assertIn("line of the copy back", lines[last - 1])

    def lines_of_race(self, *options, record=(), capture=False):
        """(operator, file, line, function) of a C++ program that was compiled with these options."""
        source = "planted_race.cpp"
        binary = os.path.join(self.folder, "race" + "".join(options))
        done = subprocess.run(acl_programs.build_line(source, binary, options=options),
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = binary + ".db"
        recorded = subprocess.run([ACLTAPE, "record", "--force", "--quiet", "--level", "acl", "-o", trace,
                                   *record, "--", binary, "--event", *["--capture"] * capture],
                                  capture_output=True, text=True, env=acl_programs.environment())
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        return trace, binary, self.ask(
            trace, "SELECT op, file, line, function FROM call JOIN call_location USING (call_id) "
                   "ORDER BY call_id")

    def test_calls_of_a_program_in_cpp_name_its_lines(self):
        path = os.path.join(acl_programs.FOLDER, "planted_race.cpp")
        with open(path) as file:
            lines = file.read().splitlines()
        for options in (("-g",), ("-g", "-O2"), ("-g1", "-O2", "-fPIE", "-pie")):
            with self.subTest(options):
                trace, _, rows = self.lines_of_race(*options)
                operators = [row for row in rows if row[0].startswith("aclnn")]
                self.assertGreater(len(operators), 30)
                for op, file, line, _ in operators:
                    self.assertEqual(file, path)
                    self.assertIn(f"{op},", lines[line - 1])
                waits = [row for row in rows if row[0] == "aclrtStreamWaitEvent"]
                self.assertTrue(waits)
                for op, _, line, _ in waits:
                    self.assertIn(op, lines[line - 1])
                copies = [row for row in rows if row[0].startswith("aclrtMemcpy")]
                self.assertTrue(copies and all("Memcpy" in lines[row[2] - 1] for row in copies), copies)

    def test_whole_stacks_of_a_program_in_cpp_reach_from_the_call_to_main(self):
        path = os.path.join(acl_programs.FOLDER, "planted_race.cpp")
        with open(path) as file:
            lines = file.read().splitlines()
        within = [next(i for i, line in enumerate(lines, 1) if line.startswith(begin))
                  for begin in ("void SubmitRounds", "void RunCaptured", "uint64_t Digest", "int main")]
        for capture, callers in ((False, ["main"]), (True, ["RunCaptured", "main"])):
            # Without inlining, so that each function is there, and without frame pointers.
            trace, _, _ = self.lines_of_race("-g", "-O2", "-fno-inline", "-fomit-frame-pointer",
                                             record=("--stacks", "full"), capture=capture)
            stacks = self.ask(trace, "SELECT DISTINCT frames, user_frame FROM call JOIN stack USING (stack_id) "
                                     "WHERE op = 'aclnnInplaceMuls'")
            self.assertEqual(len(stacks), 1)  # one line, reached in one way
            frames = [frame for frame in json.loads(stacks[0][0]) if frame["file"] == path]
            self.assertIsNone(stacks[0][1])  # the innermost frame
            self.assertEqual([frame["function"] for frame in frames], ["SubmitRounds", *callers])
            self.assertIn("aclnnInplaceMuls,", lines[frames[0]["line"] - 1])
            self.assertIn("SubmitRounds(program);", lines[frames[1]["line"] - 1])
            self.assertGreater(frames[1]["line"], within[1])
            self.assertGreater(frames[-1]["line"], within[-1])

    def test_without_debug_information_functions_are_named_and_then_addresses(self):
        _, binary, rows = self.lines_of_race("-O0")
        named = {(row[1], row[2], row[3]) for row in rows if row[0].startswith("aclnn")}
        self.assertEqual(named, {(binary, 0, "SubmitRounds")})
        _, binary, rows = self.lines_of_race("-O0", "-s")
        for op, file, line, function in rows:
            self.assertEqual((file, line), (binary, 0))
            self.assertRegex(function, r"^\+0x[0-9a-f]+$", op)

    def test_calls_of_generated_code_name_the_lines_that_it_was_made_from(self):
        script = os.path.join(acl_programs.FOLDER, "generated_lines.py")
        with open(script) as file:
            caller = 1 + next(i for i, line in enumerate(file) if "# line of the caller" in line)
        trace = os.path.join(self.folder, "generated.db")
        program = [sys.executable, "-B", script]
        recorded = subprocess.run([ACLTAPE, "record", "--force", "--quiet", "--level", "acl", "-o", trace,
                                   "--", *program], capture_output=True, text=True,
                                  env=acl_programs.environment())
        self.assertEqual((recorded.returncode, recorded.stdout),
                         (0, "1.0 2.0 3.0 4.0 1.0 2.0 3.0 4.0\n"), recorded.stderr)
        rows = self.ask(trace, """
            SELECT json_extract(frames, '$[0].file'), json_extract(frames, '$[0].line'),
              json_extract(frames, '$[0].function') FROM call JOIN stack USING (stack_id)
            WHERE op = 'aclrtMemcpy' ORDER BY call_id""")
        # The last node does not know its line: that of the caller is given.
        self.assertEqual(rows, [("/home/user/layers.py", 21, "inner"), ("/home/user/layers.py", 22, "inner"),
                                (script, caller, rows[2][2])])

    def test_threads_have_their_own_streams(self):
        trace = self.record(run_of("multi_stream_threads", "--threads"))
        shared = self.ask(trace, "SELECT stream_id FROM call WHERE leaf = 1 GROUP BY stream_id "
                                 "HAVING count(DISTINCT thread_id) > 1")
        self.assertEqual(shared, [])
        self.assertGreaterEqual(self.scalar(trace, "SELECT count(DISTINCT thread_id) FROM call "
                                                   "WHERE leaf = 1"), 4)

    def test_the_first_failing_call_is_the_one_that_failed_first(self):
        trace = self.record(run_of("error_handling"))
        failures = self.ask(trace, "SELECT op, status FROM call WHERE status <> 0 ORDER BY call_id")
        codes = {status for _, status in failures}
        # Arguments, streams used up, memory used up, refused in a capture, failed kernels.
        for code in (100000, 207008, 207001, 107027, 507015):
            self.assertIn(code, codes)
        exhausted = next(op for op, status in failures if status == 207008)
        self.assertTrue(exhausted.startswith("aclrtCreateStream"), exhausted)


class Captures(RecordedTest):
    def test_each_call_says_which_capture_stored_it(self):
        trace = self.record(run_of("capture_fork_join"))
        models = self.ask(trace, "SELECT model_id, begin_call, end_call, destroy_call, mode FROM model")
        self.assertEqual(len(models), 1)
        model, begin, end, destroy, mode = models[0]
        self.assertEqual(mode, "thread_local")
        self.assertLess(end, destroy)
        inside = self.ask(trace, "SELECT op, model_id, stream_id FROM call "
                                 "WHERE call_id > ? AND call_id < ? AND stream_id IS NOT NULL "
                                 "AND op <> 'aclmdlRICaptureGetInfo'", begin, end)
        self.assertEqual({row[1] for row in inside}, {model})
        # The fork pulls other streams in.
        self.assertGreater(len({row[2] for row in inside}), 1)
        outside = self.scalar(trace, "SELECT count(*) FROM call WHERE model_id IS NOT NULL AND "
                                     "NOT (call_id > ? AND call_id < ?)", begin, end)
        self.assertEqual(outside, 0)
        executions = self.ask(trace, "SELECT a.integer FROM argument a JOIN call c USING (call_id) "
                                     "WHERE c.op = 'aclmdlRIExecuteAsync' AND a.name = 'modelRI'")
        self.assertGreaterEqual(len(executions), 3)
        self.assertEqual(set(executions), {(model,)})

    def test_executions_tell_what_the_graph_wrote_and_captured_calls_nothing(self):
        trace = self.record(run_of("capture_fork_join"))
        kept = self.ask(trace, "SELECT DISTINCT c.op, s.moment FROM snapshot s JOIN call c USING (call_id) "
                               "WHERE c.model_id IS NOT NULL")
        self.assertEqual(kept, [])
        written = self.ask(trace, "SELECT c.call_id, count(*) FROM snapshot s JOIN call c USING (call_id) "
                                  "WHERE c.op = 'aclmdlRIExecuteAsync' AND s.moment = 'after' "
                                  "GROUP BY c.call_id")
        self.assertGreaterEqual(len(written), 3)

    def test_which_event_orders_which_streams(self):
        trace = self.record(run_of("multi_stream"))
        pairs = self.ask(trace, """
            SELECT DISTINCT r.stream_id, w.stream_id FROM argument ra
            JOIN call r ON r.call_id = ra.call_id AND r.op = 'aclrtRecordEvent' AND ra.name = 'event'
            JOIN argument wa ON wa.integer = ra.integer AND wa.name = 'event'
            JOIN call w ON w.call_id = wa.call_id AND w.op = 'aclrtStreamWaitEvent'""")
        self.assertGreaterEqual(len(pairs), 2)
        for recorded, waiting in pairs:
            self.assertNotEqual(recorded, waiting)


class Levels(RecordedTest):
    def test_the_device_s_own_work_is_no_part_of_the_program(self):
        # The soft device computes with libtorch, in the program's threads and in its own.
        trace = self.record(run_of("multi_stream"), level="aten,acl")
        dialects = self.ask(trace, "SELECT DISTINCT dialect FROM op ORDER BY 1")
        self.assertEqual([row[0] for row in dialects], ["aclnn", "aclrt"])
        self.assertEqual(self.scalar(trace, "SELECT count(*) FROM thread"), 1)

    def test_both_levels_are_the_default(self):
        binary = self.build("single_op.c")
        trace = os.path.join(self.folder, "default.db")
        subprocess.run([ACLTAPE, "record", "--force", "--quiet", "-o", trace, "--", binary],
                       check=True, capture_output=True, env=acl_programs.environment())
        self.assertEqual(self.scalar(trace, "SELECT value FROM meta WHERE key = 'levels'"), "aten,acl")
        self.assertGreater(self.scalar(trace, "SELECT count(*) FROM call WHERE op = 'aclnnAdd'"), 0)


if __name__ == "__main__":
    unittest.main()
