#!/usr/bin/env python3
"""The libraries of the soft device that a program gets, by the settings of its profile."""
import os
import sys

from harness import CommandTest, main

# Says whether an operator without a kernel is there for the program, and one with a kernel.
LOOKS = """import ctypes
library = ctypes.CDLL("libopapi.so")
print(hasattr(library, "aclnnMoeDistributeCombine"), hasattr(library, "aclnnAdd"))
"""


class SoftLibraries(CommandTest):
    def seen(self, **settings):
        environment = {**os.environ, **settings}
        return self.acltape("run", "--", sys.executable, self.script(LOOKS), env=environment).out.strip()

    def test_every_operator_is_exported_without_a_setting(self):
        self.assertEqual(self.seen(), "True True")
        self.assertEqual(self.seen(ACLTAPE_SOFT_EXPORTS="all"), "True True")

    def test_exports_leaves_out_what_has_no_kernel(self):
        self.assertEqual(self.seen(ACLTAPE_SOFT_EXPORTS="kernels"), "False True")

    def test_a_profile_file_sets_exports_and_the_environment_stands_above_it(self):
        profile = self.path("profile")
        with open(profile, "w") as file:
            file.write("# clients that choose by presence\nstreams = 64\nexports = kernels\n")
        self.assertEqual(self.seen(ACLTAPE_SOFT_PROFILE=profile), "False True")
        self.assertEqual(self.seen(ACLTAPE_SOFT_PROFILE=profile, ACLTAPE_SOFT_EXPORTS="all"), "True True")


if __name__ == "__main__":
    main()
