#!/usr/bin/env python3
"""Traces from anywhere: what they say is shown without effect on the terminal, and what they ask for has
limits. Recordings hold against limits of the system and against each other."""
import os
import resource
import subprocess
import time

from harness import BINARY, TORCH_PYTHON, CommandTest, main

PROGRAM = """
import time
import torch
for step in range(100):
    torch.randn(2000) + 1
print("the program ran", flush=True)
"""


class Trust(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.good = cls.folder + "/good.db"
        subprocess.run([BINARY, "record", "-o", cls.good, "--payload", "inputs", "--", TORCH_PYTHON, "-c",
                        "import torch\nx = torch.ones(4)\nfor i in range(6):\n  x = (x * 2).relu()"],
                       capture_output=True, check=True)

    def changed(self, *statements):
        return self.changed_copy(self.good, f"{self.id().rsplit('.', 1)[-1]}.db", *statements)

    def test_names_in_a_trace_do_not_reach_the_terminal_as_commands(self):
        trace = self.changed("UPDATE op SET name = 'evil' || char(27) || '[2J' || char(155) WHERE name = 'aten::mul'",
                             "UPDATE meta SET value = char(27) || ']0;x' || char(7) WHERE key = 'command'")
        for words in (("info", trace), ("query", trace, "--name", "top_ops"), ("graph", trace, "1-"),
                      ("query", trace, "SELECT char(27) AS x"), ("graph", trace, "op:\x1b[2J")):
            with self.subTest(words=words):
                done = subprocess.run([BINARY, *words], capture_output=True)
                for output in (done.stdout, done.stderr):
                    self.assertNotIn(b"\x1b", output)
                    self.assertNotIn(b"\xc2\x9b", output)

    def test_a_trace_cannot_ask_for_a_million_threads(self):
        for key in ("torch_threads", "blas_threads"):
            trace = self.changed(f"INSERT OR REPLACE INTO meta VALUES('{key}', '1000000')")
            self.assertSentence(self.acltape("replay", trace, "--mode", "eager", code=3), key, "1000000", "1024")

    def test_a_trace_of_a_soft_device_that_is_not_known_is_refused(self):
        for text in ('{"generator":99}', '{"generator":-1}', "evil"):
            with self.subTest(text=text):
                trace = self.changed(f"INSERT OR REPLACE INTO meta VALUES('soft_device', '{text}')")
                self.assertSentence(self.acltape("replay", trace, "--mode", "eager", code=3), "soft_device",
                                    "a generator from 1 to 2")

    def test_a_trace_does_not_run_the_file_that_it_names_as_its_libtorch(self):
        marker, program = self.path("was_run"), self.path("evil")
        with open(program, "w") as file:
            file.write(f"#!/bin/sh\ntouch {marker}\n")
        os.chmod(program, 0o755)
        trace = self.changed(f"UPDATE meta SET value = '{program}' WHERE key = 'torch_library'",
                             "UPDATE meta SET value = 'evil' WHERE key = 'torch_identity'")
        said = self.acltape("replay", trace, "--mode", "eager", code=125)  # no result was kept
        self.assertFalse(os.path.exists(marker), "the trace had a program run")
        self.assertIn("there is no kit", said.err)

    def test_a_row_of_another_type_ends_in_a_sentence(self):
        trace = self.changed("UPDATE layout SET dtype = 'evil'")
        for words in (("steps", trace), ("lint", trace), ("replay", trace, "--mode", "captured"),
                      ("diff", trace, self.good)):
            self.assertSentence(self.acltape(*words, code=3), "layout", "dtype", "evil")

    def test_a_trace_that_claims_gigabytes_ends_in_a_sentence_under_max_memory(self):
        trace = self.changed(f"UPDATE buffer_row SET bytes = {8 << 30}")
        for size in ("1G", "2G"):
            said = self.acltape("replay", trace, "--mode", "captured", "--max-memory", size, code=4)
            self.assertSentence(said, f"needs more than the {size} that --max-memory allows", "aclrtMalloc")

    def test_too_little_memory_never_ends_in_a_signal_or_without_a_sentence(self):
        # OpenBLAS, which would ask for memory without end, is not loaded then.
        for size in ("40M", "64M", "96M", "128M", "160M", "200M", "256M", "460M"):
            with self.subTest(size=size):
                said = self.acltape("replay", self.good, "--mode", "captured", "--max-memory", size, code=4, timeout=60)
                self.assertIn(f"acltape: this needs more than the {size} that --max-memory allows", said.err)

    def test_a_normal_trace_is_replayed_under_max_memory(self):
        self.acltape("replay", self.good, "--mode", "captured", "--max-memory", "2G")
        # The trace keeps too few results for a verdict.
        for words, code in ((("info", self.good), 0), (("steps", self.good), 0),
                            (("diff", self.good, self.good), 125)):
            self.acltape(*words, "--max-memory", "256M", code=code)

    def test_a_bound_too_small_to_start_or_no_size_is_wrong_usage(self):
        for size, words in (("1M", ("allows 1M", "to start")), ("0", ("to start",)), ("much", ("--max-memory", "16M"))):
            self.assertSentence(self.acltape("info", self.good, "--max-memory", size, code=2), *words)

    def test_a_limit_on_the_size_of_files_does_not_end_the_recording_without_a_word(self):
        trace = self.path("limited.db")
        limit = 2 << 20  # an empty trace for all values takes 1.5 MiB
        done = self.acltape(
            "record", "-o", trace, "--payload", "all", "--threads", "2", "--ring-size", "64K", "--", TORCH_PYTHON,
            "-c", PROGRAM.replace("100", "1600"), code=4,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertIn("the program ran", done.out)
        self.assertIn("ulimit -f", done.err)

    def test_the_program_dies_of_its_own_large_file_as_without_recording(self):
        big = self.path("big")
        script = self.script(f"import torch\ntorch.ones(2) + 1\nopen({big!r}, 'wb').write(bytes(3 << 20))\n"
                             "print('still here')\n")
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))
        plain = subprocess.run([TORCH_PYTHON, script], capture_output=True, preexec_fn=limited)
        recorded = subprocess.run([BINARY, "record", "-o", self.path("own.db"), "--threads", "2", "--ring-size", "64K",
                                   "--", TORCH_PYTHON, script], capture_output=True, preexec_fn=limited)
        expected = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
        self.assertEqual(recorded.returncode, expected, recorded.stderr)

    def test_a_second_recording_into_the_same_file_is_refused(self):
        trace, ready = self.path("shared.db"), self.path("ready")
        script = self.script(f"import time, torch\ntorch.ones(2) + 1\nopen({ready!r}, 'w').close()\ntime.sleep(6)\n"
                             "torch.ones(2) + 2")
        first = subprocess.Popen([BINARY, "record", "--force", "-o", trace, "--", TORCH_PYTHON, script],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(600):
            if os.path.exists(ready):
                break
            time.sleep(0.1)
        second = self.acltape("record", "--force", "-o", trace, "--", TORCH_PYTHON, "-c", "print(1)", code=4)
        self.assertSentence(second, "shared.db", "is being recorded by another process")
        self.assertEqual(first.wait(), 0, first.stderr.read())
        self.assertEqual(self.json("query", trace, "SELECT count(*) AS n FROM call WHERE leaf")[0]["n"], 4)
        first.stdout.close()
        first.stderr.close()


if __name__ == "__main__":
    main()
