#!/usr/bin/env python3
"""acltape trim, redact and export, from a recorded decoder to files that stand alone."""
import os
import sqlite3
import subprocess

from harness import TORCH_PYTHON, WORKLOADS, CommandTest, main


class HandedOn(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "decoder.db")
        program = [TORCH_PYTHON, os.path.join(WORKLOADS, "decoder.py"), "--tokens", "5",
                   "--layers", "1"]
        cls("test_trimmed_calls_replay").record(cls.trace, *program, payload="all")
        with sqlite3.connect(cls.trace) as trace:
            cls.calls = [row[0] for row in trace.execute(
                "SELECT call_id FROM call WHERE step = 2 AND leaf AND op IN "
                "('aten::bmm', 'aten::div.Tensor', 'aten::addmm', 'aten::gelu')")]

    def figures(self, *words, code=0):
        return {row["quantity"].strip(): row["value"] for row in self.json(*words, code=code)}

    def test_trimmed_calls_replay(self):
        small = self.path("small.db")
        report = self.figures("trim", self.trace, "--calls", f"{self.calls[1]}", "--steps", "3",
                              "-o", small)
        self.assertEqual(report["calls kept"], 2)
        self.assertEqual(report["replayed"], "eager, captured")
        self.assertLess(report["bytes of the file"], report["bytes of the whole trace"])
        for mode in ("eager", "captured"):
            self.acltape("replay", small, "--mode", mode)
        self.assertSentence(
            self.acltape("trim", self.trace, "--calls", "3", "-o", small, code=2), "--force")
        self.assertSentence(
            self.acltape("trim", self.trace, "--calls", "op:none", "-o", small, "--force", code=2),
            "picks no call")
        self.assertSentence(
            self.acltape("trim", self.trace, "--calls", "1-", "-o", self.path("no/where.db"),
                         code=4), "cannot be written")
        self.assertSentence(
            self.acltape("trim", self.trace, "--calls", "1-", "--force", "-o", self.trace, code=2),
            "the trace itself")

    def test_a_packed_trace_has_all_rows_and_replays(self):
        packed, plan = self.path("packed.db"), self.path("plan.json")
        self.acltape("plan", self.trace, "-o", plan)
        report = self.figures("pack", self.trace, "--plan", plan, "-o", packed)
        self.assertEqual(report["missing for a replay"], "nothing")
        with sqlite3.connect(self.trace) as old, sqlite3.connect(packed) as new:
            for table in ("call_row", "snapshot", "payload", "step", "signature_argument", "finding"):
                count = f"SELECT count(*) FROM {table}"
                self.assertEqual(new.execute(count).fetchone(), old.execute(count).fetchone(), table)
            self.assertEqual(new.execute("SELECT count(*) > 0 FROM plan").fetchone(), (1,))
            self.assertEqual(new.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        self.assertEqual([f for f in os.listdir(self.folder) if f.startswith("packed.db")],
                         ["packed.db"])
        self.acltape("replay", packed, "--mode", "captured", "--no-results")
        self.assertSentence(self.acltape("pack", self.trace, "-o", packed, code=2), "--force")

    def test_redacted_values_are_made_up_again(self):
        redacted = self.path("redacted.db")
        self.acltape("redact", self.trace, "-o", redacted)
        with open(redacted, "rb") as file:
            content = file.read()
        self.assertNotIn(b"decoder.py", content)
        self.assertNotIn(os.uname().nodename.encode() + b'"', content)
        for mode in ("eager", "captured"):
            self.acltape("replay", redacted, "--mode", mode, "--data", "synthesised")
        self.assertSentence(self.acltape("replay", redacted, "--mode", "eager", code=3),
                            "it was redacted", "--data synthesised")

    def test_exported_programs_run_by_their_one_line(self):
        folder = self.path("repro")
        first, last = min(self.calls), max(self.calls)
        words = ["export", self.trace, "--to", "cpp", "--calls", f"{first}-{last}", "-o", folder,
                 "--trace-share", "100"]
        healthy = self.figures(*words)
        self.assertEqual(healthy["exit code"], 0)
        self.assertSentence(self.acltape(*words, code=2), "--force")
        broken = self.figures(*words, "--force", "--plant", f"wrong_bits@{self.calls[1]}", code=1)
        self.assertEqual(broken["exit code"], 1)
        self.assertEqual(broken["exit code with --clean"], 0)
        self.acltape("replay", broken["trimmed trace"], "--mode", "captured")
        # The printed commands show it again.
        os.remove(os.path.join(folder, "repro"))
        subprocess.run(broken["build"], shell=True, check=True)
        shown = subprocess.run(broken["reproduce"], shell=True, capture_output=True, text=True)
        self.assertEqual(shown.returncode, 1, shown)
        self.assertIn("elements differ", shown.stdout)

    def test_an_exported_call_whose_result_nobody_looks_at_has_no_verdict(self):
        call = self.calls[1]
        words = ("export", self.trace, "--to", "cpp", "--calls", f"{call}", "--no-trace", "--force",
                 "-o", self.path("blind"), "--plant", f"wrong_bits@{call}")
        self.assertSentence(self.acltape(*words, code=125), "nothing was compared", "--watch every")
        shown = self.figures(*words, "--watch", "every", code=1)
        self.assertEqual(shown["exit code with --clean"], 0)

    def test_a_trimmed_trace_without_results_is_kept_and_not_called_proven(self):
        trace, small = self.path("inputs.db"), self.path("inputs_small.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch; torch.arange(3.) * 2",
                    payload="inputs")
        result = self.acltape("trim", trace, "--calls", "1-", "-o", small, code=125)
        self.assertSentence(result, "nothing was compared", "--payload all")
        self.assertTrue(os.path.exists(small))


if __name__ == "__main__":
    main()
