// A mixed step over a small recorded program, run and compared with the recording.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "replayer/script/mixed_step.h"
#include "replayer/script/run_script.h"
#include "storage/packing.h"
#include "tests/replayer/step_programs.h"

namespace acltape::test {

// The device moves tasks against each other as far as waits allow.
inline const bool kJitter = setenv("ACLTAPE_SOFT_JITTER", "5", 0) == 0;

class MixedStepRun {
 public:
  explicit MixedStepRun(const Recorded& recorded, const analyzer::plan::Plan* plan = nullptr)
      : reader_(recorded.path(), storage::Reader::Mode::kReadOnly),
        session_(reader_, replayer::Data::kRecorded, "", 1, nullptr),
        plan_(plan) {}

  // The body runs with a lowering that the device accepts.
  void With(const std::function<void(const replayer::script::MixedStep&)>& body) {
    session_.WithLowering([&](replayer::Execution& execution) {
      body(replayer::script::MixedStep(session_, execution, plan_));
    });
  }

  replayer::Session& session() { return session_; }

  // Empty when every observed output has the recorded bits, else what differs first.
  std::string Differs(const replayer::script::MixedStep& step,
                      const replayer::script::MixedStepOptions& options) {
    const replayer::Script script = step.Build(options);
    std::string difference;
    size_t compared = 0;
    const auto sink = [&](int observation, int output, const std::vector<uint8_t>& packed) {
      const replayer::ScriptOutput& own = script.outputs[output];
      ++compared;
      if (!difference.empty() || packed == RecordedRowMajor(own)) return;
      const analyzer::metrics::TensorMetrics found =
          analyzer::metrics::Measure(own.layout.dtype, RecordedRowMajor(own).data(),
                                     own.layout.dtype, packed.data(), own.layout.ElementCount());
      difference = "observation " + std::to_string(observation) + ": call " +
                   std::to_string(own.call_id) + " result " + std::to_string(own.write) +
                   " element " + std::to_string(found.first_index) + " is " + found.first_b +
                   ", recorded " + found.first_a;
    };
    observed_ = replayer::script::RunScript(session_.device(), script, sink);
    compared_ = compared;
    return difference;
  }
  size_t compared() const { return compared_; }
  const std::vector<replayer::script::Observed>& observed() const { return observed_; }

 private:
  std::vector<uint8_t> RecordedRowMajor(const replayer::ScriptOutput& output) {
    const analyzer::Program& program = session_.program();
    const analyzer::TensorUse& use = program.uses[output.leaf].writes[output.write];
    const replayer::Bytes content = session_.contents().GetResult(program.leaves[output.leaf], use);
    if (analyzer::RecordedResult(program.leaves[output.leaf], use)->packing != 0) return *content;
    std::vector<uint8_t> packed(
        static_cast<size_t>(output.layout.ElementCount() *
                            storage::DTypeBytes(output.layout.dtype)));  // a part of the result
    storage::PackRowMajor(output.layout,
                          content->data() + output.layout.FirstByte() - use.layout->FirstByte(),
                          packed.data());
    return packed;
  }

  storage::Reader reader_;
  replayer::Session session_;
  const analyzer::plan::Plan* plan_;
  size_t compared_ = 0;
  std::vector<replayer::script::Observed> observed_;
};

}  // namespace acltape::test
