#!/usr/bin/env python3
"""No call of the library converts an argument in silence: an integer that becomes a `bool`, or loses digits.

C++ once took the overload with `bool unbiased` for the integer of a correction, and every correction but 0 was 1. The
checks of runtime/opapi/kernels/.clang-tidy look at all sources of kernels, as the build compiles them.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = os.environ["ACLTAPE_BUILD"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELS = os.path.join(ROOT, "runtime", "opapi", "kernels")
CHECKS = "-*,readability-implicit-bool-conversion,bugprone-narrowing-conversions"
OPTIONS = [{"key": "readability-implicit-bool-conversion.AllowIntegerConditions", "value": "true"},
           {"key": "readability-implicit-bool-conversion.AllowPointerConditions", "value": "true"}]
PLANTED = """
#include <ATen/ATen.h>
auto Planted(const at::Tensor& self, const std::vector<int64_t>& dims, int64_t correction) {
  return at::var_mean(self, dims, correction, true);
}
"""


def kernel_commands():
    with open(os.path.join(BUILD, "compile_commands.json")) as file:
        rows = json.load(file)
    return [row for row in rows if "acltape_kernels.dir" in row["command"]]


@unittest.skipUnless(shutil.which("clang-tidy"), "clang-tidy is missing; scripts/setup installs it")
class Conversions(unittest.TestCase):
    def findings_of(self, folder, source):
        done = subprocess.run(["clang-tidy", "-p", folder, "--quiet", f"--checks={CHECKS}",
                               "--extra-arg=-ferror-limit=0", "--config=" + json.dumps({"CheckOptions": OPTIONS}),
                               f"--header-filter={KERNELS}/", source],
                              capture_output=True, text=True, check=False)
        # Clang reports errors in libtorch's headers that the build's compiler does not see.
        own = [line for line in done.stdout.splitlines() if re.match(rf"({ROOT}|{folder})\S*: error:", line)]
        self.assertEqual(own, [])
        return sorted(set(re.findall(r"^\S+: warning: .*", done.stdout, re.M)))

    def test_no_kernel_converts_in_silence(self):
        sources = [row["file"] for row in kernel_commands()]
        self.assertGreater(len(sources), 3)
        found = [finding for source in sources for finding in self.findings_of(BUILD, source)]
        self.assertEqual(found, [], "\n".join(found))

    def test_the_correction_that_became_a_flag_would_be_found(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "planted.cpp")
            with open(source, "w") as file:
                file.write(PLANTED)
            like = kernel_commands()[0]
            with open(os.path.join(folder, "compile_commands.json"), "w") as file:
                json.dump([{**like, "file": source, "command": like["command"].replace(like["file"], source)}], file)
            found = self.findings_of(folder, source)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], r"planted\.cpp:4:\d+: warning: implicit conversion 'int64_t'.* -> bool")


if __name__ == "__main__":
    unittest.main()
