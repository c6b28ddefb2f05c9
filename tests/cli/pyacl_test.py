#!/usr/bin/env python3
"""The Python package `acl` of the SDK: what programs get of it, and what a recording has of them."""
import os
import re
import sqlite3
import subprocess
import sys

from harness import SOURCE, CommandTest, main, run

PROGRAM = os.path.join(SOURCE, "tests", "programs", "pyacl.py")
GENERATOR = os.path.join(SOURCE, "acl", "generate", "pyacl.py")
SDK = os.environ.get("ACLTAPE_SDK", os.path.join(SOURCE, "build", "sdk"))

# Each call is wrong in its arguments, before it reaches the device.
WRONG_ARGUMENTS = """
import acl
for call in (
    lambda: acl.rt.malloc("1024", 0),
    lambda: acl.rt.malloc(1024.0, 0),
    lambda: acl.rt.malloc(1024),
    lambda: acl.rt.memcpy(None, 1, 2, 3, 4),
    lambda: acl.rt.create_stream(1),
    lambda: acl.init(7),
    lambda: acl.set_tensor_desc_name(1, b"name"),
    lambda: acl.create_tensor_desc(0, 5, 2),
    lambda: acl.create_tensor_desc(0, [1, "2"], 2),
    lambda: acl.rt.ipc_mem_close("a\\0b"),
    lambda: acl.rt.set_device(1 << 31),
    lambda: acl.rt.launch_callback(5, [], 0, 0),
    lambda: acl.util.bytes_to_ptr("text"),
    lambda: acl.util.numpy_to_ptr([1]),
    lambda: acl.util.ptr_to_bytes(0, 8),
):
    try:
        call()
        print("accepted")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""
WHAT_IS_WRONG = """\
TypeError: size of acl.rt.malloc(size, policy) must be an int, not str
TypeError: size of acl.rt.malloc(size, policy) must be an int, not float
TypeError: acl.rt.malloc(size, policy) takes 2 arguments, not 1
TypeError: dst of acl.rt.memcpy(dst, dest_max, src, count, kind) must be an int, not NoneType
TypeError: acl.rt.create_stream() takes 0 arguments, not 1
TypeError: config_path of acl.init(config_path) must be a str, not int
TypeError: name of acl.set_tensor_desc_name(desc, name) must be a str, not bytes
TypeError: dims of acl.create_tensor_desc(data_type, dims, format) must be a list, not int
TypeError: dims of acl.create_tensor_desc(data_type, dims, format)[1] must be an int, not str
ValueError: key of acl.rt.ipc_mem_close(key) has a null character
OverflowError: device_id of acl.rt.set_device(device_id) is 2147483648, which does not fit into 32 bits
TypeError: fn of acl.rt.launch_callback(fn, user_data_list, block_type, stream) must be callable, not int
TypeError: data of acl.util.bytes_to_ptr(data) must be bytes, not str
TypeError: array of acl.util.numpy_to_ptr(array) must be an array of numpy, not list
ValueError: ptr of acl.util.ptr_to_bytes(ptr, size) is 0, which is no address
"""

# What comes back: outputs in the order of the vendor's package, texts, lists, an input that comes back.
VALUES = """
import acl
print(acl.init(), acl.rt.set_device(0), acl.rt.get_device(), acl.rt.get_device_count())
print(acl.get_soc_name(), acl.rt.get_run_mode(), acl.rt.device_get_stream_priority_range())
desc = acl.create_tensor_desc(1, [2, 3], 2)
acl.set_tensor_desc_name(desc, "x")
print(acl.get_tensor_desc_type(desc), acl.get_tensor_desc_size(desc), acl.get_tensor_desc_dim_v2(desc, 1),
      acl.get_tensor_desc_name(desc), acl.set_tensor_shape(desc, [4]), acl.get_tensor_desc_num_dims(desc),
      acl.destroy_tensor_desc(desc))
print(acl.float16_to_float(acl.float_to_float16(1.5)), acl.data_type_size(9))
memory, ret = acl.rt.malloc(64, 0)
buffer = acl.create_data_buffer(memory, 64)
print(acl.get_data_buffer_addr(buffer) == memory, acl.get_data_buffer_size(buffer), acl.destroy_data_buffer(buffer))
key, ret = acl.rt.ipc_mem_get_export_key(memory, 64, 65, 0)
print(type(key).__name__, ret, acl.rt.ipc_mem_set_import_pid(key, [1]))
active, flags, ret = acl.rt.get_primary_ctx_state(0)
print(active, ret, acl.get_recent_err_msg())
array = acl.util.ptr_to_bytes(acl.util.bytes_to_ptr(b"abc"), 3)
print(array, acl.util.stop_thread(1), acl.finalize(), acl.finalize())
"""
GIVEN = """\
0 0 (0, 0) (8, 0)
Ascend910B1 (1, 0) (7, 0, 0)
1 12 (3, 0) x 0 1 None
1.5 8
True 64 0
str 0 0
1 0 None
b'abc' 100000 0 100037
"""


DESCRIPTIONS = """
import acl, operator, sys
for name in sys.argv[1:]:
    try:
        print(operator.attrgetter(name)(acl).__doc__)
    except AttributeError:
        print(None)
"""
# A function that the library does not have is not in the package, as with an older toolkit.
NOT_EXPORTED = {"rt.device_set_limit", "rt.device_get_limit"}


class PyAcl(CommandTest):
    def test_a_program_on_pyacl_alone_runs(self):
        self.assertEqual(self.acltape("run", "--", sys.executable, PROGRAM).out, "fine\n")

    def test_wrong_arguments_raise_and_say_which(self):
        result = self.acltape("run", "--", sys.executable, self.script(WRONG_ARGUMENTS))
        self.assertEqual(result.out, WHAT_IS_WRONG)

    def test_values_come_before_the_code(self):
        self.assertEqual(self.acltape("run", "--", sys.executable, self.script(VALUES)).out, GIVEN)

    def test_every_function_of_the_table_is_there_with_its_prototype(self):
        names = subprocess.run([sys.executable, "-B", GENERATOR, "--names"], capture_output=True, text=True,
                               check=True).stdout.split()
        self.assertEqual(len(names), len(set(names)))
        shown = self.acltape("run", "--", sys.executable, self.script(DESCRIPTIONS), *names).out.splitlines()
        for name, line in zip(names, shown, strict=True):
            if name not in NOT_EXPORTED:
                self.assertRegex(line, rf"^(\w+(, \w+)* = )?acl\.{re.escape(name)}\([\w, ]*\): acl\w+$")
        self.assertEqual({name for name, line in zip(names, shown) if line == "None"}, NOT_EXPORTED)

    def test_it_works_beside_its_library_without_acltape(self):
        environment = {**os.environ, "PYTHONPATH": os.path.join(SDK, "python", "site-packages")}
        environment.pop("LD_LIBRARY_PATH", None)
        text = self.script("import acl\nprint(acl.init(), acl.get_soc_name())\n")
        result = run(sys.executable, "-B", text, env=environment)
        self.assertEqual(result.out, "0 Ascend910B1\n", result)

    def test_a_vendors_package_stays_in_front_where_the_soft_device_was_not_asked_for(self):
        folder = self.path("vendor")
        os.makedirs(os.path.join(folder, "acl"), exist_ok=True)
        with open(os.path.join(folder, "acl", "__init__.py"), "w") as file:
            file.write("owner = 'vendor'\n")
        text = self.script("import acl\nprint(getattr(acl, 'owner', 'soft device'))\n")
        environment = {**os.environ, "PYTHONPATH": folder}
        self.assertEqual(run(sys.executable, text, env=environment).out, "vendor\n")
        recorded = self.acltape("record", "--force", "-o", self.path("plain.db"), "--", sys.executable, text,
                                env=environment)
        self.assertIn("vendor\n", recorded.out)
        soft = self.acltape("run", "--", sys.executable, text, env=environment)
        self.assertEqual(soft.out, "soft device\n")


class PyAclRecorded(CommandTest):
    def test_calls_are_recorded_with_their_lines(self):
        trace = self.path("pyacl.db")
        result = self.acltape("record", "--soft", "--force", "-o", trace, "--", sys.executable, PROGRAM)
        self.assertIn("fine\n", result.out)
        with open(PROGRAM) as file:
            lines = file.read().splitlines()
        rows = sqlite3.connect(trace).execute(
            "SELECT c.op, l.file, l.line FROM call c LEFT JOIN call_location l USING (call_id)").fetchall()
        calls = [row for row in rows if row[0].startswith(("aclrt", "aclInit", "aclmdlRI"))]
        self.assertGreater(len(calls), 500)
        for op, file, line in calls:
            self.assertEqual(file, PROGRAM, (op, file, line))
        spelled = {"aclInit": "acl.init(", "aclrtMalloc": "acl.rt.malloc(", "aclrtMemcpyAsync": "acl.rt.memcpy_async(",
                   "aclrtRecordEvent": "acl.rt.record_event(", "aclrtCreateStream": "acl.rt.create_stream(",
                   "aclrtLaunchCallback": "acl.rt.launch_callback("}
        for op, text in spelled.items():
            found = {lines[line - 1] for name, _, line in calls if name == op}
            self.assertTrue(found, op)
            for line in found:
                self.assertIn(text, line, op)

    def test_the_recording_replays(self):
        trace = self.path("replayed.db")
        self.acltape("record", "--soft", "--force", "-o", trace, "--payload", "all", "--", sys.executable, PROGRAM)
        self.acltape("replay", trace, "--level", "acl")


if __name__ == "__main__":
    main()
