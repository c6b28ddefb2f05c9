#include "replayer/bisect/cause_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analyzer/calls/overlap.h"
#include "analyzer/calls/value_text.h"
#include "replayer/bisect/captured_order.h"
#include "replayer/bisect/captured_work.h"

namespace acltape::replayer::bisect {
namespace {

using analyzer::LeafUses;
using analyzer::Program;
using analyzer::StepTemplate;
using analyzer::TensorUse;

// --- ordering

struct Conflict {
  const char* kind;  // such as "reads what the first writes"
  int64_t buffer;
  int64_t first_byte;
  int64_t end_byte;
};

bool Shares(const TensorUse& a, const TensorUse& b) {
  return a.tensor.buffer_id == b.tensor.buffer_id && a.tensor.buffer_id != 0 &&
         analyzer::ShareBytes(analyzer::PatternOf(*a.layout), analyzer::PatternOf(*b.layout));
}

std::optional<Conflict> Between(const std::vector<TensorUse>& first,
                                const std::vector<TensorUse>& second, const char* kind) {
  for (const TensorUse& a : first) {
    for (const TensorUse& b : second) {
      if (!Shares(a, b)) continue;
      return Conflict{kind, a.tensor.buffer_id,
                      std::max(a.layout->FirstByte(), b.layout->FirstByte()),
                      std::min(a.layout->EndByte(), b.layout->EndByte())};
    }
  }
  return std::nullopt;
}

// Returns the reason why the later of two calls must wait for the earlier one; nothing if it need
// not.
std::optional<Conflict> ConflictOf(const Program& program, int64_t earlier, int64_t later) {
  const LeafUses& a = program.uses[earlier];
  const LeafUses& b = program.uses[later];
  if (auto conflict = Between(a.writes, b.reads, "reads what the first writes")) return conflict;
  if (auto conflict = Between(a.reads, b.writes, "overwrites what the first reads")) {
    return conflict;
  }
  return Between(a.writes, b.writes, "overwrites what the first writes");
}

// Adds a sentence for each pair of calls that needs an order which the graph does not have.
void ExplainOrder(const script::MixedStep& step, const Script& script, std::vector<size_t> captured,
                  std::vector<std::string>& sentences) {
  const CapturedOrder order(script);
  std::sort(captured.begin(), captured.end());
  for (size_t i = 0; i < captured.size(); ++i) {
    for (size_t j = i + 1; j < captured.size(); ++j) {
      if (order.Before(step.CallAt(captured[i]), step.CallAt(captured[j]))) continue;
      if (auto text = MissingWaitText(step, captured[i], captured[j])) {
        sentences.push_back(*std::move(text));
      }
    }
  }
}

// --- aliasing

// True if a call after the place `after` reads a result of the call at `place`. The memory of that
// result must then not be reused before this reader.
bool IsReadAfter(const script::MixedStep& step, size_t place, size_t after) {
  const Program& program = step.session().program();
  const std::vector<int64_t>& leaves = step.step_class().leaves;
  for (size_t reader = after + 1; reader < leaves.size(); ++reader) {
    if (Between(program.uses[leaves[place]].writes, program.uses[leaves[reader]].reads, "")) {
      return true;
    }
  }
  return false;
}

void ExplainOverlap(const script::MixedStep& step, const Script& script,
                    std::vector<std::string>& sentences) {
  const std::vector<CapturedOperation> captured = CapturedOperations(step, script);
  std::vector<std::pair<size_t, const Touch*>> writes;  // place and bytes, in order of issue
  for (const CapturedOperation& operation : captured) {
    for (const Touch& touch : operation.work.touches) {
      if (touch.write) writes.emplace_back(operation.work.place, &touch);
    }
  }
  std::set<std::pair<size_t, size_t>> told;
  for (size_t i = 0; i < writes.size(); ++i) {
    const auto& [producer, kept] = writes[i];
    if (!kept->result) continue;
    for (size_t j = i + 1; j < writes.size(); ++j) {
      const auto& [overwriter, over] = writes[j];
      if (overwriter == producer || over->block != kept->block) continue;
      const int64_t first = std::max(kept->first, over->first);
      const int64_t end = std::min(kept->end, over->end);
      if (first >= end || !IsReadAfter(step, producer, overwriter) ||
          !told.insert({producer, overwriter}).second) {
        continue;
      }
      sentences.push_back(fmt::format(
          "{} {} bytes {} to {} of block \"{}\", where the result of {} lies; give the two "
          "buffers memory of their own, or order the call after the last reader of that result",
          step.Describe(overwriter), over->result ? "writes" : "has its workspace on", first,
          end - 1, script.blocks[kept->block].name, step.Describe(producer)));
    }
  }
}

// --- arguments and addresses

std::string PlaceText(const analyzer::OperandPlace& place) {
  return fmt::format("buffer {} from byte {}", place.buffer_id, place.first_byte);
}

// Names the inputs of a call that lie elsewhere in another step.
void ExplainInputs(const script::MixedStep& step, const script::MixedStepOptions& options,
                   size_t leaf_place, std::vector<std::string>& sentences) {
  const Program& program = step.session().program();
  const StepTemplate& step_class = step.step_class();
  const int64_t leaf = step_class.leaves[leaf_place];
  std::set<int> told;
  for (const TensorUse& read : program.uses[leaf].reads) {
    const int operand = step_class.FindOperand(read.tensor.buffer_id, read.layout->FirstByte());
    if (operand < 0 || !step_class.operands[operand].moving || !told.insert(operand).second) {
      continue;
    }
    const auto place = [&](size_t match) {
      return fmt::format("{} in step {}", PlaceText(step_class.matches[match].operands[operand]),
                         program.work.steps[step_class.matches[match].step_index].step);
    };
    sentences.push_back(fmt::format(
        "{}: input {} is {} and {}; it has to be copied to its captured place before each "
        "execution",
        program.Describe(leaf), program.leaves[leaf].arguments[read.argument].name,
        place(options.capture_match), place(options.run_matches.front())));
  }
}

void ExplainHostArguments(const script::MixedStep& step, const script::MixedStepOptions& options,
                          size_t place, std::vector<std::string>& sentences) {
  const Program& program = step.session().program();
  const StepTemplate& step_class = step.step_class();
  for (const analyzer::VaryingArgument& varying : step_class.varying) {
    if (varying.place != place) continue;
    const auto value = [&](size_t match) {
      const analyzer::Leaf& leaf = program.leaves[step_class.matches[match].leaves[place]];
      return fmt::format("{} in step {}", analyzer::ValueText(leaf.arguments[varying.argument]),
                         program.work.steps[step_class.matches[match].step_index].step);
    };
    const analyzer::Leaf& leaf = program.leaves[step_class.leaves[place]];
    sentences.push_back(
        fmt::format("{}: argument {} is {} and {}; it has to be updated before each execution",
                    program.Describe(leaf.index), leaf.arguments[varying.argument].name,
                    value(options.capture_match), value(options.run_matches.front())));
  }
}

}  // namespace

std::optional<std::string> MissingWaitText(const script::MixedStep& step, size_t earlier,
                                           size_t later) {
  const Program& program = step.session().program();
  const std::vector<int64_t>& leaves = step.step_class().leaves;
  const auto conflict = ConflictOf(program, leaves[earlier], leaves[later]);
  if (!conflict) return std::nullopt;
  return fmt::format(
      "{} does not wait for {}, though it {}: buffer {}, bytes {} to {}; to add to the plan: "
      "{{\"record_after\": {}, \"wait_before\": {}}}",
      step.Describe(later), step.Describe(earlier), conflict->kind, conflict->buffer,
      conflict->first_byte, conflict->end_byte - 1, step.PlannedCallAt(earlier),
      step.PlannedCallAt(later));
}

std::vector<std::string> ExplainCause(const script::MixedStep& step,
                                      const script::MixedStepOptions& options, const Script& script,
                                      const std::vector<size_t>& captured,
                                      const Classification& classification) {
  std::vector<std::string> sentences;
  switch (classification.cause) {
    case CauseClass::kOrdering:
      ExplainOrder(step, script, captured, sentences);
      if (sentences.empty()) ExplainOverlap(step, script, sentences);
      break;
    case CauseClass::kAliasing:
      ExplainOverlap(step, script, sentences);
      break;
    case CauseClass::kStaleArgument:
    case CauseClass::kAddress:
      for (const size_t place : captured) {
        if (classification.detail != "input") ExplainHostArguments(step, options, place, sentences);
        if (classification.detail != "host argument")
          ExplainInputs(step, options, place, sentences);
      }
      break;
    case CauseClass::kNumeric:
    case CauseClass::kNoise:
    case CauseClass::kInteraction:
    case CauseClass::kFailure:
    case CauseClass::kUnknown:
      break;
  }
  return sentences;
}

}  // namespace acltape::replayer::bisect
