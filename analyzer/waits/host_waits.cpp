#include "analyzer/waits/host_waits.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzer/lint/stretch.h"
#include "analyzer/waits/footprint.h"
#include "analyzer/waits/stream_clocks.h"
#include "meaning/torch_operators.h"
#include "storage/database.h"

namespace acltape::analyzer::waits {
namespace {

using K = AclCallKind;

// Calls after a wait that rely on it, whatever memory they name.
struct Relying {
  K kind;
  std::string_view why;
};
constexpr Relying kRelying[] = {
    {K::kCaptureBegin, "a capture follows"},
    {K::kBuildBegin, "a graph is built next"},
    {K::kModelDestroy, "a graph is destroyed next"},
    {K::kStreamDestroy, "a stream is destroyed next"},
    {K::kUpdateBegin, "the tasks of a graph are updated next"},
    {K::kEventTime, "a time of the device is taken next"},
};

constexpr std::string_view kUsesHost = "the work uses memory of the host";
constexpr std::string_view kOpaqueWork = "the trace does not tell what the work uses";
constexpr std::string_view kOpaqueNext = "an unknown function follows";
constexpr std::string_view kBracket = "another wait follows at once, as around a timing";

// A wait whose awaited work may still be used before the next wait for it.
struct WaitWindow {
  size_t wait = 0;  // index in HostWaits::waits
  int32_t thread = 0;
  Footprint footprint;
  Clock clock;                  // the work that the wait covers
  std::vector<size_t> streams;  // those with work that it was the first to wait for
};

class WaitFinder {
 public:
  explicit WaitFinder(const Work& work) : work_(work), footprints_(work) { FindThreads(); }

  HostWaits Find() {
    for (size_t call = 0; call < work_.size(); ++call) {
      if (work_.calls[call].status == 0) Take(static_cast<uint32_t>(call));
      int64_t& end = thread_end_[work_.calls[call].thread];
      end = std::max(end, work_.calls[call].begin_ns + work_.calls[call].duration_ns);
    }
    for (const WaitWindow& window : windows_) {
      HostWait& wait = found_.waits[window.wait];
      if (wait.need == Need::kNotNeeded) wait.need = Need::kLast;
    }
    MarkBrackets();
    return std::move(found_);
  }

 private:
  // Threads without operators of PyTorch whose calls belong to operators of another thread launch
  // for that thread.
  void FindThreads() {
    storage::Statement rows(
        work_.trace->database(),
        "SELECT DISTINCT c.thread_id FROM call_row c JOIN call_row p ON p.call_id = c.parent_id "
        "WHERE c.thread_id <> p.thread_id EXCEPT SELECT DISTINCT c.thread_id FROM call_row c JOIN "
        "signature s USING (signature_id) JOIN op o USING (op_id) WHERE o.dialect = 'aten'");
    while (rows.Next()) launching_.insert(static_cast<int32_t>(rows.Integer(0)));
    std::set<int64_t> devices;
    for (const storage::Handle& stream : work_.trace->Streams()) devices.insert(stream.device);
    several_devices_ = devices.size() > 1;
    over_torch_ =
        work_.trace->database().Integer("SELECT 1 FROM op WHERE dialect = 'aten' LIMIT 1") != 0;
  }

  void Take(uint32_t call) {
    const WorkForm& form = work_.form(call);
    const WorkCall& row = work_.calls[call];
    const K kind = form.acl_kind();
    const bool pageable = lint::IsPageableCopy(work_, call);
    if (row.model_id == 0 && (pageable || (WaitsOnHost(kind) && Ended(form)))) {
      TakeWait(call, pageable);
    }
    if (row.model_id == 0 || kind == K::kCaptureBegin) Judge(call);
    if (footprints_.IsWork(call)) {
      ++work_count_;
      clocks_.AddWork(row.stream_id, call);
    } else if (row.model_id == 0 && kind == K::kEventRecord) {
      clocks_.Record(form.Integer(form.function->object), row.stream_id);
    } else if (row.model_id == 0 && kind == K::kEventWait) {
      clocks_.Wait(row.stream_id, form.Integer(form.function->object));
    }
  }

  static bool Ended(const WorkForm& form) {
    const bool query = form.acl_kind() == K::kStreamQuery || form.acl_kind() == K::kEventQuery;
    return !query || form.Integer(form.function->detail) == form.function->done;
  }

  static WaitKind KindOf(K kind) {
    if (IsExecution(kind)) return WaitKind::kExecution;
    if (kind == K::kStreamQuery || kind == K::kEventQuery || kind == K::kEventTime) {
      return WaitKind::kQuery;
    }
    return IsDeviceWork(kind) ? WaitKind::kCopy : WaitKind::kSynchronise;
  }

  void TakeWait(uint32_t call, bool pageable) {
    const WorkCall& row = work_.calls[call];
    const Clock covered = CoveredByHost(work_, call, pageable, clocks_);
    const WaitKind kind = KindOf(work_.form(call).acl_kind());
    // A query would not have waited in place of an earlier wait. Of several devices it is not known
    // which one a wait for the device is about.
    const bool of_a_device = work_.form(call).acl_kind() == K::kDeviceSync;
    if (kind != WaitKind::kQuery && !(of_a_device && several_devices_)) {
      CloseWindows(row.thread, covered);
    }
    const bool launching = launching_.contains(row.thread);
    const bool query = kind == WaitKind::kQuery && row.parent_id != 0;
    if (launching) ++found_.of_launching_threads;
    if (!launching && query) ++found_.queries;
    if (launching || query || work_.form(call).acl_kind() == K::kStreamDestroy) {
      Advance(covered_[row.thread], covered);
      return;
    }
    if (!JoinsLast(row, kind)) {
      HostWait& made = found_.waits.emplace_back();
      made.leaf = row.parent_id;
      made.kind = kind;
      if (made.leaf != 0) ReadLeaf(made, row.thread);
      work_before_.push_back(work_count_);
      last_wait_[row.thread] = found_.waits.size() - 1;
    }
    const size_t index = last_wait_[row.thread];
    AddCall(found_.waits[index], call);
    AddAwaited(index, row.thread, covered);
  }

  // The calls of an operator are one wait. PyTorch copies without an operator too: it synchronises
  // the stream and copies, with no call in between.
  bool JoinsLast(const WorkCall& row, WaitKind kind) const {
    const auto last = last_wait_.find(row.thread);
    if (last == last_wait_.end()) return false;
    const HostWait& wait = found_.waits[last->second];
    if (wait.leaf != row.parent_id) return false;
    if (row.parent_id != 0) return true;
    const WorkCall& before = work_.calls[wait.calls.back()];
    const auto end = thread_end_.find(row.thread);
    return over_torch_ && kind == WaitKind::kCopy && wait.kind == WaitKind::kSynchronise &&
           end != thread_end_.end() && end->second == before.begin_ns + before.duration_ns;
  }

  void ReadLeaf(HostWait& wait, int32_t thread) {
    leaf_.Reset();
    leaf_.Bind(1, wait.leaf);
    if (leaf_.Next()) {
      leaf_begin_[thread] = leaf_.Integer(0);
      const storage::Op& op = work_.trace->GetOp(leaf_.Integer(1));
      const meaning::TorchOperator* row = meaning::FindTorchOperator(op.name, op.overload);
      const bool copies = row != nullptr && row->copies_between_devices;
      wait.kind = copies ? WaitKind::kCopy : WaitKind::kRead;
    }
    leaf_.Reset();
  }

  void AddCall(HostWait& wait, uint32_t call) {
    const WorkCall& row = work_.calls[call];
    int64_t begin = row.begin_ns;
    if (wait.leaf != 0) {
      begin = std::min(begin, std::max(leaf_begin_[row.thread], thread_end_[row.thread]));
    }
    if (wait.calls.empty()) wait.begin_ns = begin;
    const WaitKind kind = KindOf(work_.form(call).acl_kind());
    if (wait.leaf == 0 && kind == WaitKind::kCopy) wait.kind = kind;
    wait.calls.push_back(call);
    wait.end_ns = row.begin_ns + row.duration_ns;
    wait.blocked_ns += wait.end_ns - begin;
  }

  void AddAwaited(size_t index, int32_t thread, const Clock& covered) {
    Clock& before = covered_[thread];
    HostWait& wait = found_.waits[index];
    WaitWindow window;
    for (size_t place = 0; place < covered.size(); ++place) {
      const uint32_t from = At(before, place);
      if (covered[place] <= from) continue;
      const std::vector<uint32_t>& stream = clocks_.WorkAt(place);
      window.streams.push_back(place);
      wait.awaited += covered[place] - from;
      wait.last_awaited = std::max(wait.last_awaited, LastNamed(stream, from, covered[place]));
      if (wait.leaf != 0 || wait.kind == WaitKind::kQuery) continue;
      for (uint32_t i = from; i < covered[place]; ++i) {
        footprints_.AddTo(window.footprint, stream[i]);
      }
    }
    Advance(before, covered);
    if (wait.leaf != 0) return;
    if (wait.kind != WaitKind::kSynchronise) {
      wait.need = Need::kNotJudged;
      return;
    }
    if (window.streams.empty()) {
      wait.need = Need::kNothing;
    } else if (window.footprint.host || window.footprint.not_known) {
      wait.need = Need::kNotKnown;
      wait.why = window.footprint.host ? kUsesHost : kOpaqueWork;
    } else {
      wait.need = Need::kNotNeeded;  // until something needs it
      window.wait = index;
      window.thread = thread;
      window.clock = covered;
      windows_.push_back(std::move(window));
    }
  }

  // The last of the pieces [from, end) that the program knows by name. The copy for which a wait
  // stands may be issued by a thread that launches for others; it is not that.
  int64_t LastNamed(const std::vector<uint32_t>& stream, uint32_t from, uint32_t end) const {
    for (uint32_t i = end; i > from; --i) {
      const WorkCall& row = work_.calls[stream[i - 1]];
      const bool copies = IsCopy(work_.form(stream[i - 1]).acl_kind());
      if (!copies || row.parent_id != 0 || !launching_.contains(row.thread)) return stream[i - 1];
    }
    return -1;
  }

  // A wait that would have waited for the same work ends the window of an earlier one.
  void CloseWindows(int32_t thread, const Clock& covered) {
    std::erase_if(windows_, [&](WaitWindow& window) {
      if (window.thread != thread) return false;
      std::erase_if(window.streams,
                    [&](size_t place) { return At(covered, place) >= window.clock[place]; });
      return window.streams.empty();
    });
  }

  void Judge(uint32_t call) {
    if (windows_.empty()) return;
    std::erase_if(windows_, [&](const WaitWindow& window) {
      HostWait& wait = found_.waits[window.wait];
      if (wait.calls.back() == call) return false;
      const auto [need, why] = NeedBy(window, call);
      if (need == Need::kNotNeeded) return false;
      wait.need = need;
      wait.why = why;
      wait.needed_by = call;
      return true;
    });
  }

  // Says whether a call after the wait needs it; kNotNeeded: it does not.
  std::pair<Need, std::string_view> NeedBy(const WaitWindow& window, uint32_t call) {
    const WorkForm& form = work_.form(call);
    const K kind = form.acl_kind();
    for (const Relying& row : kRelying) {
      if (row.kind == kind) return {Need::kNeeded, row.why};
    }
    if (IsMemoryCall(kind)) {
      for (const int64_t buffer : work_.buffers(call)) {
        if (window.footprint.Names(buffer)) return {Need::kNeeded, "its memory is freed next"};
      }
      return {Need::kNotNeeded, {}};
    }
    if (IsDeviceWork(kind) && (WaitsOnHost(kind) || lint::IsPageableCopy(work_, call))) {
      if (!footprints_.Conflicts(window.footprint, call)) return {Need::kNotNeeded, {}};
      return {Need::kNeeded, "a copy by the host follows"};
    }
    if (kind == K::kUnknown || kind == K::kLeftOut) return {Need::kNotKnown, kOpaqueNext};
    if (!footprints_.IsWork(call) || IsOrdered(window, work_.calls[call].stream_id)) {
      return {Need::kNotNeeded, {}};
    }
    if (footprints_.IsOpaque(call)) return {Need::kNotKnown, kOpaqueNext};
    if (!footprints_.Conflicts(window.footprint, call)) return {Need::kNotNeeded, {}};
    return {Need::kNeeded, "work on another stream uses it next"};
  }

  // True if streams and events order the stream after the awaited work.
  bool IsOrdered(const WaitWindow& window, int64_t stream) {
    const size_t own = clocks_.PlaceOf(stream);
    const Clock& clock = clocks_.OfStream(stream);
    return std::ranges::all_of(window.streams, [&](size_t place) {
      return place == own || At(clock, place) >= window.clock[place];
    });
  }

  // A wait after which the same thread waits again, before it gives the device anything, may bound
  // a time that the program takes.
  void MarkBrackets() {
    std::unordered_map<int32_t, size_t> before;
    for (size_t i = 0; i < found_.waits.size(); ++i) {
      const HostWait& wait = found_.waits[i];
      const auto [last, first] = before.try_emplace(work_.calls[wait.calls.front()].thread, i);
      HostWait& earlier = found_.waits[last->second];
      if (!first && wait.need == Need::kNothing && work_before_[i] == work_before_[last->second] &&
          earlier.need == Need::kNotNeeded) {
        earlier.need = Need::kNotKnown;
        earlier.why = kBracket;
      }
      last->second = i;
    }
  }

  const Work& work_;
  const Footprints footprints_;
  StreamClocks clocks_;
  HostWaits found_;
  std::vector<WaitWindow> windows_;
  size_t work_count_ = 0;            // pieces of work so far
  std::vector<size_t> work_before_;  // by wait
  std::set<int32_t> launching_;
  std::unordered_map<int32_t, Clock> covered_;       // by thread
  std::unordered_map<int32_t, int64_t> thread_end_;  // the end of the thread's latest call
  std::unordered_map<int32_t, size_t> last_wait_;    // by thread
  std::unordered_map<int32_t, int64_t>
      leaf_begin_;  // begin of the leaf of the thread's latest wait
  bool over_torch_ = false;
  bool several_devices_ = false;
  storage::Statement leaf_{work_.trace->database(),
                           "SELECT begin_ns, op_id FROM call WHERE call_id = ?1"};
};

}  // namespace

std::string_view WaitKindName(WaitKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"synchronise", "copy", "read", "execution",
                                                      "query"};
  return kNames[static_cast<size_t>(kind)];
}

HostWaits FindHostWaits(const Work& work) { return WaitFinder(work).Find(); }

}  // namespace acltape::analyzer::waits
