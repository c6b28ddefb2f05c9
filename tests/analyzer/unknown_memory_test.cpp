// A trace whose calls lie in memory that the recorder does not know is told from one with values.
#include "analyzer/calls/unknown_memory.h"

#include <gtest/gtest.h>

#include "storage/error.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Out;
using test::Tensor;
using test::TraceBuilder;

class UnknownMemory : public ::testing::Test {
 protected:
  // `known` calls on tensors of the host and `others` on tensors in the memory of this name.
  storage::Reader Trace(int known, int others, const std::string& memory) {
    TraceBuilder trace(file_.path());
    for (int i = 0; i < known + others; ++i) {
      Tensor a = trace.NewTensor({4});
      Tensor b = trace.NewTensor({4});
      if (i >= known) {
        a.layout.memory = b.layout.memory = memory;
        a.buffer = b.buffer = 0;
      }
      trace.Call("aten::relu", {In("self", a)}, {Out("out", b)});
    }
    trace.Finish();
    return storage::Reader(file_.path());
  }
  test::TemporaryTrace file_{"unknown-memory"};
};

TEST_F(UnknownMemory, OfMoreThanATwentiethOfTheCallsIsRefusedInOneSentence) {
  const storage::Reader reader = Trace(9, 1, "cuda:0");
  EXPECT_EQ(CoverageOfMemory(reader).Sentence(),
            "1 of 10 calls have tensors in memory that the recorder does not know (cuda:0)");
  try {
    RequireKnownMemory(reader);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCannotJudge);
    EXPECT_EQ(
        std::string(error.what()).find("'" + file_.path() + "' cannot be judged by its values: "),
        0u)
        << error.what();
  }
}

TEST_F(UnknownMemory, OfFewCallsIsCountedAndNotRefused) {
  const storage::Reader reader = Trace(39, 1, "mkldnn");
  EXPECT_EQ(CoverageOfMemory(reader).unknown.size(), 1u);
  EXPECT_NO_THROW(RequireKnownMemory(reader));
}

TEST_F(UnknownMemory, IsNamelessInATraceThatTellsBuffersAlone) {
  EXPECT_EQ(CoverageOfMemory(Trace(1, 3, "")).Sentence(),
            "3 of 4 calls have tensors in memory that the recorder does not know");
}

TEST_F(UnknownMemory, TensorsWithoutValuesAreNoLack) {
  EXPECT_NO_THROW(RequireKnownMemory(Trace(1, 9, "meta")));
}

}  // namespace
}  // namespace acltape::analyzer
