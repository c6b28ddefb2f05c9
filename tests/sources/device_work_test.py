#!/usr/bin/env python3
"""Each function of the interface that brings work to a device has one place in replayer/ that calls it.

The place is replayer/device/device_work.{h,cpp}, except for what the list of owners names. A use elsewhere
is printed as FILE:LINE. Texts in quotes are not uses: printed programs name the functions, too.
Nor are the positions of parameters.
"""
import os
import re
import tempfile
import unittest

from source_text import ROOT, code_of, read, source_files

UNIT = ("replayer/device/device_work.cpp", "replayer/device/device_work.h")
# The functions that are called elsewhere, and the files that call them.
OWNERS = (
    (r"aclmdlRICapture(?:Begin|End|ToModelRIBegin)|aclmdlRIDestroy", ("replayer/device/captured_graph.cpp",)),
    (r"launch\s*\(\s*functions_\s*\.\s*launch", ("replayer/device/bound_call.cpp",)),  # an operator's second phase
    (r"aclrt(?:Memcpy|Memset)(?!Kind)\w*|aclrtValue(?:Write|Wait)|aclrt(?:Reduce|RandomNum)Async"
     r"|aclrt(?:Record|Reset|StreamWait|Create|Destroy|Synchronize)Event\w*"
     r"|aclrt(?:Create|Destroy|Synchronize)(?:Stream|Device)\w*"
     r"|aclrt(?:Create|Destroy|Record|WaitAndReset)Notify|aclrtLaunch\w*"
     r"|aclmdlRIExecute\w*|aclmdlRICaptureTask\w*", UNIT),
)


def find_uses(root=ROOT):
    """Uses of these functions, those of their owners under True."""
    found = {True: [], False: []}
    for path in source_files(root, ("replayer",)):
        code = code_of(read(path, root))
        for pattern, owners in OWNERS:
            for match in re.finditer(rf"(?<!\bposition::)\b(?:{pattern})", code):
                line = code.count("\n", 0, match.start()) + 1
                where = f"{path}:{line}: {match.group()}"
                found[path in owners].append(where if path in owners
                                             else f"{where} belongs in {owners[0]}")
    return found


class DeviceWork(unittest.TestCase):
    def test_only_the_owners_call_what_issues_work(self):
        others = find_uses()[False]
        self.assertEqual(others, [], "\n" + "\n".join(others))

    def test_the_owners_are_seen(self):
        """The check is blind without them."""
        files = {use.split(":")[0] for use in find_uses()[True]}
        self.assertEqual(files, {owner for _, owners in OWNERS for owner in owners})


class PlantedUses(unittest.TestCase):
    """The check finds what it is for, and nothing else."""

    def uses(self, text):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "replayer", "acl_level"))
            with open(os.path.join(root, "replayer", "acl_level", "sink.cpp"), "w") as file:
                file.write(text)
            return find_uses(root)[False]

    def test_a_planted_call_is_named_with_file_and_line(self):
        self.assertEqual(self.uses("void F() {\n  device.api().aclrtRecordEvent(event, stream);\n}\n"),
                         ["replayer/acl_level/sink.cpp:2: aclrtRecordEvent belongs in replayer/device/device_work.cpp"])

    def test_every_form_of_a_call_is_found(self):
        for text in ("api.aclrtMemcpy2dAsync(to);", "if (api.aclrtValueWait == nullptr) return;",
                     "auto f = api.aclrtSynchronizeDeviceWithTimeout;", "api.aclrtCreateStream(&s);",
                     "api.aclrtDestroyStreamForce(s);", "api.aclmdlRIExecuteAsync(m, s);",
                     "api.aclmdlRICaptureTaskGrpBegin(s);", "api.aclmdlRICaptureEnd(s, &m);",
                     "api.aclrtStreamWaitEvent(s, e);", "api.aclrtWaitAndResetNotify(n, s, 0);",
                     "info->launch(functions_.launch, memory);"):
            with self.subTest(text=text):
                self.assertEqual(len(self.uses(text)), 1)

    def test_texts_comments_and_types_are_no_uses(self):
        self.assertEqual(self.uses('// aclrtRecordEvent\nconst char* f = "aclrtMemcpy(a);";\n'
                                   "aclrtMemcpyKind kind; aclmdlRICaptureMode mode; aclrtEvent e;\n"
                                   "namespace rows = meaning::position::aclrtMemcpy2d;\n"), [])


if __name__ == "__main__":
    unittest.main()
