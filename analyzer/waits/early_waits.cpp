#include "analyzer/waits/early_waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzer/waits/footprint.h"
#include "analyzer/waits/stream_clocks.h"
#include "storage/device_spans.h"

namespace acltape::analyzer::waits {
namespace {

using K = AclCallKind;
using Lane = std::pair<int64_t, int64_t>;  // a stream and the capture that it takes part in

// Waits of one stream that nothing has needed yet. More of them are an unusual program, of which
// the oldest are given up.
constexpr size_t kMostOpen = 16;

struct LaneRecord {
  uint32_t call = 0;
  Lane lane;
};

struct OpenWait {
  EarlyWait found;
  Lane lane;                    // the waiting one
  Lane source;                  // the awaited one
  std::vector<Lane> followers;  // lanes that wait for the waiting one
  Footprint footprint;
  int64_t awaited_ns = 0;
  int64_t between_ns = 0;
};

class EarlyFinder {
 public:
  explicit EarlyFinder(const Work& work) : work_(work), footprints_(work) {
    if (storage::HasDeviceSpans(*work.trace)) times_ = storage::DeviceTimes(*work.trace);
  }

  std::vector<EarlyWait> Find() {
    for (size_t call = 0; call < work_.size(); ++call) {
      if (work_.calls[call].status == 0) Take(static_cast<uint32_t>(call));
    }
    std::ranges::sort(found_, {}, &EarlyWait::wait);
    return std::move(found_);
  }

 private:
  bool IsWork(uint32_t call) const {
    const WorkForm& form = work_.form(call);
    if (footprints_.IsWork(call)) return true;
    return work_.calls[call].model_id != 0 && IsDeviceWork(form.acl_kind());
  }

  void Take(uint32_t call) {
    const WorkForm& form = work_.form(call);
    const WorkCall& row = work_.calls[call];
    const K kind = form.acl_kind();
    const Lane lane{row.stream_id, row.model_id};
    const int64_t object = form.Integer(form.function->object);
    if (kind == K::kEventCreate) {
      made_[object] = call;
    } else if (kind == K::kEventRecord) {
      seen_.insert(lane);
      records_[object] = {call, lane};
      clocks_.Record(object, IdOf(lane));
    } else if (kind == K::kEventWait) {
      TakeWait(call, lane, object);
      seen_.insert(lane);
    } else if (IsWork(call)) {
      TakeWork(call, lane);
      seen_.insert(lane);
      clocks_.AddWork(IdOf(lane), call);
    } else if (WaitsOnHost(kind) || kind == K::kCaptureEnd) {
      // The host may rely on any of the waits in what it does next.
      if (WaitsOnHost(kind)) Advance(host_done_, CoveredByHost(work_, call, false, clocks_));
      GiveUp([&](const OpenWait& open) {
        return kind != K::kCaptureEnd || open.lane.second == row.model_id ||
               open.lane.first == row.stream_id;
      });
    }
  }

  // The number of a lane among the clocks: that of its stream outside of captures.
  int64_t IdOf(const Lane& lane) {
    if (lane.second == 0) return lane.first;
    const auto next = -1 - static_cast<int64_t>(captured_lanes_.size());
    return captured_lanes_.try_emplace(lane, next).first->second;
  }

  void TakeWait(uint32_t call, const Lane& lane, int64_t event) {
    const auto record = records_.find(event);
    if (record == records_.end() || record->second.lane == lane) return;
    const Lane source = record->second.lane;
    // An earlier wait of this stream for that one has come to nothing.
    std::erase_if(open_, [&](OpenWait& open) {
      if (open.lane != lane || open.source != source) return false;
      if (open.followers.empty()) Close(open, -1);
      return true;
    });
    for (OpenWait& open : open_) {
      if (open.lane == source && open.lane != lane) open.followers.push_back(lane);
    }
    const Clock* record_clock = clocks_.OfRecord(event);
    Clock before = clocks_.OfStream(IdOf(lane));
    Advance(before, host_done_);
    OpenWait made;
    made.lane = lane;
    made.source = source;
    made.found.wait = call;
    made.found.record = record->second.call;
    const auto creation = made_.find(event);
    if (creation != made_.end()) made.found.made_by = creation->second;
    int64_t last = -1;
    for (size_t place = 0; record_clock != nullptr && place < record_clock->size(); ++place) {
      const std::vector<uint32_t>& work = clocks_.WorkAt(place);
      for (uint32_t i = At(before, place); i < (*record_clock)[place]; ++i) {
        footprints_.AddTo(made.footprint, work[i]);
        made.awaited_ns += TimeOf(work[i]);
        last = std::max<int64_t>(last, work[i]);
      }
    }
    clocks_.Wait(IdOf(lane), event);
    if (last < 0) return;
    made.found.awaited = static_cast<uint32_t>(last);
    // By its first wait a stream joins a capture, so that no later place would do.
    const bool joins = lane.second != 0 && !seen_.contains(lane);
    if (joins || made.footprint.not_known) return;
    if (std::ranges::count(open_, lane, &OpenWait::lane) >=
        static_cast<std::ptrdiff_t>(kMostOpen)) {
      open_.erase(std::ranges::find(open_, lane, &OpenWait::lane));
    }
    open_.push_back(std::move(made));
  }

  void TakeWork(uint32_t call, const Lane& lane) {
    std::erase_if(open_, [&](OpenWait& open) {
      const bool own = open.lane == lane;
      const bool follows = std::ranges::find(open.followers, lane) != open.followers.end();
      if (!own && !follows) return false;
      if (!footprints_.Conflicts(open.footprint, call)) {
        if (own && open.found.between++ == 0) open.found.first_between = call;
        if (own) open.between_ns += TimeOf(call);
        return false;
      }
      if (own && !footprints_.IsOpaque(call)) Close(open, call);
      return true;
    });
  }

  void Close(OpenWait& open, int64_t needed_by) {
    if (open.found.between == 0) return;
    open.found.needed_by = needed_by;
    open.found.device_ns = std::min(open.awaited_ns, open.between_ns);
    found_.push_back(open.found);
  }

  template <typename Holds>
  void GiveUp(const Holds& holds) {
    std::erase_if(open_, holds);
  }

  int64_t TimeOf(uint32_t call) const {
    const auto time = times_.find(work_.calls[call].call_id);
    return time == times_.end() ? 0 : time->second.ns;
  }

  const Work& work_;
  const Footprints footprints_;
  std::unordered_map<int64_t, storage::DeviceTime> times_;
  std::vector<EarlyWait> found_;
  std::vector<OpenWait> open_;
  std::unordered_map<int64_t, LaneRecord> records_;  // by event
  std::unordered_map<int64_t, uint32_t> made_;       // by event
  StreamClocks clocks_;
  Clock host_done_;                         // the work that the host has waited for
  std::map<Lane, int64_t> captured_lanes_;  // numbers below zero
  std::set<Lane> seen_;                     // lanes with work, a record or a wait
};

}  // namespace

std::vector<EarlyWait> FindEarlyWaits(const Work& work) { return EarlyFinder(work).Find(); }

}  // namespace acltape::analyzer::waits
