#!/usr/bin/env python3
"""An inference engine in C++ (engine.cpp), recorded as a whole and in a window that the program opens: both replay
in every way, lint finds nothing, and each step can be trimmed. The environment is that of recorded_test.py.
"""
import json
import os
import subprocess
import unittest

import acl_programs
import recorded_test
import trimmed_steps
from recorded_test import ACLTAPE

RANGES = os.path.join(acl_programs.SOURCE, "recorder", "ranges")
WAYS = [(mode, streams) for mode in ("eager", "captured") for streams in ("recorded", "flat")] + [("eager", "leaves")]


class Engine(recorded_test.RecordedTest):
    def engine(self, *options, record=()):
        """The trace of the engine, and what it printed."""
        binary = os.path.join(self.folder, "engine")
        if not os.path.exists(binary):
            line = acl_programs.build_line("engine.cpp", binary, options=("-I" + RANGES,))
            subprocess.run(line, check=True)
        trace = binary + "_".join(("", *options, "")) + ".db"
        done = subprocess.run([ACLTAPE, "record", "--level", "acl", "--payload", "all", *record, "-o", trace,
                               "--", binary, *options],
                              capture_output=True, text=True, timeout=120, env=acl_programs.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "engine: passed", done.stdout)
        return trace

    def check(self, trace, steps):
        self.assertEqual(self.scalar(trace, "SELECT count(*) FROM step"), steps)
        for mode, streams in WAYS:
            with self.subTest(mode=mode, streams=streams):
                done = self.acltape("replay", trace, "--mode", mode, "--streams", streams, "--format", "json")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                summary = {row["quantity"]: row["value"] for row in json.loads(done.stdout)["summary"]}
                self.assertGreaterEqual(summary["outputs compared"], 5 * steps, done.stdout)
                self.assertEqual(summary["outputs equal"], summary["outputs compared"], done.stdout)
        done = self.acltape("lint", trace)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        trimmed_steps.check(self, trace, "engine.cpp")

    def acltape(self, *words):
        return subprocess.run([ACLTAPE, *words], capture_output=True, text=True, timeout=120,
                              env=acl_programs.environment())

    def test_a_whole_recording_replays_and_is_trimmed(self):
        self.check(self.engine(), 8)

    def test_a_window_in_the_middle_replays_as_a_whole_recording_does(self):
        trace = self.engine("--window", record=("--start-closed",))
        older = self.scalar(trace, "SELECT count(*) FROM event WHERE create_call IS NULL")
        self.assertEqual(older, 3)
        self.check(trace, 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
