// How a line of the program is named: from the program's folder, or from its package on.
#include "analyzer/program/source_lines.h"

#include <gtest/gtest.h>

#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Out;

struct Named {
  const char* file;
  const char* shown;
};

constexpr Named kNamed[] = {
    {"/home/user/project/model/train.py", "model/train.py:7 (forward)"},
    {"/opt/tools/train.py", "/opt/tools/train.py:7 (forward)"},
    {"/usr/lib/python3/dist-packages/torch/nn/linear.py", "torch/nn/linear.py:7 (forward)"},
    // A virtual environment in the program's folder.
    {"/home/user/project/.venv/lib/python3.11/site-packages/vllm/worker.py",
     "vllm/worker.py:7 (forward)"},
};

TEST(SourceLines, NameAFileFromItsPackageOrTheProgramsFolderOn) {
  for (const Named& named : kNamed) {
    SCOPED_TRACE(named.file);
    test::TemporaryTrace file("source-lines");
    test::TraceBuilder trace(file.path());
    trace.writer().SetMeta("cwd", "/home/user/project");
    const test::Tensor x = trace.NewTensor({4});
    trace.Line(named.file, 7);
    trace.Call("aten::relu", {In("self", x)}, {Out("out", x)});
    const int64_t call = trace.last_call();
    trace.Finish();
    const storage::Reader reader(file.path());
    EXPECT_EQ(SourceLines(reader).Of(call), named.shown);
  }
}

}  // namespace
}  // namespace acltape::analyzer
