#!/usr/bin/env python3
"""Wrong calls of all operators: none ends the process by a signal, and none hangs.

The program makes the calls, and says each before it makes it. Where it ends early, the call is noted, and it goes on
with the next operator. To see one operator alone: opapi_wrong_calls NUMBER, with the number that this test names.
"""
import os
import re
import resource
import select
import subprocess
import unittest

PROGRAM = os.environ["ACLTAPE_WRONG_CALLS"]
PATIENCE = 60  # seconds without a word: the call hangs
MOST_MEMORY = 16 << 30  # a call that asks for more gets an error, not the machine's last memory


def bound_memory():
    # AddressSanitizer reserves addresses far beyond.
    if "asan" not in PROGRAM:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def lines_of(process):
    """The lines that the program writes; ends where it ends, or hangs."""
    rest = b""
    while select.select([process.stdout], [], [], PATIENCE)[0]:
        read = os.read(process.stdout.fileno(), 1 << 16)
        if not read:
            return
        *lines, rest = (rest + read).split(b"\n")
        yield from (line.decode() for line in lines)
    process.kill()


class WrongCalls(unittest.TestCase):
    def run_from(self, number):
        """Runs the operators from a number on. Returns the last number, call and how it ended; None at the end."""
        call, count = "", 0
        with subprocess.Popen([PROGRAM, str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=bound_memory) as process:
            poll = lines_of(process)
            for line in poll:
                if found := re.match(r"operator (\d+) of", line):
                    number = int(found[1])
                elif line.startswith("call "):
                    call, count = line, count + 1
                elif line == "end":
                    return None, count
            said = process.stderr.read().decode(errors="replace")
            process.wait()
        report = "".join(re.findall(r"ERROR: AddressSanitizer.*|SUMMARY.*", said)[:2])
        return (number, f"{call} (opapi_wrong_calls {number}) ended with {process.returncode} {report}"), count

    def test_no_wrong_call_ends_the_process(self):
        number, made, ended = 0, 0, []
        while True:
            stopped, count = self.run_from(number)
            made += count
            if stopped is None:
                break
            ended.append(stopped[1])
            number = stopped[0] + 1
        print(f"{made} wrong calls, of which {len(ended)} ended the process or hung")
        self.assertGreater(made, 10000)
        self.assertEqual(ended, [], "\n".join(ended))


if __name__ == "__main__":
    unittest.main()
