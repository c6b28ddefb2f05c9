// Small stepped programs whose results are computed here, by other means than the device.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "replayer/acl_level/replay_level.h"
#include "replayer/replay.h"
#include "storage/results.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::test {

using Floats = std::vector<float>;

inline Floats Map(const Floats& a, const Floats& b, const std::function<float(float, float)>& f) {
  Floats out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = f(a[i], b[i % b.size()]);
  return out;
}
inline Floats Sum(const Floats& a, const Floats& b) {
  return Map(a, b, [](float x, float y) { return x + y; });
}
inline Floats Product(const Floats& a, const Floats& b) {
  return Map(a, b, [](float x, float y) { return x * y; });
}
inline Floats Relu(const Floats& a) {
  return Map(a, a, [](float x, float) { return x > 0 ? x : 0; });
}
// Small integers, so that sums are exact in any order.
inline Floats Numbers(size_t count, int seed) {
  std::mt19937 random(seed);
  Floats values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 17) - 8);
  return values;
}
// Row-major [m, k] x [k, n].
inline Floats MatMul(const Floats& a, const Floats& b, int m, int k, int n) {
  Floats out(m * n, 0);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int p = 0; p < k; ++p) out[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
  return out;
}

inline void Add(TraceBuilder& trace, const Tensor& a, const Tensor& b, const Tensor& out) {
  trace.Call("aten::add.Tensor", {In("self", a), In("other", b), Int("alpha", 1)},
             {Out("out", out)});
}

// A finished trace and its replays.
class Recorded {
 public:
  explicit Recorded(const std::function<void(TraceBuilder&)>& write, const char* name = "replay")
      : file_(name) {
    TraceBuilder trace(file_.path());
    write(trace);
    trace.Finish();
  }
  // Steps of equal form: `write_step` is called for each.
  Recorded(int steps, const std::function<void(TraceBuilder&, int)>& write_step,
           const char* name = "replay")
      : Recorded(
            [&](TraceBuilder& trace) {
              for (int s = 0; s < steps; ++s) {
                storage::Step step;
                step.step = s;
                step.first_call = trace.last_call() + 1;
                write_step(trace, s);
                step.last_call = trace.last_call();
                step.found_by = "range:step";
                trace.writer().AddStep(step);
              }
            },
            name) {}

  replayer::ReplayReport Replay(replayer::ReplayOptions options) const {
    storage::Reader reader(file_.path(), storage::Reader::Mode::kReadWrite);
    storage::Results results(reader);
    return replayer::acl_level::Replay(reader, options, &results);
  }
  replayer::ReplayReport Replay(replayer::Mode mode) const {
    replayer::ReplayOptions options;
    options.mode = mode;
    return Replay(options);
  }
  std::string path() const { return file_.path(); }

 private:
  TemporaryTrace file_;
};

// The text that a failing expectation prints.
inline std::string Explain(const replayer::ReplayReport& report) {
  std::string text = report.refusal;
  for (const replayer::Mismatch& mismatch : report.mismatches) {
    text += "\ncall " + std::to_string(mismatch.call_id) + " " + mismatch.op + " " + mismatch.name +
            " of step " + std::to_string(mismatch.step) + ": expected " + mismatch.metrics.first_a +
            ", got " + mismatch.metrics.first_b + " at " +
            std::to_string(mismatch.metrics.first_index);
  }
  for (const replayer::Note& note : report.notes) text += "\n" + note.rule + ": " + note.message;
  return text;
}

}  // namespace acltape::test
