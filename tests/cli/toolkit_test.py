#!/usr/bin/env python3
"""The soft device's folder as scripts of a toolkit use it: its environment, its build rules, its libraries' names, and
the profiler's command."""
import csv
import glob
import json
import os
import shutil
import subprocess
import sys
import unittest

from harness import CommandTest, main

SDK = os.environ["ACLTAPE_SDK"]
COMPILER = os.environ.get("CXX", "g++")

# Two adds and a copy, profiled.
PROGRAM = r"""
#include <cstdio>
#include <cstring>
#include "acl/acl.h"
#include "acl/acl_prof.h"
#include "aclnnop/aclnn_add.h"
#define MUST(call) if (int code = (call); code != 0) return printf("%s gives %d\n", #call, code), 1
int main(int, char** words) {
  MUST(aclInit(nullptr));
  MUST(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  MUST(aclrtCreateStream(&stream));
  const int64_t size = 1024, stride = 1;
  void* memory[3];
  aclTensor* tensors[3];
  for (int i = 0; i < 3; ++i) {
    MUST(aclrtMalloc(&memory[i], 4 * size, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclrtMemset(memory[i], 4 * size, 0, 4 * size));
    tensors[i] = aclCreateTensor(&size, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &size, 1, memory[i]);
  }
  const float one = 1;
  aclScalar* alpha = aclCreateScalar(const_cast<float*>(&one), ACL_FLOAT);
  MUST(aclprofInit(words[1], strlen(words[1])));
  uint32_t device = 0;
  const uint64_t kinds = ACL_PROF_ACL_API | ACL_PROF_TASK_TIME;
  aclprofConfig* config = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, nullptr, kinds);
  MUST(aclprofStart(config));
  for (int i = 0; i < 2; ++i) {
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    MUST(aclnnAddGetWorkspaceSize(tensors[0], tensors[1], alpha, tensors[2], &bytes, &executor));
    MUST(aclnnAdd(nullptr, bytes, executor, stream));
  }
  void* host = nullptr;
  MUST(aclrtMallocHost(&host, 4 * size));  // pinned, so that the copy is a task of the stream
  MUST(aclrtMemcpyAsync(host, 4 * size, memory[2], 4 * size, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  MUST(aclrtSynchronizeStream(stream));
  MUST(aclprofStop(config));
  MUST(aclprofDestroyConfig(config));
  MUST(aclprofFinalize());
  puts("profiled");
}
"""


def shell(text, **options):
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, **options)


class Toolkit(CommandTest):
    def test_its_environment_is_sourced_as_a_toolkits(self):
        for script in ("set_env.sh", "bin/setenv.bash"):
            done = shell(f". {SDK}/{script} && env && command -v msprof npu-smi", env={"PATH": os.environ["PATH"]})
            said = done.stdout.splitlines()
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for name in ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH"):
                self.assertIn(f"{name}={os.path.realpath(SDK)}", said)
            self.assertEqual(said[-2:], [os.path.realpath(SDK) + "/bin/msprof", os.path.realpath(SDK) + "/bin/npu-smi"])

    def test_a_project_without_device_code_includes_the_rules_and_another_is_refused(self):
        for place in ("", "x86_64-linux/", "compiler/", "tools/"):
            rules = f"{SDK}/{place}tikcpp/ascendc_kernel_cmake/ascendc.cmake"
            folder = self.path("project" + place.replace("/", "-"))
            os.mkdir(folder)
            head = f"cmake_minimum_required(VERSION 3.16)\nproject(p LANGUAGES NONE)\ninclude({rules})\n"
            for line, code in (("", 0), ("ascendc_library(kernels STATIC add.cpp)\n", 1),
                               ("ascendc_fatbin_library(kernels add.cpp)\n", 1)):
                with open(os.path.join(folder, "CMakeLists.txt"), "w") as file:
                    file.write(head + line)
                done = subprocess.run(["cmake", "-S", folder, "-B", folder + "/build"], capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
                said = " ".join(done.stderr.split())
                if code:
                    self.assertIn("(kernels): the soft device compiles no code for cores of a device. Build this part "
                                  "with the vendor's toolkit", said)

    def test_the_newer_names_of_the_operator_library_link_one_library(self):
        program = self.path("linked.cpp")
        with open(program, "w") as file:
            file.write(PROGRAM)
        names = ("opapi_math", "opapi_nn", "opapi_transformer", "opapi_cv")
        links = " ".join(f"-l{name}" for name in names)
        done = shell(f"{COMPILER} -std=c++17 {program} -I{SDK}/include -L{SDK}/lib64 {links} -lascendcl -lnnopbase "
                     f"-Wl,-rpath,{SDK}/lib64 -o {program}.out && readelf -d {program}.out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("[libopapi.so]"), 1, done.stdout)
        self.assertNotIn("opapi_", done.stdout)

    def test_a_device_of_toolkit_91_updates_tasks_of_kernels_itself(self):
        ask = ("import ctypes; acl = ctypes.CDLL('libascendcl.so'); value = ctypes.c_int32(-1); acl.aclInit(None); "
               "print(acl.aclrtGetDeviceCapability(0, 1, ctypes.byref(value)), value.value)")
        for toolkit, value in (("9.0.0", 0), ("9.1.0", 1)):
            environment = {"LD_LIBRARY_PATH": f"{SDK}/lib64", "ACLTAPE_SOFT_TOOLKIT": toolkit}
            done = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True)
            self.assertEqual((done.stdout, done.stderr), (f"0 {value}\n", ""))

    def test_headers_that_samples_name_are_there(self):
        program = self.path("headers.cpp")
        with open(program, "w") as file:
            file.write('#include "profiling/aprof_pub.h"\n#include "aclnnop/aclnn_nsa_select_attention_infer.h"\n'
                       "int main() { return MsprofSetDeviceIdByGeModelIdx(1, 0) != 0 || "
                       "aclnnNsaSelectedAttentionInfer == nullptr; }\n")
        done = shell(f"{COMPILER} -std=c++17 {program} -I{SDK}/include -L{SDK}/lib64 -lopapi -lnnopbase -lprofapi "
                     f"-Wl,-rpath,{SDK}/lib64 -o {program}.out && {program}.out")
        self.assertEqual(done.returncode, 0, done.stderr)


class Msprof(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program = os.path.join(cls.folder, "profiled.cpp")
        with open(program, "w") as file:
            file.write(PROGRAM)
        cls.program = program + ".out"
        done = shell(f"{COMPILER} -std=c++17 {program} -I{SDK}/include -L{SDK}/lib64 -lopapi -lascendcl -lnnopbase -o "
                     f"{cls.program}")
        if done.returncode != 0:
            raise unittest.SkipTest("there is no C++ compiler: " + done.stderr)

    def profiled(self, name):
        folder = self.path(name)
        done = self.acltape("run", "--", self.program, folder)
        self.assertIn("profiled", done.out)
        profile, = glob.glob(folder + "/PROF_*")
        self.assertRegex(os.path.basename(profile), r"^PROF_\d{6}_\d{17}_[A-Z]{16}$")
        return profile

    def msprof(self, *words, code=0):
        done = subprocess.run([SDK + "/bin/msprof", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else done.stdout

    def table(self, profile, name):
        path, = glob.glob(f"{profile}/mindstudio_profiler_output/{name}_*.csv")
        with open(path) as file:
            return list(csv.DictReader(file))

    def test_the_tables_hold_the_calls_and_what_the_device_did(self):
        profile = self.profiled("tables")
        self.msprof("--export=on", "--output=" + profile)
        rows = self.table(profile, "op_summary")
        adds = [(row["Op Name"], row["OP Type"], row["Task Type"]) for row in rows if "Add" in row["Op Name"]]
        self.assertEqual(adds, 2 * [("aclnnAdd", "Add", "AI_VECTOR_CORE")])
        self.assertEqual([row["Task Type"] for row in rows][-1], "MEMCPY_ASYNC")
        begins = [float(row["Task Start Time(us)"]) for row in rows]
        self.assertEqual(begins, sorted(begins))
        self.assertTrue(all(float(row["Task Duration(us)"]) > 0 for row in rows))
        statistic = {row["OP Type"]: row for row in self.table(profile, "op_statistic")}
        self.assertEqual(statistic["Add"]["Count"], "2")
        calls = {row["API Name"]: int(row["Count"]) for row in self.table(profile, "api_statistic")}
        self.assertEqual((calls["aclnnAdd"], calls["aclrtMemcpyAsync"], calls["aclrtSynchronizeStream"]), (2, 1, 1))

    def test_the_timeline_leads_from_each_call_to_its_task(self):
        profile = self.profiled("timeline")
        self.msprof("--export=on", "--output=" + os.path.dirname(profile))
        path, = glob.glob(profile + "/mindstudio_profiler_output/msprof_*.json")
        with open(path) as file:
            events = json.load(file)
        spans = {(event["pid"], event["tid"], event["ts"]): event for event in events if event["ph"] == "X"}
        starts = {event["id"]: event for event in events if event["ph"] == "s"}
        ends = {event["id"]: event for event in events if event["ph"] == "f"}
        self.assertEqual(set(starts), set(ends))
        found = [spans[(end["pid"], end["tid"], end["ts"])]["name"] for end in ends.values()]
        self.assertEqual(found.count("aclnnAdd"), 2)
        calls = [event for event in spans.values() if event["name"] == "AscendCL@aclnnAdd"]
        for number, start in starts.items():
            end = ends[number]
            if spans[(end["pid"], end["tid"], end["ts"])]["name"] != "aclnnAdd":
                continue
            around = [call for call in calls if float(call["ts"]) <= float(start["ts"]) <=
                      float(call["ts"]) + call["dur"]]
            self.assertEqual(len(around), 1, start)
            self.assertLessEqual(float(start["ts"]), float(end["ts"]))
        self.assertIn("Computing", {event["name"] for event in events})

    def test_what_it_cannot_do_is_refused_in_a_sentence(self):
        self.assertIn("holds no profile", self.msprof("--export=on", "--output=" + self.folder + "/none", code=1))
        self.assertIn("given besides: ./program", self.msprof("--output=x", "./program", code=1))
        profile = self.profiled("damaged")
        shutil.rmtree(profile + "/host/data")
        self.assertIn("No such file", self.msprof("--export=on", "--output=" + profile, code=1))


if __name__ == "__main__":
    main()
