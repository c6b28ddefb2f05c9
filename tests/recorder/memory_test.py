#!/usr/bin/env python3
"""The collector's memory does not grow with the recording, at its end either."""
import os
import subprocess
import tempfile
import unittest

BINARY = os.environ.get("ACLTAPE_BINARY", "acltape")
PROGRAM = os.environ["ACLTAPE_COUNTED_CALLS"]
FEW, MANY = 300_000, 1_500_000  # calls of each of two threads
MAY_GROW_MIB = 48


def greatest_memory_mib(calls):
    """Records two threads that make so many calls each as fast as they can."""
    with tempfile.TemporaryDirectory() as folder:
        words = [BINARY, "record", "--quiet", "--payload", "none", "-o", os.path.join(folder, "t.db"), "--",
                 PROGRAM, os.path.join(folder, "count"), str(calls), "0"]
        recorder = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(recorder.pid, 0)
        recorder.returncode = os.waitstatus_to_exitcode(status)
        counted = subprocess.run([BINARY, "query", os.path.join(folder, "t.db"), "SELECT count(*) FROM call",
                                  "--format", "csv"],
                                 capture_output=True, text=True, check=True).stdout.split()[-1]
    return recorder.returncode, int(counted), usage.ru_maxrss / 1024


class CollectorsMemory(unittest.TestCase):
    def test_is_the_same_for_twenty_times_as_many_calls(self):
        found = {calls: greatest_memory_mib(calls) for calls in (FEW, MANY)}
        for calls, (code, counted, _) in found.items():
            self.assertEqual((code, counted), (0, 2 * calls))
        few, many = (found[calls][2] for calls in (FEW, MANY))
        self.assertLess(many - few, MAY_GROW_MIB,
                        f"{few:.0f} MiB for {2 * FEW:,} calls, {many:.0f} MiB for {2 * MANY:,}")


if __name__ == "__main__":
    unittest.main()
