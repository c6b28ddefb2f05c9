// The card of the overview about waits for the device.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "page/page.h"
#include "tests/analyzer/acl_trace_builder.h"
#include "tests/page/page_parts.h"

namespace acltape::page {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the words of the trace builder

nlohmann::json CardOf(const std::string& path) {
  const storage::Reader reader(path);
  std::ostringstream out;
  WritePage(reader, {}, out);
  return PartOf(out.str(), "waits");
}

TEST(WaitsCard, HoldsTheAdviceOfEachLine) {
  const TemporaryTrace file("waits-card");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({4}), b = trace.Device({4});
  for (int i = 0; i < 3; ++i) {
    trace.Upload(a, std::vector<float>{1, 2, 3, 4}, stream);
    trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)});
  }
  trace.Finish();
  const nlohmann::json card = CardOf(file.path());
  EXPECT_EQ(card["why_none"], "");
  EXPECT_EQ(card["waits"], 3);
  ASSERT_EQ(card["advice"].size(), 1u);
  EXPECT_EQ(card["advice"][0]["advice"].get<std::string>().find("blocks the host 3 times"), 0u);
}

TEST(WaitsCard, OfAProgramWithoutADeviceSaysThatThereIsNone) {
  const TemporaryTrace file("waits-card-none");
  TraceBuilder trace(file.path());
  const Tensor a = trace.NewTensor({4}), b = trace.NewTensor({4});
  trace.Call("aten::relu", {In("self", a)}, {Out("out", b)});
  trace.Finish();
  const nlohmann::json card = CardOf(file.path());
  EXPECT_NE(card["why_none"].get<std::string>().find("no calls of a device"), std::string::npos);
  EXPECT_TRUE(card["advice"].empty());
}

}  // namespace
}  // namespace acltape::page
