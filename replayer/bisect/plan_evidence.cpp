#include "replayer/bisect/plan_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "acl/invoke/operator_table.h"
#include "analyzer/graph/overlap.h"
#include "analyzer/streams/race_checker.h"
#include "replayer/bisect/cause_evidence.h"

namespace acltape::replayer {
namespace {

using analyzer::BytePattern;
using storage::Layout;

constexpr size_t kMostSentences = 5;

// Bytes that a call touches inside a capture.
struct Touch {
  bool write = false;
  bool result = true;  // else scribbled: a workspace
  int block = 0;
  int64_t first = 0;
  int64_t end = 0;
  const Layout* layout = nullptr;  // null: every byte in between
  int64_t buffer = 0;              // of the program, of a result or what reads one
};

// `planned` is the invocation with the buffers of the program.
std::vector<Touch> TouchesOf(const Launch& launch, const analyzer::Invocation& planned) {
  std::vector<Touch> touches;
  const acl::OperatorInfo* info = acl::FindOperator(launch.invocation.op);
  if (info == nullptr) return touches;
  const size_t count = std::min<size_t>(launch.invocation.arguments.size(), info->arg_count);
  for (size_t i = 0; i < count; ++i) {
    acl::Direction direction = info->args[i].direction;
    if (info->inplace && i == 0) direction = acl::Direction::kInOut;
    for (size_t t = 0; t < launch.invocation.arguments[i].tensors.size(); ++t) {
      const analyzer::LoweredTensor& tensor = launch.invocation.arguments[i].tensors[t];
      if (!tensor.present || tensor.layout.ElementCount() == 0) continue;
      Touch touch{false,
                  true,
                  static_cast<int>(tensor.buffer_id),
                  tensor.layout.FirstByte(),
                  tensor.layout.EndByte(),
                  &tensor.layout,
                  planned.arguments[i].tensors[t].buffer_id};
      if (direction != acl::Direction::kOut) touches.push_back(touch);
      touch.write = true;
      if (direction != acl::Direction::kIn) touches.push_back(touch);
    }
  }
  return touches;
}

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

// Work of a captured call: a launch, or what is filled or copied for it.
struct Work {
  size_t place = 0;
  int stream = 0;
  std::vector<Touch> touches;
};

// What the captures of a script hold, in order of issue.
struct CapturedOperation {
  enum class Kind { kBegin, kWork, kRecord, kWait } kind = Kind::kBegin;
  int event = 0;
  Work work;  // of kRecord and kWait: its stream alone
};

std::vector<CapturedOperation> CapturedOperations(const MixedStep& step, const Script& script) {
  using Kind = CapturedOperation::Kind;
  std::unordered_map<int64_t, int64_t> leaf_of;  // by call
  for (const analyzer::StepMatch& match : step.step_class().matches) {
    for (const int64_t leaf : match.leaves) {
      leaf_of[step.session().program().leaves[leaf].call.call_id] = leaf;
    }
  }
  std::map<int64_t, size_t> launched;  // by call: invocations of it in this capture
  std::vector<CapturedOperation> captured;
  std::vector<size_t> unowned;  // fills and copies before the launch that they belong to
  bool inside = false;
  const auto add_work = [&](int stream, std::vector<Touch> touches) {
    captured.push_back({Kind::kWork, 0, {0, stream, std::move(touches)}});
    unowned.push_back(captured.size() - 1);
  };
  const auto touch = [](bool write, const Spot& spot, int64_t bytes) {
    return Touch{write, false, spot.block, spot.offset, spot.offset + bytes, nullptr, 0};
  };
  size_t last = 0;
  for (const Operation& operation : script.operations) {
    if (std::holds_alternative<BeginCapture>(operation)) {
      inside = true;
      launched.clear();
      captured.push_back({Kind::kBegin, 0, {}});
    } else if (std::holds_alternative<EndCapture>(operation)) {
      inside = false;
      for (const size_t index : unowned) captured[index].work.place = last;
      unowned.clear();
    }
    if (!inside) continue;
    if (const auto* launch = std::get_if<Launch>(&operation)) {
      last = step.PlaceOf(launch->call_id);
      const analyzer::Lowering& lowering =
          step.execution().lowered().lowerings[leaf_of.at(launch->call_id)];
      add_work(launch->stream,
               TouchesOf(*launch, lowering.invocations.at(launched[launch->call_id]++)));
      for (const size_t index : unowned) captured[index].work.place = last;
      unowned.clear();
    } else if (const auto* fill = std::get_if<FillBytes>(&operation)) {
      add_work(fill->stream, {touch(true, fill->to, fill->bytes)});
    } else if (const auto* copy = std::get_if<CopyBytes>(&operation)) {
      add_work(copy->stream,
               {touch(false, copy->from, copy->bytes), touch(true, copy->to, copy->bytes)});
    } else if (const auto* record = std::get_if<RecordEvent>(&operation)) {
      captured.push_back({Kind::kRecord, record->event, {0, record->stream, {}}});
    } else if (const auto* wait = std::get_if<WaitEvent>(&operation)) {
      captured.push_back({Kind::kWait, wait->event, {0, wait->stream, {}}});
    }
  }
  return captured;
}

// The races of one capture; operations of the checker are indices in `captured`.
void FindRaces(const std::vector<CapturedOperation>& captured, size_t begin, size_t end,
               std::vector<ScriptRace>& races) {
  using Kind = CapturedOperation::Kind;
  analyzer::RaceChecker checker;
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
  std::set<std::tuple<size_t, size_t, analyzer::HazardKind>> told;
  for (const analyzer::Race& race : checker.races()) {
    const size_t first = captured[race.first].work.place;
    const size_t second = captured[race.second].work.place;
    if (first == second || !told.insert({first, second, race.kind}).second) continue;
    races.push_back({first, second, race.kind != analyzer::HazardKind::kWar,
                     race.kind != analyzer::HazardKind::kRaw, static_cast<int>(race.buffer),
                     race.first_byte, race.end_byte});
  }
}

std::string RaceText(const MixedStep& step, const Script& script, const ScriptRace& race) {
  const analyzer::Program& program = step.session().program();
  const std::vector<int64_t>& leaves = step.step_class().leaves;
  if (auto text = MissingWaitText(step, race.first, race.second)) return *std::move(text);
  return fmt::format(
      "{} does not wait for {}, though it {} bytes {} to {} of block \"{}\", which that one {}: "
      "two results share the memory; to add to the plan: {{\"record_after\": {}, "
      "\"wait_before\": {}}}",
      program.Describe(leaves[race.second]), program.Describe(leaves[race.first]),
      race.second_writes ? "writes" : "reads", race.first_byte, race.end_byte - 1,
      script.blocks[race.block].name, race.first_writes ? "writes" : "reads",
      step.PlannedCallAt(race.first), step.PlannedCallAt(race.second));
}

std::string OverwriteText(const MixedStep& step, const Script& script, const Overwrite& found) {
  const auto name = [&](size_t place) {
    return step.session().program().Describe(step.step_class().leaves[place]);
  };
  return fmt::format(
      "{} {} bytes {} to {} of block \"{}\", where the result of {} lies that {} still reads; "
      "give them memory of their own, or order {} behind {}",
      name(found.overwriter), found.by_result ? "writes" : "has its workspace on", found.first_byte,
      found.end_byte - 1, script.blocks[found.block].name, name(found.producer), name(found.reader),
      name(found.overwriter), name(found.reader));
}

}  // namespace

std::vector<ScriptRace> FindScriptRaces(const MixedStep& step, const Script& script) {
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

std::vector<Overwrite> FindOverwrites(const MixedStep& step, const Script& script) {
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
        if (told.insert({place, suspect->overwriter, reader}).second) {
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

std::vector<std::string> ExplainLiberties(const MixedStep& step, const Script& script,
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

}  // namespace acltape::replayer
