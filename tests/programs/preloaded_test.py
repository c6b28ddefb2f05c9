#!/usr/bin/env python3
"""A library that the user preloads and that replaces functions of the interface finds the true ones by RTLD_NEXT. The
environment is that of recorded_test.py.
"""
import os
import subprocess
import unittest

import acl_programs
import recorded_test
from recorded_test import ACLTAPE

HOOK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include "acl/acl.h"
aclError aclrtMalloc(void **pointer, size_t bytes, aclrtMemMallocPolicy policy) {
  aclError (*next)(void **, size_t, aclrtMemMallocPolicy) = dlsym(RTLD_NEXT, "aclrtMalloc");
  if (next == NULL) return 1;
  fputs("hooked\\n", stderr);
  return next(pointer, bytes, policy);
}
"""
WORK = """
#include <stddef.h>
#include "acl/acl.h"
int work(void) {
  void *memory = NULL;
  if (aclInit(NULL) != 0 || aclrtSetDevice(0) != 0) return 1;
  if (aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) != 0) return 2;
  return aclrtFree(memory) + aclFinalize();
}
"""
PROGRAM = """
#include <dlfcn.h>
int main(int count, char **words) {
  void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  return library == 0 ? 3 : ((int (*)(void))dlsym(library, "work"))();
}
"""


class Preloaded(recorded_test.RecordedTest):
    def compile(self, name, text, *options):
        source, binary = (os.path.join(self.folder, name + suffix) for suffix in (".c", ""))
        with open(source, "w") as file:
            file.write(text)
        subprocess.run([acl_programs.COMPILERS[".c"], source, "-I" + acl_programs.SDK + "/include", *options, "-o",
                        binary], check=True)
        return binary

    def run_program(self, *words):
        """A program that opens a library of its own, as Python opens the adapter: libascendcl.so is in that scope."""
        linked = ("-L" + acl_programs.LIBRARIES, "-lascendcl")
        work = self.compile("work.so", WORK, "-shared", "-fPIC", *linked)
        hook = self.compile("hook.so", HOOK, "-shared", "-fPIC", "-ldl")
        # The folder of the libraries is the command's to give.
        environment = {**acl_programs.environment({"LD_PRELOAD": hook}), "LD_LIBRARY_PATH": ""}
        done = subprocess.run([ACLTAPE, *words, "--", self.compile("program", PROGRAM, "-ldl"), work],
                              capture_output=True, text=True, timeout=120, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("hooked", done.stderr)

    def test_a_hook_finds_the_function_that_it_replaces(self):
        self.run_program("run")

    def test_a_recorded_program_has_its_hook(self):
        trace = os.path.join(self.folder, "t.db")
        self.run_program("record", "--soft", "--force", "-o", trace)
        found = subprocess.run([ACLTAPE, "query", trace, "SELECT count(*) AS n FROM call WHERE op = 'aclrtMalloc'"],
                               capture_output=True, text=True, check=True).stdout
        self.assertEqual(int(found.split()[-1]), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
