// Graphs are captured until the soft device has no stream left: it fails at the graph that
// analyzer/streams/budget.h predicts (rules LIM-01, CAP-04, LIM-02).
#include "analyzer/streams/budget.h"

#include <cstdlib>
#include <random>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr int64_t kStreams = 60;
constexpr int64_t kOwnStreams = 6;  // the default one, the fixture's two, three side streams

// Read at the first call into the library. The depth leaves room for kQueueEntries tasks and the
// link to the next hidden stream.
const bool kEnvironmentIsSet = [] {
  setenv("ACLTAPE_SOFT_STREAMS", std::to_string(kStreams).c_str(), 1);
  setenv("ACLTAPE_SOFT_QUEUE_DEPTH", std::to_string(analyzer::streams::kQueueEntries + 1).c_str(),
         1);
  return true;
}();

class Budget : public SoftDevice {
 protected:
  // Captures a graph of `tasks` kernels over 1 + `sides` streams; the code of what failed first.
  aclError Capture(int tasks, int sides, aclmdlRI* model) {
    const auto nothing = [](void*) -> aclError { return 0; };
    aclError first = aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
    if (first != 0) return first;
    const auto note = [&](aclError code) {
      if (first == 0) first = code;
    };
    std::vector<aclrtEvent> events(static_cast<size_t>(sides) + 1);
    for (aclrtEvent& event : events) note(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    for (int i = 0; i < tasks && first == 0; ++i) {
      note(SoftLaunchKernel(stream_, "k", nothing, nullptr, nullptr));
    }
    if (sides > 0 && first == 0) note(aclrtRecordEvent(events[0], stream_));
    for (int s = 0; s < sides && first == 0; ++s) {
      note(aclrtStreamWaitEvent(side_[s], events[0]));
      note(aclrtRecordEvent(events[static_cast<size_t>(s) + 1], side_[s]));
      note(aclrtStreamWaitEvent(stream_, events[static_cast<size_t>(s) + 1]));
    }
    aclmdlRI graph = nullptr;
    note(aclmdlRICaptureEnd(stream_, &graph));
    *model = graph;
    for (const aclrtEvent event : events) aclrtDestroyEvent(event);
    return first;
  }

  // The load of such a graph as the analyzer counts it.
  static analyzer::streams::GraphLoad Load(int tasks, int sides) {
    analyzer::streams::StreamAssignment assignment;
    assignment.streams = 1 + sides;
    for (int i = 0; i < tasks + sides; ++i) {
      assignment.stream_of.push_back(i < tasks ? 0 : 1 + i - tasks);
      assignment.order.push_back(i);
    }
    std::vector<int32_t> per_node(static_cast<size_t>(tasks), 1);
    per_node.resize(static_cast<size_t>(tasks) + static_cast<size_t>(sides), 0);
    return analyzer::streams::LoadOf(assignment, per_node);
  }

  aclrtStream side_[3] = {};
};

TEST_F(Budget, LIM_01_CaptureFailsAtThePredictedGraph) {
  for (aclrtStream& side : side_) ASSERT_OK(aclrtCreateStream(&side));
  for (const int seed : {1, 2, 3, 4, 5, 6}) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::vector<std::pair<int, int>> shapes;
    std::vector<analyzer::streams::GraphLoad> loads;
    for (int g = 0; g < 80; ++g) {
      // Far from the ends of a queue, where a wait counts four entries by the vendor's account and
      // one here.
      const int tasks = std::vector<int>{1, 40, 1900, 2500, 5000}[random() % 5];
      shapes.emplace_back(tasks, seed == 1 ? 0 : static_cast<int>(random() % 4));
      loads.push_back(Load(shapes.back().first, shapes.back().second));
    }
    const analyzer::streams::GraphsFit predicted =
        analyzer::streams::GraphsThatFit(loads, kStreams - kOwnStreams, /*models=*/1000);
    ASSERT_LT(predicted.graphs, 80);
    std::vector<aclmdlRI> models;
    aclError code = 0;
    for (const auto& [tasks, sides] : shapes) {
      aclmdlRI model = nullptr;
      code = Capture(tasks, sides, &model);
      if (code != 0) break;
      models.push_back(model);
    }
    EXPECT_EQ(code, 207005) << "seed " << seed;
    EXPECT_EQ(static_cast<int64_t>(models.size()), predicted.graphs) << "seed " << seed;
    for (const aclmdlRI model : models) ASSERT_OK(aclmdlRIDestroy(model));
  }
  for (aclrtStream side : side_) ASSERT_OK(aclrtDestroyStream(side));
}

TEST_F(Budget, CAP_04_TheLastTaskThatFitsAQueueIsPredicted) {
  for (const int tasks : {2015, 2016, 2017, 4032, 4033}) {
    const analyzer::streams::GraphLoad load = Load(tasks, 0);
    const std::vector<analyzer::streams::GraphLoad> loads(80, load);
    const int64_t free = kStreams - 3;
    std::vector<aclmdlRI> models;
    aclmdlRI model = nullptr;
    while (Capture(tasks, 0, &model) == 0) models.push_back(model);
    EXPECT_EQ(static_cast<int64_t>(models.size()),
              analyzer::streams::GraphsThatFit(loads, free, 1000).graphs)
        << tasks;
    for (const aclmdlRI captured : models) ASSERT_OK(aclmdlRIDestroy(captured));
  }
}

}  // namespace
}  // namespace acltape::device
