#include "replayer/bisect/plan_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <tuple>

#include "analyzer/calls/overlap.h"
#include "analyzer/streams/race_checker.h"
#include "replayer/bisect/captured_work.h"
#include "replayer/bisect/cause_evidence.h"

namespace acltape::replayer::bisect {
namespace {

using analyzer::BytePattern;

constexpr size_t kMostSentences = 5;

BytePattern PatternOf(const Touch& touch) {
  if (touch.layout != nullptr) return analyzer::PatternOf(*touch.layout);
  BytePattern pattern;
  pattern.first = touch.first;
  pattern.run = touch.end - touch.first;
  return pattern;
}

bool Share(const Touch& a, const Touch& b) {
  return a.block == b.block && a.first < b.end && b.first < a.end &&
         analyzer::ShareBytes(PatternOf(a), PatternOf(b));
}

// Adds the races of one capture. The race checker knows operations by their index in `captured`.
void FindRaces(const std::vector<CapturedOperation>& captured, size_t begin, size_t end,
               std::vector<ScriptRace>& races) {
  using Kind = CapturedOperation::Kind;
  analyzer::streams::RaceChecker checker;
  std::deque<analyzer::FormAccess> forms;
  for (size_t i = begin; i < end; ++i) {
    const CapturedOperation& operation = captured[i];
    if (operation.kind == Kind::kRecord) checker.Record(operation.work.stream, operation.event);
    if (operation.kind == Kind::kWait) checker.Wait(operation.work.stream, operation.event);
    if (operation.kind != Kind::kWork) continue;
    std::vector<analyzer::ByteAccess> accesses;
    for (const Touch& touch : operation.work.touches) {
      analyzer::FormAccess& form = forms.emplace_back();
      form.layout = touch.layout;
      accesses.push_back({touch.block, touch.first, touch.end, touch.write, &form});
    }
    checker.Work(static_cast<int64_t>(i), operation.work.stream, accesses);
  }
  std::set<std::tuple<size_t, size_t, analyzer::graph::HazardKind>> told;
  for (const analyzer::streams::Race& race : checker.races()) {
    const size_t first = captured[race.first].work.place;
    const size_t second = captured[race.second].work.place;
    if (first == second || !told.insert({first, second, race.kind}).second) continue;
    races.push_back({first, second, race.kind != analyzer::graph::HazardKind::kWar,
                     race.kind != analyzer::graph::HazardKind::kRaw, static_cast<int>(race.buffer),
                     race.first_byte, race.end_byte});
  }
}

std::string RaceText(const script::MixedStep& step, const Script& script, const ScriptRace& race) {
  if (auto text = MissingWaitText(step, race.first, race.second)) return *std::move(text);
  return fmt::format(
      "{} does not wait for {}, though it {} bytes {} to {} of block \"{}\", which that one {}: "
      "two results share the memory; to add to the plan: {{\"record_after\": {}, "
      "\"wait_before\": {}}}",
      step.Describe(race.second), step.Describe(race.first),
      race.second_writes ? "writes" : "reads", race.first_byte, race.end_byte - 1,
      script.blocks[race.block].name, race.first_writes ? "writes" : "reads",
      step.PlannedCallAt(race.first), step.PlannedCallAt(race.second));
}

std::string OverwriteText(const script::MixedStep& step, const Script& script,
                          const Overwrite& found) {
  const std::string overwriter = step.Describe(found.overwriter);
  const std::string reader = step.Describe(found.reader);
  return fmt::format(
      "{} {} bytes {} to {} of block \"{}\", where the result of {} lies that {} still reads; "
      "give them memory of their own, or order {} after {}",
      overwriter, found.by_result ? "writes" : "has its workspace on", found.first_byte,
      found.end_byte - 1, script.blocks[found.block].name, step.Describe(found.producer), reader,
      overwriter, reader);
}

}  // namespace

std::vector<ScriptRace> FindScriptRaces(const script::MixedStep& step, const Script& script) {
  const std::vector<CapturedOperation> captured = CapturedOperations(step, script);
  std::vector<ScriptRace> races;
  for (size_t begin = 0; begin < captured.size();) {
    size_t end = begin + 1;
    while (end < captured.size() && captured[end].kind != CapturedOperation::Kind::kBegin) ++end;
    FindRaces(captured, begin, end, races);
    begin = end;
  }
  return races;
}

std::vector<Overwrite> FindOverwrites(const script::MixedStep& step, const Script& script) {
  const std::vector<CapturedOperation> captured = CapturedOperations(step, script);
  std::vector<std::pair<size_t, const Touch*>> writes;  // place and bytes, in order of issue
  std::vector<Overwrite> overwrites;
  std::set<std::tuple<size_t, size_t, size_t>> told;
  const auto judge = [&](size_t reader, const Touch& read) {
    std::optional<Overwrite> suspect;
    for (auto write = writes.rbegin(); write != writes.rend(); ++write) {
      const auto& [place, touch] = *write;
      if (!Share(*touch, read)) continue;
      const bool own = place == reader || (touch->result && touch->buffer == read.buffer);
      if (own && !suspect) return;
      if (own) {
        suspect->producer = place;
        const bool by_itself = suspect->overwriter == place;  // a planted fault
        if (!by_itself && told.insert({place, suspect->overwriter, reader}).second) {
          overwrites.push_back(*suspect);
        }
        return;
      }
      if (suspect) continue;
      suspect = Overwrite{0,
                          place,
                          reader,
                          touch->result,
                          read.block,
                          std::max(touch->first, read.first),
                          std::min(touch->end, read.end)};
    }
  };
  for (const CapturedOperation& operation : captured) {
    for (const Touch& touch : operation.work.touches) {
      if (!touch.write && touch.result) judge(operation.work.place, touch);
    }
    for (const Touch& touch : operation.work.touches) {
      if (touch.write) writes.emplace_back(operation.work.place, &touch);
    }
  }
  return overwrites;
}

std::vector<std::string> ExplainLiberties(const script::MixedStep& step, const Script& script,
                                          const Classification& classification) {
  std::vector<std::string> of_order;
  for (const ScriptRace& race : FindScriptRaces(step, script)) {
    of_order.push_back(RaceText(step, script, race));
  }
  std::vector<std::string> of_memory;
  for (const Overwrite& found : FindOverwrites(step, script)) {
    of_memory.push_back(OverwriteText(step, script, found));
  }
  std::vector<std::string> sentences;
  if (classification.cause == CauseClass::kOrdering) {
    sentences = of_order.empty() ? of_memory : of_order;
  } else if (classification.cause == CauseClass::kAliasing) {
    sentences = of_memory.empty() ? of_order : of_memory;
  }
  if (sentences.size() > kMostSentences) {
    const size_t more = sentences.size() - kMostSentences;
    sentences.resize(kMostSentences);
    sentences.push_back(fmt::format("and {} more of the kind", more));
  }
  return sentences;
}

}  // namespace acltape::replayer::bisect
