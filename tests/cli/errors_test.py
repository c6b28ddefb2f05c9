#!/usr/bin/env python3
"""Each way to go wrong gives one sentence and the right exit code."""
import os
import shutil
import signal
import sqlite3
import subprocess

from harness import BINARY, TORCH_PYTHON, CommandTest, main, run

# Enough values that a small disk fills up while it runs.
BUSY = """
import torch
for _ in range(200):
    torch.rand(65536) + 1
print("busy done")
"""


class UsageErrors(CommandTest):
    def test_no_command_shows_help(self):
        result = self.acltape(code=2)
        self.assertIn("record", result.err)

    def test_unknown_command(self):
        self.assertSentence(self.acltape("recrod", code=2), "recrod")

    def test_unknown_option(self):
        self.assertSentence(self.acltape("info", "t.db", "--bogus", code=2), "--bogus")

    def test_unknown_option_of_record_is_not_a_program(self):
        self.assertSentence(self.acltape("record", "--bogus", "--", "true", code=2), "--bogus")
        self.assertSentence(self.acltape("record", "--bogus", "true", code=2), "--bogus")

    def test_record_without_a_program(self):
        self.assertSentence(self.acltape("record", code=2), "needs a program")

    def test_wrong_choice(self):
        self.assertSentence(
            self.acltape("record", "--payload", "some", "--", "true", code=2), "--payload")

    def test_a_level_that_there_is_not(self):
        for level in ("cuda", "aten,cuda"):
            trace = self.path("level.db")
            result = self.acltape("record", "-o", trace, "--level", level, "--", "true", code=2)
            self.assertSentence(result, "'cuda'", "aten and acl")
            self.assertFalse(os.path.exists(trace))

    def test_query_without_sql(self):
        self.assertSentence(self.acltape("query", self.path("t.db"), code=2), "--name")

    def test_unknown_named_query(self):
        self.assertSentence(
            self.acltape("query", self.path("t.db"), "--name", "nope", code=2), "nope", "--list")


class RecordErrors(CommandTest):
    def test_program_not_found(self):
        trace = self.path("none.db")
        result = self.acltape("record", "-o", trace, "--", "no-such-program-here", code=2)
        self.assertSentence(result, "no-such-program-here")
        self.assertFalse(os.path.exists(trace))

    def test_program_that_fails_passes_its_code_on(self):
        trace = self.path("fails.db")
        result = self.record(trace, TORCH_PYTHON, "-c", "import torch; torch.ones(2) + 1; exit(7)",
                             code=7)
        self.assertIn("7", result.err)
        self.assertGreaterEqual(self.json("query", trace, "SELECT count(*) n FROM call")[0]["n"], 1)

    def test_program_killed_by_a_signal_gives_128_plus_it(self):
        trace = self.path("killed.db")
        program = "import os, torch; torch.ones(2) + 1; os.kill(os.getpid(), 9)"
        self.record(trace, TORCH_PYTHON, "-c", program, code=128 + signal.SIGKILL)
        rows = self.json("info", trace)
        state = [row["value"] for row in rows["trace"] if row["fact"] == "state"]
        self.assertEqual(state, ["partial"])

    def test_each_level_says_what_it_looked_for(self):
        for level, what in (("aten", "no torch in it"), ("acl", "no ACL program in it")):
            result = self.acltape("record", "--force", "-o", self.path("t.db"), "--level", level, "--",
                                  "/bin/true")
            self.assertIn(what, result.err)

    def test_no_torch_in_it_is_said_so(self):
        result = self.record(self.path("no_torch.db"), "/bin/echo", "hello")
        self.assertEqual(result.out, "hello\n")
        self.assertIn("no torch and no ACL program in it", result.err)

    def test_nothing_recorded_leaves_no_trace_and_one_sentence(self):
        trace = self.path("nothing.db")
        result = self.acltape("record", "-o", trace, "--", "/bin/true")
        self.assertSentence(result, "nothing was recorded", "--keep-empty")
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("nothing")], [])
        self.assertSentence(self.acltape("record", "--quiet", "-o", trace, "--", "/bin/true"),
                            "nothing was recorded")

    def test_the_exit_code_of_a_program_without_calls_is_its_own(self):
        trace = self.path("code.db")
        self.acltape("record", "-o", trace, "--", "sh", "-c", "exit 7", code=7)
        self.acltape("record", "-o", trace, "--", "sh", "-c", "kill -9 $$", code=137)
        self.assertFalse(os.path.exists(trace))

    def test_an_empty_trace_is_kept_when_asked(self):
        trace = self.path("kept_empty.db")
        result = self.acltape("record", "--keep-empty", "-o", trace, "--", "/bin/true")
        self.assertIn("nothing was recorded", result.err)
        self.assertEqual(self.json("query", trace, "SELECT count(*) AS n FROM call"), [{"n": 0}])

    def test_an_interpreter_that_has_torch_is_named(self):
        # A virtual environment sees no packages of the system, so it has no torch.
        bare = self.path("bare/bin/python3")
        subprocess.run([TORCH_PYTHON, "-m", "venv", "--without-pip", self.path("bare")], check=True)
        has = self.path("has")
        os.mkdir(has)
        os.symlink(TORCH_PYTHON, os.path.join(has, "python3"))
        program = self.script("import torch\ntorch.ones(2) + 1\n")
        environment = dict(os.environ, PATH=f"{has}:/bin")
        environment.pop("VIRTUAL_ENV", None)
        result = self.acltape("record", "-o", self.path("bare.db"), "--", bare, program, "a b", code=1,
                              env=environment)
        again = f"acltape record --output {self.path('bare.db')} -- {has}/python3 {program} 'a b'"
        self.assertIn(f"{bare} has no torch, {has}/python3 has it: {again}", result.err)
        self.assertFalse(os.path.exists(self.path("bare.db")))
        with open(program, "w") as file:
            file.write(f"#!{bare}\nimport torch\n")
        os.chmod(program, 0o755)
        result = self.acltape("record", "-o", self.path("bare.db"), "--", program, "a b", code=1, env=environment)
        self.assertIn(again, result.err)

    def test_a_program_that_does_not_use_its_torch_is_told_so(self):
        result = self.acltape("record", "-o", self.path("unused.db"), "--", TORCH_PYTHON, "-c", "1")
        self.assertIn("has torch, but the program did not use it", result.err)

    def test_existing_trace_is_not_overwritten(self):
        trace = self.path("kept.db")
        with open(trace, "w") as file:
            file.write("precious")
        result = self.acltape("record", "-o", trace, "--", "true", code=2)
        self.assertSentence(result, "kept.db", "--force")
        with open(trace) as file:
            self.assertEqual(file.read(), "precious")

    def test_read_only_folder(self):
        # Even root cannot create files in sysfs.
        result = self.acltape("record", "-o", "/sys/kernel/t.db", "--", "true", code=4)
        self.assertSentence(result, "/sys/kernel")

    def test_folder_that_does_not_exist(self):
        result = self.acltape("record", "-o", self.path("no/such/t.db"), "--", "true", code=4)
        self.assertSentence(result, "no/such")

    def test_disk_full_while_recording_leaves_the_program_alone(self):
        disk = self.path("disk")
        os.mkdir(disk)
        script = self.script(BUSY)
        inside = (f"mount -t tmpfs -o size=48m none {disk} || exit 99; "
                  f"{BINARY} record -o {disk}/t.db --payload all -- {TORCH_PYTHON} {script}; "
                  f"echo record $?; {BINARY} query {disk}/t.db 'SELECT count(*) > 0 FROM call' "
                  f"--format csv; echo query $?; {BINARY} query {disk}/t.db --format csv "
                  f"\"SELECT value FROM meta WHERE key = 'state'\"; umount {disk}")
        result = run("unshare", "-m", "sh", "-c", inside)
        if result.code == 99 or shutil.which("unshare") is None:
            result = run("unshare", "-rm", "sh", "-c", inside)
        if "record" not in result.out:
            self.skipTest("this machine lets nobody mount a small disk")
        self.assertIn("busy done", result.out, result)
        self.assertIn("record 4", result.out, result)
        self.assertIn("\n1\nquery 0", result.out, result)
        self.assertIn("partial", result.out, result)
        self.assertRegex(result.err, "disk|space", result)


class TraceErrors(CommandTest):
    COMMANDS = (["info"], ["query", "--name", "top_ops"], ["graph"], ["replay"], ["compare"])

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.good = os.path.join(cls.folder, "good.db")
        subprocess.run([BINARY, "record", "--quiet", "--payload", "all", "-o", cls.good, "--",
                        TORCH_PYTHON, "-c", "import torch; torch.ones(3, 3) @ torch.ones(3, 3)"],
                       check=True)

    def each_command(self, trace, *words):
        for command, *options in self.COMMANDS:
            with self.subTest(command=command):
                self.assertSentence(self.acltape(command, trace, *options, code=3), *words)

    def test_trace_missing(self):
        self.each_command(self.path("missing.db"), "missing.db")

    def test_not_a_trace(self):
        path = self.path("text.db")
        with open(path, "w") as file:
            file.write("this is no database\n" * 100)
        self.each_command(path, "text.db", "not a trace")

    def test_empty_file(self):
        path = self.path("empty.db")
        open(path, "w").close()
        self.each_command(path, "empty.db", "is empty")

    def test_database_of_another_program(self):
        path = self.path("other.db")
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE t(a)")
        connection.commit()
        connection.close()
        self.each_command(path, "other.db", "not a trace")

    def test_folder(self):
        self.each_command(self.folder, self.folder)

    def test_newer_schema(self):
        trace = self.changed_copy(self.good, "newer.db", "UPDATE meta SET value = '1000' "
                                  "WHERE key = 'schema_version'", "PRAGMA user_version = 1000")
        self.each_command(trace, "newer.db", "1000")

    def test_truncated_file(self):
        trace = self.path("short.db")
        shutil.copy(self.good, trace)
        os.truncate(trace, os.path.getsize(trace) // 2)
        self.each_command(trace, "short.db")

    def test_sql_that_writes(self):
        before = os.path.getmtime(self.good)
        for sql in ("DELETE FROM call_row", "DROP TABLE meta", "SELECT 1; DELETE FROM call_row",
                    "PRAGMA user_version = 9"):
            with self.subTest(sql=sql):
                self.assertSentence(self.acltape("query", self.good, sql, code=2), "quer")
        self.assertEqual(os.path.getmtime(self.good), before)

    def test_wrong_sql(self):
        self.assertSentence(self.acltape("query", self.good, "SELECT nope FROM call", code=2),
                            "nope")

    def test_selection_that_picks_nothing(self):
        self.assertSentence(self.acltape("graph", self.good, "op:aten::nope", code=2),
                            "op:aten::nope")

    def test_wrong_selection(self):
        self.assertSentence(self.acltape("graph", self.good, "step", code=2), "selection")


class ReplayErrors(CommandTest):
    def test_replay_with_values_needs_payloads(self):
        for payload in ("none", "digest"):
            with self.subTest(payload=payload):
                trace = self.path(f"{payload}.db")
                self.record(trace, TORCH_PYTHON, "-c", "import torch; torch.arange(3.) * 2",
                            payload=payload)
                result = self.acltape("replay", trace, "--mode", "eager", code=3)
                self.assertSentence(result, "--payload")

    def test_a_replay_that_compares_nothing_has_no_verdict(self):
        trace = self.path("unjudged.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch; torch.arange(3.) * 2",
                    payload="inputs")
        result = self.acltape("replay", trace, code=125)
        self.assertSentence(result, "nothing was compared", "--payload all", "--mode captured")
        # Made-up inputs have no reference, and none was asked for.
        self.acltape("replay", trace, "--data", "synthesised")

    def test_device_library_missing(self):
        trace = self.path("device.db")
        self.record(trace, TORCH_PYTHON, "-c", "import torch; torch.arange(3.) * 2")
        for command in ("replay", "compare"):
            with self.subTest(command=command):
                result = self.acltape(command, trace, "--device-lib", self.path("nowhere"), code=4)
                self.assertSentence(result, "nowhere")

    def test_unknown_op_is_substituted_and_counted_when_its_outputs_were_kept(self):
        trace = self.path("unknown_all.db")
        self.record(trace, TORCH_PYTHON, "-c",
                    "import torch; torch.special.bessel_j0(torch.arange(3.)) + 1", payload="all")
        rows = {row["quantity"].strip(): row["value"]
                for row in self.json("replay", trace)["summary"]}
        self.assertEqual(rows["substituted by recorded outputs"], 1)

    def test_unknown_op_without_kept_outputs_is_named(self):
        trace = self.path("unknown_inputs.db")
        self.record(trace, TORCH_PYTHON, "-c",
                    "import torch; torch.special.bessel_j0(torch.arange(3.)) + 1")
        result = self.acltape("replay", trace, code=3)
        self.assertSentence(result, "bessel_j0", "--payload all")

    def test_doctor_without_the_named_device_library(self):
        result = self.acltape("doctor", "--device-lib", self.path("nowhere"), code=4)
        self.assertIn("nowhere", result.out)


if __name__ == "__main__":
    main()
