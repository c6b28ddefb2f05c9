#include "replayer/script/output_judge.h"

#include <utility>

#include "storage/payload.h"

namespace acltape::replayer::script {

OutputJudge::OutputJudge(std::shared_ptr<const analyzer::metrics::Standard> standard,
                         int64_t memory_limit)
    : standard_(standard == nullptr || standard->bitwise() ? nullptr : std::move(standard)),
      values_(memory_limit) {}

std::string OutputJudge::Keep(const std::vector<uint8_t>& packed) {
  std::string digest = storage::DigestOf(packed.data(), packed.size());
  if (!bitwise()) values_.Keep(digest, packed);
  return digest;
}

std::optional<OutputDifference> OutputJudge::Judge(const std::string& op,
                                                   const storage::Layout& layout,
                                                   const std::string& reference,
                                                   const std::vector<uint8_t>& packed) const {
  const Bytes expected = values_.Get(reference);
  OutputDifference difference;
  if (expected == nullptr || expected->size() != packed.size()) {
    difference.reason = "another digest, and no values of the reference";
    return difference;
  }
  const analyzer::metrics::Judgement judgement =
      standard_->Compare(op, layout.dtype, expected->data(), layout.dtype, packed.data(),
                         layout.ElementCount(), &difference.metrics);
  if (judgement.verdict != analyzer::metrics::Judgement::Verdict::kDifferent) return std::nullopt;
  difference.reason = judgement.reason;
  return difference;
}

JudgedRun::JudgedRun(Device& device, const analyzer::Program& program, const Script& script,
                     OutputJudge& judge, const Reference& reference,
                     const std::function<void(int observation)>& progress) {
  struct Replaced {
    int observation;
    int number;
    std::string digest;
  };
  std::vector<Replaced> replaced;
  const OutputSink sink = [&](int observation, int output, const std::vector<uint8_t>& packed) {
    if (progress) progress(observation);
    if (!reference) return;
    const int number = output - script.observations[observation].first;
    std::string& expected = reference(observation, number);
    if (expected.empty()) {
      expected = judge.Keep(packed);
      return;
    }
    // If bits are compared, only the first difference is needed.
    if (judge.bitwise() && first_.observation >= 0) return;
    if (storage::DigestOf(packed.data(), packed.size()) == expected) return;
    std::optional<OutputDifference> difference = OutputDifference{};
    if (!judge.bitwise()) {
      const ScriptOutput& own = script.outputs[output];
      difference = judge.Judge(program.leaves[own.leaf].Name(), own.layout, expected, packed);
      replaced.push_back({observation, number, difference ? kBeyond : expected});
      if (!difference) ++within_;
    }
    if (difference && first_.observation < 0) {
      first_ = {observation, output, packed, std::move(*difference)};
    }
  };
  for (Observed& one : RunScript(device, script, sink)) {
    observed_.push_back(std::move(one.digests));
  }
  for (Replaced& each : replaced) {
    observed_[each.observation][each.number] = std::move(each.digest);
  }
}

std::string& DigestAt(JudgedRun::Digests& digests, int number) {
  const auto index = static_cast<size_t>(number);
  if (digests.size() <= index) digests.resize(index + 1);
  return digests[index];
}

}  // namespace acltape::replayer::script
