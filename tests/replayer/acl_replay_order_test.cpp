// The order that a recorded program relies on, and that its replay has to keep: of recorded
// contents among the work of a stream, and of what the host does after it has waited.
#include <gtest/gtest.h>

#include "tests/replayer/acl_fixture.h"

namespace acltape::replayer {
namespace {

using storage::DType;
using test::AclRecorded;
using test::AclTraceBuilder;
using test::Floats;
using test::In;
using test::Int;
using test::Out;
using test::Scalar;
using test::Tensor;
using test::Written;

Tensor FirstOf(Tensor tensor, int64_t count) {
  tensor.layout.shape = {count};
  tensor.layout.strides = {1};
  return tensor;
}

// As a decoder with persistent buffers and graphs whose tasks are updated: a step refills the first
// positions and reads more of them, padding that nothing wrote since the recording began, while the
// step before still waits for its update.
TEST(AclReplayOrder, RecordedContentComesAfterTheWorkThatReadsTheMemoryBefore) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const int64_t releasing = trace.NewStream();
    const Tensor cell = trace.Device({8}, DType::kUint8);
    const Tensor positions = trace.Device({4});
    const Tensor two = FirstOf(positions, 2);
    const Tensor pinned = trace.Pinned({2});
    const Tensor before = trace.Device({2});
    const Tensor after = trace.Device({4});
    trace.Upload(two, Floats{1, 2});
    trace.Interface("aclrtValueWait",
                    {In("devAddr", cell), Int("value", 5), Int("flag", 1), Int("stream", stream)},
                    stream);
    trace.Op("aclnnMuls", stream, {In("self", two), Scalar("other", 2), Out("out", before)})
        .After("out", Floats{2, 4});
    trace.UploadPinned(two, pinned, Floats{5, 6}, stream);
    trace.Op("aclnnMuls", stream, {In("self", positions), Scalar("other", 2), Out("out", after)})
        .After("out", Floats{10, 12, 14, 16});
    trace.BeforeRange(positions, Floats{5, 6, 7, 8});
    trace.Interface(
        "aclrtValueWrite",
        {Out("devAddr", cell), Int("value", 5), Int("flag", 0), Int("stream", releasing)},
        releasing);
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(2);
}

// A copy between the device and memory that is not pinned makes the host wait for its stream
// (CPY-06). Without the wait the fill overtakes the work that reads what it overwrites.
TEST(AclReplayOrder, WorkAfterAPageableCopyComesAfterTheStreamOfTheCopy) {
  constexpr int64_t kMany = int64_t{1} << 22;
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t computing = trace.NewStream();
    const int64_t filling = trace.NewStream();
    const Tensor many = trace.Device({kMany});
    const Tensor two = FirstOf(many, 2);
    const Tensor result = trace.Device({2});
    trace.Op("aclnnInplaceOne", computing, {Written("selfRef", many)});
    for (int i = 0; i < 40; ++i) {
      trace.Op("aclnnInplaceMuls", computing, {Written("selfRef", many), Scalar("other", 1)});
    }
    trace.Op("aclnnMuls", computing, {In("self", two), Scalar("other", 3), Out("out", result)})
        .After("out", Floats{3, 3});
    trace.Download(result, Floats{3, 3}, computing);
    trace.Interface("aclrtMemsetAsync",
                    {Out("devPtr", trace.Bytes(two)), Int("maxCount", 8), Int("value", 0),
                     Int("count", 8), Int("stream", filling)},
                    filling);
    trace.Synchronize(filling);
    trace.Synchronize(computing);
  });
  recorded.ExpectEqual(2);
}

}  // namespace
}  // namespace acltape::replayer
