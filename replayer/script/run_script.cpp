#include "replayer/script/run_script.h"

#include "replayer/engine/script_machine.h"
#include "storage/packing.h"
#include "storage/payload.h"

namespace acltape::replayer::script {
namespace {

// Brings each output to the host and takes its digest.
class DigestTaker final : public OutputTaker {
 public:
  DigestTaker(Device& device, const Script& script, const OutputSink& sink)
      : device_(device), script_(script), sink_(sink), observed_(script.observations.size()) {}

  void Connect(ScriptMachine& machine) { machine_ = &machine; }
  std::vector<Observed> observed() { return std::move(observed_); }

  void Take(int observation, int output, const uint8_t* address) override {
    Observed& seen = observed_[observation];
    if (seen.digests.empty()) machine_->Synchronize();
    const ScriptOutput& own = script_.outputs[output];
    const auto span = static_cast<size_t>(own.layout.EndByte() - own.layout.FirstByte());
    if (staging_.bytes() < span) {
      staging_ = Block();
      staging_ = Block(device_, Block::Kind::kPinned, span + span / 4);
    }
    device_.Download(staging_.data(), address, span);
    device_.Synchronize();
    packed_.resize(
        static_cast<size_t>(own.layout.ElementCount() * storage::DTypeBytes(own.layout.dtype)));
    PackRowMajor(own.layout, staging_.data(), packed_.data());
    seen.digests.push_back(storage::DigestOf(packed_.data(), packed_.size()));
    if (sink_) sink_(observation, output, packed_);
  }

  // Experiments observe what the host reads at the end of the step.
  void TakeHostRead(int /*observation*/, int /*output*/, const uint8_t* /*address*/) override {}

 private:
  Device& device_;
  const Script& script_;
  const OutputSink& sink_;
  ScriptMachine* machine_ = nullptr;
  Block staging_;
  std::vector<uint8_t> packed_;
  std::vector<Observed> observed_;
};

}  // namespace

std::vector<Observed> RunScript(Device& device, const Script& script, const OutputSink& sink) {
  Uploader uploader(device);
  DigestTaker taker(device, script, sink);
  ScriptMachine machine(device, uploader, script);
  taker.Connect(machine);
  machine.Prepare();
  machine.Run(script.operations, &taker, nullptr);
  machine.Synchronize();
  return taker.observed();
}

}  // namespace acltape::replayer::script
