#include "timeline/calls.h"

#include <algorithm>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>

#include "meaning/dialects.h"
#include "meaning/recorded_values.h"
#include "timeline/arrows.h"

namespace acltape::timeline {
namespace {

// Calls are numbered as they begin, threads apart by less than this many calls.
constexpr size_t kReordered = size_t{1} << 14;
constexpr size_t kKeptPlaces = 100000;

std::string CallsSql(storage::Database& database, const char* where) {
  const char* forward =
      HasColumn(database, "call_extra", "forward_call") ? "x.forward_call" : "NULL";
  return std::string(
             "SELECT c.call_id, c.parent_id, c.signature_id, c.thread_id, c.bits, c.begin_ns, "
             "c.duration_ns, c.scope_id, x.stream_id, ") +
         forward +
         ", x.status, x.prepare_ns, x.model_id FROM call_row c "
         "LEFT JOIN call_extra x ON x.call_id = c.call_id " +
         where;
}

// The lines of the program that calls came from, where the trace knows them: rows of a view that
// are read beside the calls.
class CallPlaces {
 public:
  explicit CallPlaces(storage::Database& database) {
    if (!HasTable(database, "call_location")) return;
    rows_ = std::make_unique<storage::Statement>(
        database,
        "SELECT call_id, file, line, function FROM call_location WHERE file IS NOT NULL "
        "ORDER BY call_id");
    more_ = rows_->Next();
  }
  // The number of the place, 0: not known. Calls come in ascending order.
  uint32_t At(int64_t call_id) {
    while (more_ && rows_->Integer(0) < call_id) more_ = rows_->Next();
    if (!more_ || rows_->Integer(0) != call_id) return 0;
    std::string text = std::string(rows_->Text(1)) + ":" + std::to_string(rows_->Integer(2));
    if (!rows_->Text(3).empty()) text += " (" + std::string(rows_->Text(3)) + ")";
    const auto known = numbers_.find(text);
    if (known != numbers_.end()) return known->second;
    // A program has so many lines only where it is generated; what is beyond has no place.
    if (texts_.size() >= kKeptPlaces) return 0;
    texts_.push_back(text);
    return numbers_[std::move(text)] = static_cast<uint32_t>(texts_.size());
  }
  const std::string& text(uint32_t number) const { return texts_[number - 1]; }

 private:
  std::unique_ptr<storage::Statement> rows_;
  bool more_ = false;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, uint32_t> numbers_;
};

class CallSource final : public Source {
 public:
  explicit CallSource(Output& output)
      : output_(output),
        modules_(output.trace.database()),
        places_(output.trace.database()),
        arrows_(FindArrows(output.trace, output.calls)) {
    output_.calls.Rewind();
  }

  std::optional<int64_t> NextTime() override {
    while (more_ && waiting_.size() < kReordered) Read();
    if (waiting_.empty()) return std::nullopt;
    return waiting_.top().row.begin_ns;
  }

  void Emit() override {
    const Waiting top = waiting_.top();
    waiting_.pop();
    const CallRow& row = top.row;
    const CallForm& form = output_.calls.forms().Of(row.signature_id);
    Slice slice;
    slice.begin_ns = row.begin_ns;
    slice.name = form.full_name;
    const bool leaf = (row.bits & 4) != 0;
    slice.category = leaf                                  ? "leaf"
                     : form.dialect == "autograd"          ? "backward node"
                     : meaning::IsAclDialect(form.dialect) ? "interface call"
                                                           : "composite";
    arguments_.clear();
    arguments_.push_back(Named("call_id", row.call_id));
    if (!form.inputs.empty()) arguments_.push_back(Named("in", form.inputs));
    if (!form.outputs.empty()) arguments_.push_back(Named("out", form.outputs));
    if (const int64_t step = output_.calls.StepOf(row.call_id); step >= 0) {
      arguments_.push_back(Named("step", step));
    }
    if (!meaning::IsAclDialect(form.dialect))
      arguments_.push_back(Named("phase", meaning::PhaseName(row.bits)));
    AddNonZero("stream", row.stream_id);
    AddNonZero("model", row.model_id);
    AddNonZero("status", row.status);
    AddNonZero("prepare_ns", row.prepare_ns);
    AddNonZero("forward_call", row.forward_call);
    if (const std::string& module = modules_.Of(row.scope_id); !module.empty()) {
      arguments_.push_back(Named("module", module));
    }
    if (top.place != 0) arguments_.push_back(Named("source", places_.text(top.place)));
    slice.arguments = arguments_;
    const auto found = linked_.find(row.call_id);
    if (found != linked_.end()) {
      slice.begins = found->second.first;
      slice.ends = found->second.second;
      output_.counts.arrows += static_cast<int64_t>(slice.begins.size());
    }
    output_.slices.Add(GroupOf(row.thread_id), slice, row.end_ns);
    ++output_.counts.calls;
    if (found != linked_.end()) linked_.erase(found);
  }

 private:
  struct Waiting {
    CallRow row;
    uint32_t place = 0;
    bool operator<(const Waiting& other) const {  // the earliest is on top
      return row.begin_ns != other.row.begin_ns ? row.begin_ns > other.row.begin_ns
                                                : row.call_id > other.row.call_id;
    }
  };

  void Read() {
    Waiting next;
    more_ = output_.calls.Next(next.row);
    if (!more_ || !output_.calls.Shown(next.row)) return;
    next.place = places_.At(next.row.call_id);
    for (const auto& arrows : arrows_) arrows->At(next.row.call_id, begins_, ends_);
    if (!begins_.empty() || !ends_.empty()) {
      linked_[next.row.call_id] = {std::move(begins_), std::move(ends_)};
      begins_.clear();
      ends_.clear();
    }
    waiting_.push(next);
  }
  // A trace that was cut may lack the row of a thread.
  size_t GroupOf(int64_t thread_id) {
    auto& threads = output_.tracks.threads;
    const auto found = threads.find(thread_id);
    if (found != threads.end()) return found->second.calls;
    Track track;
    track.name = "thread " + std::to_string(thread_id);
    return threads.emplace(thread_id, Tracks::Thread{0, output_.slices.AddGroup(track), {}})
        .first->second.calls;
  }
  void AddNonZero(const char* name, int64_t value) {
    if (value != 0) arguments_.push_back(Named(name, value));
  }

  Output& output_;
  ModulePaths modules_;
  CallPlaces places_;
  std::vector<std::unique_ptr<Arrows>> arrows_;
  std::priority_queue<Waiting> waiting_;
  // Arrows of waiting calls: those that begin and those that end there.
  std::unordered_map<int64_t, std::pair<std::vector<Arrow>, std::vector<Arrow>>> linked_;
  std::vector<Arrow> begins_, ends_;
  std::vector<SliceArgument> arguments_;
  bool more_ = true;
};

}  // namespace

CallLookup::CallLookup(const storage::Reader& trace, const TimelineOptions& options)
    : options_(options),
      base_ns_(trace.database().Integer(
          "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'base_ns'")),
      process_(trace.process()),
      forms_(trace.database()),
      steps_(trace.Steps()),
      all_(trace.database(), CallsSql(trace.database(), "ORDER BY c.call_id")),
      one_(trace.database(), CallsSql(trace.database(), "WHERE c.call_id = ?")) {
  if (process_ == 0) return;
  storage::Statement threads(
      trace.database(), "SELECT thread_id FROM thread WHERE process_id = ? ORDER BY thread_id");
  threads.Bind(1, process_);
  while (threads.Next()) threads_.push_back(threads.Integer(0));
}

CallRow CallLookup::Read(const storage::Statement& row) const {
  CallRow call;
  int column = 0;
  for (int64_t* value : {&call.call_id, &call.parent_id, &call.signature_id, &call.thread_id,
                         &call.bits, &call.begin_ns, &call.end_ns, &call.scope_id, &call.stream_id,
                         &call.forward_call, &call.status, &call.prepare_ns, &call.model_id}) {
    *value = row.Integer(column++);
  }
  call.end_ns = call.begin_ns + base_ns_ + std::max<int64_t>(call.end_ns, 0);  // was the duration
  call.begin_ns += base_ns_;
  return call;
}

bool CallLookup::Next(CallRow& row) {
  if (!all_.Next()) return false;
  row = Read(all_);
  return true;
}

int64_t CallLookup::StepOf(int64_t call_id) const {
  const auto after =
      std::upper_bound(steps_.begin(), steps_.end(), call_id,
                       [](int64_t id, const storage::Step& step) { return id < step.first_call; });
  if (after == steps_.begin() || call_id > std::prev(after)->last_call) return -1;
  return std::prev(after)->step;
}

bool CallLookup::Shown(const CallRow& row) {
  if (process_ != 0 && !std::binary_search(threads_.begin(), threads_.end(), row.thread_id)) {
    return false;
  }
  if (!options_.wanted) return true;
  const CallForm& form = forms_.Of(row.signature_id);
  CallKey key;
  key.call_id = row.call_id;
  key.step = StepOf(row.call_id);
  key.stream = row.stream_id == 0 ? -1 : row.stream_id;
  key.name = form.name;
  key.full_name = form.full_name;
  return options_.wanted(key);
}

bool CallLookup::Shown(int64_t call_id) {
  one_.Reset();
  one_.Bind(1, call_id);
  return one_.Next() && Shown(Read(one_));
}

std::unique_ptr<Source> MakeCallSource(Output& output) {
  return std::make_unique<CallSource>(output);
}

}  // namespace acltape::timeline
