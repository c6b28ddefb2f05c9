#!/usr/bin/env python3
"""The libraries of the soft device that a program gets: by its profile, and by the wheels that are installed."""
import os
import shutil
import subprocess
import sys
import unittest

from harness import CommandTest, main

# Says whether an operator without a kernel is there for the program, and one with a kernel.
LOOKS = """import ctypes
library = ctypes.CDLL("libopapi.so")
print(hasattr(library, "aclnnAttentionToFFN"), hasattr(library, "aclnnAdd"))
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


class NpuSmi(CommandTest):
    """The vendor's tool, asked in the forms of vllm-ascend's set-up, its health check and its benchmarks."""

    def asked(self, *words, code=0, **settings):
        done = self.acltape("run", "--", "npu-smi", *words, env={**os.environ, **settings}, code=code)
        return done.err if code else done.out

    def facts(self, *words):
        lines = self.asked(*words, ACLTAPE_SOFT_DEVICES="1").splitlines()
        return {name.strip(): value.strip() for name, value in (line.split(":") for line in lines if ":" in line)}

    def test_the_table_has_a_row_for_each_device(self):
        rows = [line for line in self.asked("info", ACLTAPE_SOFT_DEVICES="2").splitlines() if "910B1" in line]
        self.assertEqual([row.split()[1:3] for row in rows], [["0", "910B1"], ["1", "910B1"]])
        self.assertEqual(len({len(line) for line in self.asked("info").splitlines()}), 1)

    def test_the_chip_is_found_as_the_plug_in_finds_it(self):
        self.assertEqual(self.facts("info", "-l")["NPU ID"], "0")
        self.assertNotIn("Chip Name", self.facts("info", "-t", "board", "-i", "0"))
        chip = self.facts("info", "-t", "board", "-i", "0", "-c", "0")
        self.assertEqual((chip["Chip Type"] + chip["Chip Name"]).lower(), "ascend910b1")
        self.assertEqual(self.facts("info", "-i", "0", "-t", "health")["Health"], "OK")

    def test_the_mapping_leads_to_the_device_of_acl(self):
        self.assertEqual(self.asked("info", "-m").splitlines()[1].split(), ["0", "0", "0", "Ascend", "910B1"])

    def test_what_it_does_not_answer_is_refused_in_a_sentence(self):
        self.assertIn("no such NPU", self.asked("info", "-t", "board", "-i", "9", code=1))
        self.assertIn("it answers info, info -l", self.asked("info", "-t", "topo", code=1))


ADAPTER = 'extern "C" int AdapterWorks() { return 7; }'
# A library over the adapter: it names a library of the toolkit that the soft device lacks.
WHEEL = """
extern "C" long toolkitFunctionOfC(int);
namespace toolkit { struct Platform { static int Read(int); }; }
extern "C" long CallsC() { return toolkitFunctionOfC(1); }
extern "C" long CallsCxx() {
  try { return toolkit::Platform::Read(1); } catch (...) { return -1; }
}
"""
CALLS = """import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(library.CallsC(), library.CallsCxx())
"""
COMPILER = shutil.which("c++") or shutil.which("g++")


@unittest.skipUnless(COMPILER, "no C++ compiler")
class WheelsOverTheAdapter(CommandTest):
    """A wheel that asks for the adapter, with libraries that name libraries of a toolkit."""

    def library(self, name, source, *more):
        path = self.path(os.path.join("site", name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run([COMPILER, "-shared", "-fPIC", "-x", "c++", "-", "-x", "none", "-o", path,
                        f"-Wl,-soname,{os.path.basename(path)}", *more],
                       input=source.encode(), check=True, stderr=subprocess.PIPE)
        return path

    def setUp(self):
        super().setUp()
        toolkit = self.library("absent/libtoolkit_part.so", "int nothing;")
        self.library("torch_npu/libadapter.so", ADAPTER)
        self.library("torch/lib/libc10.so", "int nothing;")
        named = ["-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", toolkit]
        self.wheel = self.library("own_ops/libown.so", WHEEL, *named)
        self.package = self.library("own_ops/vendors/mine/op_api/lib/libcust_opapi.so", WHEEL, *named)
        os.remove(toolkit)
        for package in ("torch", "torch_npu", "own_ops"):
            open(self.path(f"site/{package}/__init__.py"), "w").close()
        facts = self.path("site/own_ops-1.0.dist-info")
        os.makedirs(facts, exist_ok=True)
        with open(os.path.join(facts, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\nName: own-ops\nVersion: 1.0\nRequires-Dist: torch-npu==2.13.0\n\n")
        with open(os.path.join(facts, "RECORD"), "w") as file:
            file.write("own_ops/__init__.py,,\nown_ops/libown.so,,\n")
        self.environment = {**os.environ, "PYTHONPATH": self.path("site"), "ACLTAPE_CACHE": self.path("cache")}

    def loads(self, library, code=0):
        return self.acltape("run", "--", sys.executable, self.script(CALLS), library, env=self.environment, code=code)

    def test_libraries_and_names_of_a_toolkit_are_generated_and_say_their_name(self):
        done = self.loads(self.wheel)
        self.assertEqual(done.out.strip(), "207000 -1")
        self.assertIn("toolkitFunctionOfC is not offered by the soft device", done.err)
        self.assertIn("toolkit::Platform::Read(int) is not offered by the soft device", done.err)

    def test_the_check_counts_them(self):
        done = self.acltape("env", "--check", "--format", "csv", sys.executable, env=self.environment)
        self.assertIn("own_ops/libown.so,2,0,2,0,generated: libtoolkit_part.so", done.out)
        self.assertNotIn("libcust_opapi", done.out)


if __name__ == "__main__":
    main()
