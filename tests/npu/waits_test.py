"""acltape waits on programs of the NPU adapter: what it says of waits that can be left out, and that it says nothing
of their right twins."""
import json
import os

import harness


class Waits(harness.NpuTest):
    def record(self, program, *options):
        self.source = os.path.join(harness.PROGRAMS, program)
        self.trace = os.path.join(self.folder, "t.db")
        self.call(harness.BINARY, "record", "--soft", "-o", self.trace, *options, "--", harness.PYTHON, self.source)
        self.report = json.loads(self.call(harness.BINARY, "waits", self.trace, "--format", "json").stdout)

    def place(self, word):
        """ "programs.py:17" of the line with the comment "# line: WORD"."""
        with open(self.source, encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                if line.rstrip().endswith(f"# line: {word}"):
                    return f"{os.path.basename(self.source)}:{number} "
        self.fail(f"{self.source} has no line {word}")

    def advice(self, word):
        found = [row["advice"] for row in self.report["advice"] if self.place(word) in row["where"]]
        self.assertEqual(len(found), 1, (word, self.report["advice"]))
        return found[0]

    def test_each_wait_that_can_be_left_out_is_named_with_its_line_and_mend(self):
        self.record("waits_wrong.py", "--device-times")
        for word, *said in (
            ("pageable", "blocks the host 10 times", "not pinned: pin the memory"),
            ("synchronised", "waits 24 times, and no read needs it: leave it out"),
            ("early", "waits too early, 6 times", "before aten::add at", self.place("needs")),
            ("random", "blocks the host 4 times", "make them on the device"),
            ("clip", "blocks the host", "error_if_nonfinite"),
            ("scaler", "blocks the host", "GradScaler reads"),
            ("mask", "blocks the host 4 times", "boolean mask"),
            ("list", "blocks the host 4 times", "a list is brought to the device"),
            ("item", "blocks the host 4 times", "keep the value as a tensor"),
        ):
            with self.subTest(line=word):
                advice = self.advice(word)
                for part in said:
                    self.assertIn(part, advice)
        here = self.place("synchronised")
        row = next(row for row in self.report["waits"] if here in (row["where"] or ""))
        self.assertEqual((row["waits"], row["not_needed"], row["needed"]), (24, 24, None))
        self.assertIn("on stream", row["waited_for"])
        causes = {row["cause"] for row in self.report["device_idle"]}
        self.assertLessEqual({"the host waited", "a copy blocked the host"}, causes)
        done = self.call(harness.BINARY, "query", self.trace, "host_waits", "--all", "--format", "json")
        lines = [row for row in json.loads(done.stdout) if here in (row["where"] or "")]
        self.assertEqual({row["op"] for row in lines}, {"aclrtSynchronizeStreamWithTimeout"})
        self.assertEqual(len(lines), 24)

    def test_their_right_twins_get_no_advice(self):
        self.record("waits_right.py")
        self.assertEqual(self.report["advice"], [])
        whys = {row["why"] for row in self.report["waits"]}
        self.assertIn("the program takes a time beside it", whys)
        self.assertIn("the work uses memory of the host", whys)

    def test_a_serving_loop_in_pieces_says_which_steps_ran_in_graphs_and_why_others_did_not(self):
        self.record("pieces.py", "--steps-from", "step")
        self.assertIn("pin the memory", self.advice("batch"))
        self.assertIn("read after the event", self.advice("tokens"))
        steps = {row["steps_ran"]: row for row in self.report["steps"]}
        self.assertEqual(steps["partly in graphs"]["steps"], 9, steps)
        self.assertEqual(steps["eagerly"]["steps"], 3, steps)
        self.assertIn("no graph has its size", steps["eagerly"]["reason"])

    def test_a_program_of_the_host_alone_waits_for_no_device(self):
        trace = os.path.join(self.folder, "cpu.db")
        self.call(harness.BINARY, "record", "-o", trace, "--", harness.PYTHON,
                  os.path.join(harness.WORKLOADS, "mlp_train.py"), "--steps", "3",
                  environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
        report = json.loads(self.call(harness.BINARY, "waits", trace, "--format", "json").stdout)
        facts = {row["fact"]: row["value"] for row in report["facts"]}
        self.assertIn("nothing is waited for on a device", facts["coverage"])
        self.assertEqual((report["waits"], report["advice"]), ([], []))

    def test_without_the_devices_calls_it_says_what_is_not_known(self):
        self.record("waits_wrong.py", "--level", "aten")
        facts = {row["fact"]: row["value"] for row in self.report["facts"]}
        self.assertIn("are not known", facts["coverage"])
        self.assertIn("pin the memory", self.advice("pageable"))
        self.assertIn("keep the value as a tensor", self.advice("item"))


if __name__ == "__main__":
    harness.main()
