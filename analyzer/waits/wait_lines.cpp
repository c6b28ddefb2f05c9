#include "analyzer/waits/wait_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analyzer/waits/mends.h"
#include "analyzer/waits/timed_source.h"
#include "storage/columns.h"
#include "storage/database.h"
#include "storage/nesting.h"

namespace acltape::analyzer::waits {
namespace {

struct LeafText {
  std::string op;
  std::string frames;
  std::string made_by;
  WaitFacts facts;
};

// Reads what the mends need of the operator in which a wait lies.
class LeafReader {
 public:
  explicit LeafReader(const Work& work) : trace_(*work.trace) {}

  void Read(int64_t leaf, int64_t call_id, LeafText& text) const {
    text.frames = Frames(leaf, call_id);
    if (leaf != 0) {
      storage::Statement op(trace_.database(), "SELECT op FROM call WHERE call_id = ?1");
      op.Bind(1, leaf);
      if (op.Next()) text.op = op.Text(0);
      ReadCopy(leaf, text);
    }
    text.facts.inner = text.op;
    text.facts.made_by = text.made_by;
    text.facts.frames = text.frames;
  }

 private:
  void ReadCopy(int64_t leaf, LeafText& text) const {
    const bool blocks = storage::HasColumns(trace_, "buffer", "block");
    storage::Statement uses(
        trace_.database(),
        fmt::format("SELECT u.direction, b.device, {}, b.alloc_call, l.dtype FROM tensor_use u "
                    "JOIN buffer b ON b.buffer_id = u.buffer_id JOIN layout l ON l.layout_id = "
                    "u.layout_id WHERE u.call_id = ?1",
                    blocks ? "b.block IS NOT NULL OR ifnull(b.layer, '') = 'block'" : "0"));
    uses.Bind(1, leaf);
    bool device_reads = false;
    bool device_writes = false;
    std::optional<std::pair<bool, int64_t>> host_read;  // pinned, and the call that made it
    bool host_writes = false;
    while (uses.Next()) {
      const bool writes = uses.Text(0) != "in";
      const bool host = uses.Integer(1) == 0;
      if (host && !writes) {
        host_read = {uses.Integer(2) != 0, uses.Integer(3)};
        text.facts.integers = uses.Text(4).starts_with("int");
      }
      host_writes |= host && writes;
      device_reads |= !host && !writes;
      device_writes |= !host && writes;
    }
    if (host_read && device_writes) {
      text.facts.copy = host_read->first ? CopySide::kFromPinned : CopySide::kFromPageable;
      text.made_by = MadeBy(host_read->second);
    } else if (host_writes && device_reads) {
      text.facts.copy = CopySide::kToHost;
    }
    storage::Statement flag(trace_.database(),
                            "SELECT integer FROM argument WHERE call_id = ?1 AND name = "
                            "'non_blocking'");
    flag.Bind(1, leaf);
    text.facts.non_blocking = flag.Next() && flag.Integer(0) != 0;
  }

  // The outermost operator that a call is part of, without its overload.
  std::string MadeBy(int64_t call_id) const {
    storage::Statement up(
        trace_.database(),
        "WITH RECURSIVE up(call_id, parent_id, op_id, depth) AS (SELECT call_id, parent_id, op_id, "
        "0 FROM call WHERE call_id = ?1 UNION ALL SELECT c.call_id, c.parent_id, c.op_id, depth + "
        "1 FROM up JOIN call c ON c.call_id = up.parent_id WHERE depth < ?2) SELECT o.name FROM up "
        "JOIN op o USING (op_id) WHERE o.dialect = 'aten' ORDER BY depth DESC LIMIT 1");
    up.Bind(1, call_id);
    up.Bind(2, storage::kMostAround);
    return up.Next() ? std::string(up.Text(0)) : "";
  }

  // The functions of the stack up to the user's, and the ranges of the program around the call.
  std::string Frames(int64_t leaf, int64_t call_id) const {
    std::string names;
    // Older traces keep one frame, the user's.
    if (storage::HasColumns(trace_, "stack", "user_frame")) AddCallees(leaf, call_id, names);
    storage::Statement scope(
        trace_.database(),
        "SELECT p.path FROM call c JOIN scope p ON p.scope_id = c.scope_id WHERE c.call_id IN "
        "(?1, ?2)");
    scope.Bind(1, leaf);
    scope.Bind(2, call_id);
    while (scope.Next()) names.append(scope.Text(0)) += '\n';
    return names;
  }

  void AddCallees(int64_t leaf, int64_t call_id, std::string& names) const {
    storage::Statement stack(
        trace_.database(),
        "SELECT json_extract(f.value, '$.function') FROM call c JOIN stack s ON s.stack_id = "
        "c.stack_id, json_each(s.frames) f WHERE c.call_id IN (?1, ?2) AND c.stack_id IS NOT NULL "
        "AND f.key < ifnull(s.user_frame, 0)");
    stack.Bind(1, leaf);
    stack.Bind(2, call_id);
    while (stack.Next()) names.append(stack.Text(0)) += '\n';
  }

  const storage::Reader& trace_;
};

// Work that a wait waited for: its operator, or its form where it executes a graph; its place and
// its stream.
using Awaited = std::tuple<int64_t, int32_t, int64_t>;

struct LineSums {
  WaitLine line;
  std::map<Awaited, std::pair<int64_t, int64_t>> awaited;  // time, and a call of it
  std::map<std::string_view, int64_t> reasons;             // why it is needed or not known
  int64_t turns = 0;         // waits with operators between them and the wait before
  int64_t work_before = -1;  // operators before the latest wait
};

class LineFinder {
 public:
  LineFinder(const Work& work, const HostWaits& waits, const lint::Places& places,
             lint::Words& words)
      : work_(work), waits_(waits), places_(places), words_(words), leaves_(work) {}

  std::vector<WaitLine> Find() {
    work_before_.reserve(work_.size());
    int64_t count = 0;
    for (size_t call = 0; call < work_.size(); ++call) {
      work_before_.push_back(count);
      const WorkForm& form = work_.form(call);
      count += form.function == nullptr
                   ? form.kind == LeafKind::kKernel
                   : form.acl_kind() == AclCallKind::kOperator || IsExecution(form.acl_kind());
    }
    for (size_t i = 0; i < waits_.waits.size(); ++i) Add(i);
    std::vector<WaitLine> lines;
    for (auto& [key, sums] : sums_) lines.push_back(Finished(sums));
    std::ranges::stable_sort(lines, std::ranges::greater(), &WaitLine::total_ns);
    return lines;
  }

 private:
  void Add(size_t index) {
    const HostWait& wait = waits_.waits[index];
    const uint32_t call = wait.calls.front();
    LineSums& sums = sums_[{TextOf(call), OperatorOf(wait), static_cast<int>(wait.kind)}];
    WaitLine& line = sums.line;
    if (line.waits++ == 0) line.kind = wait.kind;
    line.total_ns += wait.blocked_ns;
    if (wait.blocked_ns > line.longest_ns || line.waits == 1) {
      line.longest_ns = wait.blocked_ns;
      line.longest = index;
    }
    if (work_.calls[call].step >= 0) {
      ++line.in_steps;
      line.in_steps_ns += wait.blocked_ns;
    }
    // A setup copies many times in a row. What a loop does has other work in between.
    const int64_t before = WorkBefore(call);
    if (before > std::exchange(sums.work_before, before)) ++sums.turns;
    line.not_needed += wait.need == Need::kNotNeeded;
    line.needed += wait.need == Need::kNeeded;
    line.not_known += wait.need == Need::kNotKnown;
    line.nothing += wait.need == Need::kNothing;
    if (!wait.why.empty()) ++sums.reasons[wait.why];
    if (wait.last_awaited < 0) return;
    const auto last = static_cast<size_t>(wait.last_awaited);
    const WorkForm& form = work_.form(last);
    const int64_t what = IsExecution(form.acl_kind()) ? -1 - form.signature_id : form.op->op_id;
    auto& [time, example] = sums.awaited[{what, places_.Of(last), work_.calls[last].stream_id}];
    time += wait.blocked_ns + 1;
    example = wait.last_awaited;
  }

  int64_t WorkBefore(uint32_t call) const { return work_before_[call]; }

  // The text of the line, once for all calls of one stack.
  const std::string& TextOf(uint32_t call) {
    const auto [entry, created] = texts_.try_emplace(places_.Of(call));
    if (created) entry->second = places_.Text(call);
    return entry->second;
  }

  // The operator that waits; the outermost one is looked up for one wait of a line.
  int64_t OperatorOf(const HostWait& wait) {
    if (wait.leaf == 0) return work_.op(wait.calls.back()).op_id;
    const auto [entry, created] = op_of_leaf_.try_emplace(wait.leaf);
    if (created) {
      leaf_op_.Reset();
      leaf_op_.Bind(1, wait.leaf);
      if (leaf_op_.Next()) entry->second = leaf_op_.Integer(0);
      leaf_op_.Reset();
    }
    return entry->second;
  }

  WaitLine Finished(LineSums& sums) {
    WaitLine& line = sums.line;
    const HostWait& longest = waits_.waits[line.longest];
    const uint32_t call = longest.calls.back();
    line.where = TextOf(longest.calls.front());
    line.waits_in = longest.leaf != 0 ? words_.Operator(call) : work_.op(call).FullName();
    line.waited_for = WaitedFor(sums);
    const auto reason =
        std::ranges::max_element(sums.reasons, {}, [](const auto& entry) { return entry.second; });
    if (reason != sums.reasons.end()) line.why = reason->first;
    const bool repeats = sums.turns > 1;
    // Nobody can act on calls without a line beside others that have one: the adapter makes them.
    const bool placed = !line.where.empty() || !words_.over_torch() || !places_.any();
    if (repeats && placed) line.advice = AdviceFor(line, longest, call);
    return line;
  }

  std::string WaitedFor(const LineSums& sums) {
    if (sums.awaited.empty()) return "";
    const auto most = std::ranges::max_element(
        sums.awaited, {}, [](const auto& entry) { return entry.second.first; });
    const auto call = static_cast<size_t>(most->second.second);
    const WorkForm& form = work_.form(call);
    std::string text;
    if (IsExecution(form.acl_kind())) {
      const std::string where = places_.Text(call);
      text = fmt::format("graph {}{}", form.Integer(form.function->object),
                         where.empty() ? "" : " executed at " + where);
    } else {
      text = words_.Call(call);
    }
    text += fmt::format(" on stream {}", work_.calls[call].stream_id);
    const size_t others = sums.awaited.size() - 1;
    if (others > 0) text += fmt::format(", and {} other{}", others, others == 1 ? "" : "s");
    return text;
  }

  std::string AdviceFor(WaitLine& line, const HostWait& wait, uint32_t call) {
    const bool judged = wait.leaf == 0 && wait.kind == WaitKind::kSynchronise;
    if (judged) return JudgedAdvice(line, wait);
    if (wait.kind == WaitKind::kQuery) return "";
    LeafText text;
    leaves_.Read(wait.leaf, work_.calls[call].call_id, text);
    text.facts.called = line.waits_in;
    text.facts.over_torch = words_.over_torch();
    const std::string_view mend = MendOf(text.facts);
    if (mend.empty()) return "";
    return fmt::format("blocks the host {}: {}", Times(line.waits), mend);
  }

  static std::string Times(int64_t count) {
    return count == 1 ? "once" : fmt::format("{} times", count);
  }

  // Two waits at least: one alone, as after a setup, is not worth a sentence.
  std::string JudgedAdvice(WaitLine& line, const HostWait& wait) const {
    if (line.not_needed < 2 || line.needed > 0) return "";
    const int64_t recorded_ns =
        std::strtoll(work_.trace->Meta("begin_wall_ns", "0").c_str(), nullptr, 10);
    const TimedSource source =
        LookForTimes(places_.Line(wait.calls.front()), work_.trace->Meta("cwd"), recorded_ns);
    if (source == TimedSource::kTimed) {
      line.not_known += std::exchange(line.not_needed, 0);
      line.why = "the program takes a time beside it";
      return "";
    }
    std::string text = fmt::format("waits {}, and no read needs it", Times(line.waits));
    if (line.not_known > 0) {
      text = fmt::format("waits {}; no read needs {} of them, of {} it is not known ({})",
                         Times(line.waits), line.not_needed, line.not_known, line.why);
    }
    text += ": leave it out, the stream keeps the order";
    if (source == TimedSource::kNotRead) text += ", unless it bounds a time that the program takes";
    return text;
  }

  const Work& work_;
  const HostWaits& waits_;
  const lint::Places& places_;
  lint::Words& words_;
  const LeafReader leaves_;
  std::map<std::tuple<std::string, int64_t, int>, LineSums> sums_;
  std::vector<int64_t> work_before_;                // by call
  std::unordered_map<int32_t, std::string> texts_;  // by place
  std::unordered_map<int64_t, int64_t> op_of_leaf_;
  storage::Statement leaf_op_{work_.trace->database(), "SELECT op_id FROM call WHERE call_id = ?1"};
};

}  // namespace

std::vector<WaitLine> FindWaitLines(const Work& work, const HostWaits& waits,
                                    const lint::Places& places, lint::Words& words) {
  return LineFinder(work, waits, places, words).Find();
}

}  // namespace acltape::analyzer::waits
