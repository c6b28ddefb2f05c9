#!/usr/bin/env python3
"""Each header of the SDK compiles alone, as programs of others include it.

    headers_alone_test.py INCLUDE_DIR COMPILER_OF_C COMPILER_OF_CXX
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import unittest

INCLUDE, C, CXX = sys.argv[1:]
# Language and options. Both ABIs of the C++ library are in use among programs of a toolkit.
STRICT = ["-Wextra", "-pedantic"]
WAYS = [(C, "c", ["-std=c99"]), (C, "c", ["-std=c11", *STRICT])] + [
    (CXX, "c++", [f"-std={standard}", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", *STRICT])
    for standard in ("c++11", "c++14", "c++17", "c++20") for abi in (0, 1)]
# Headers that toolkits have and programs include.
EXPECTED = """acl/acl.h acl/acl_base.h acl/acl_base_mdl.h acl/acl_base_rt.h acl/acl_dump.h acl/acl_mdl.h acl/acl_op.h
    acl/acl_op_compiler.h acl/acl_platform.h acl/acl_prof.h acl/acl_rt.h acl/acl_rt_allocator.h acl/acl_rt_api.h
    acl/acl_tdt.h acl/acl_tdt_queue.h aclnn/acl_meta.h aclnn/aclnn_base.h aclnn/opdev/fp16_t.h aclnn_util.h
    hccl/hccl.h hccl/hccl_types.h
    mstx/ms_tools_ext.h securec.h""".split()


def complaints(job):
    header, (compiler, language, options) = job
    source = f"#include <string.h>\n#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}\n"
    run = subprocess.run([compiler, "-x", language, *options, "-Wall", "-Werror", "-fsyntax-only",
                          "-I", INCLUDE, "-"], input=source, capture_output=True, text=True)
    return f"{header} {options}: {run.stderr[:500]}" if run.returncode else ""


class HeadersAlone(unittest.TestCase):
    maxDiff = None

    def test_SDK_01_the_headers_of_a_toolkit_are_there(self):
        missing = [name for name in EXPECTED if not (pathlib.Path(INCLUDE) / name).exists()]
        self.assertEqual(missing, [])

    def test_SDK_01_each_compiles_alone_without_a_warning(self):
        headers = [str(path.relative_to(INCLUDE)) for path in pathlib.Path(INCLUDE).rglob("*.h")
                   if "aclnnop" not in path.parts]
        self.assertGreaterEqual(len(headers), len(EXPECTED))
        jobs = [(header, way) for header in sorted(headers) for way in WAYS]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            self.assertEqual([text for text in pool.map(complaints, jobs) if text], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
