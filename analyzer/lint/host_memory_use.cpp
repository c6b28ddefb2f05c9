#include "analyzer/lint/host_memory_use.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/lint/ordered_walk.h"
#include "analyzer/streams/race_checker.h"
#include "generated/meaning/parameter_positions.h"
#include "storage/database.h"

namespace acltape::analyzer::lint {
namespace {

namespace copy_at = meaning::position::aclrtMemcpy;

// Both addresses of a copy.
struct Way {
  int64_t from = 0;
  int64_t to = 0;
  bool operator<(const Way& other) const {
    return std::tie(from, to) < std::tie(other.from, other.to);
  }
};

// Bytes of the host that a leaf copies.
struct Copied {
  uint32_t leaf = 0;
  ByteAccess bytes;  // a write if the copy brings them to the host
};

class HostMemoryFinder {
 public:
  HostMemoryFinder(const Work& leaves, const Work& calls) : leaves_(leaves), calls_(calls) {}

  std::vector<HostMemoryUse> Find() {
    FindCopies();
    if (copies_.empty()) return {};
    FindUses();
    if (uses_.empty()) return {};
    MatchCopies();
    if (matched_.empty()) return {};
    Walk();
    return std::move(rows_);
  }

 private:
  const storage::Buffer& BufferOf(int64_t id) const { return leaves_.trace->GetBuffer(id); }

  // Leaves that copy without gaps between one tensor of the host and one of the device.
  void FindCopies() {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_.calls[i].status != 0) continue;
      ByteAccess host, device;
      size_t count = 0;
      leaves_.VisitAccesses(i, [&](const ByteAccess& access) {
        const bool on_host = BufferOf(access.buffer).device == 0;
        // The destination of copy_ may be listed as read and as written.
        if (!on_host && !access.write && device.buffer == access.buffer) return;
        ++count;
        (on_host ? host : device) = access;
      });
      if (count != 2 || host.buffer == 0 || device.buffer == 0) continue;
      if (host.write == device.write || host.form->strided) continue;
      const int64_t on_host = BufferOf(host.buffer).address + host.first;
      const int64_t on_device = BufferOf(device.buffer).address + device.first;
      const Way way = host.write ? Way{on_device, on_host} : Way{on_host, on_device};
      copies_[way].push_back({static_cast<uint32_t>(i), host});
      watched_.insert(host.buffer);
    }
  }

  // A use of memory of the host.
  struct Use {
    uint32_t leaf = 0;
    bool unseen = false;  // a write that no leaf made, at the latest before this leaf
  };

  // Leaves of the host alone that touch such tensors, and leaves that found one of them changed.
  void FindUses() {
    const std::set<std::pair<int64_t, int64_t>> changed = FindChanges();
    for (size_t i = 0; i < leaves_.size(); ++i) {
      bool on_device = false;
      std::set<int64_t> touched;
      leaves_.VisitAccesses(i, [&](const ByteAccess& access) {
        on_device = on_device || BufferOf(access.buffer).device != 0;
        if (watched_.contains(access.buffer)) touched.insert(access.buffer);
      });
      for (const int64_t buffer : touched) {
        if (!changed.contains({leaves_.calls[i].call_id, buffer})) continue;
        uses_of_[buffer].push_back(uses_.size());
        uses_.push_back({static_cast<uint32_t>(i), true});
      }
      if (touched.empty() || on_device) continue;
      for (const int64_t buffer : touched) uses_of_[buffer].push_back(uses_.size());
      uses_.push_back({static_cast<uint32_t>(i), false});
    }
  }

  // Calls and buffers that had changed since the recorded call before.
  std::set<std::pair<int64_t, int64_t>> FindChanges() const {
    std::set<std::pair<int64_t, int64_t>> changed;
    storage::Statement rows(
        leaves_.trace->database(),
        "SELECT call_id, tensor_id >> 24 FROM snapshot WHERE changed = 1 AND moment = 'before'");
    while (rows.Next()) {
      if (watched_.contains(rows.Integer(1))) changed.emplace(rows.Integer(0), rows.Integer(1));
    }
    return changed;
  }

  // Finds the call of each copy. A queue of the adapter keeps their order.
  void MatchCopies() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const WorkForm& form = calls_.form(i);
      if (form.acl_kind() != AclCallKind::kCopyAsync || calls_.calls[i].status != 0) continue;
      const auto waiting = copies_.find(WayOf(i));
      if (waiting == copies_.end() || waiting->second.empty()) continue;
      const Copied& next = waiting->second.front();
      if (leaves_.calls[next.leaf].call_id > calls_.calls[i].call_id) continue;
      matched_.emplace(static_cast<uint32_t>(i), next);
      waiting->second.pop_front();
    }
  }

  Way WayOf(size_t call) const {
    Way way;
    const std::span<const int64_t> buffers = calls_.buffers(call);
    for (const storage::SignatureArgument& argument : *calls_.form(call).arguments) {
      if (argument.position != copy_at::kDst && argument.position != copy_at::kSrc) continue;
      if (argument.tensors.empty()) return {};  // pageable memory: the host waits for the copy
      const storage::SlotRef& tensor = argument.tensors.front();
      const auto slot = static_cast<size_t>(tensor.slot);
      if (!tensor.has_buffer() || slot >= buffers.size()) return {};
      const int64_t address = calls_.trace->GetBuffer(buffers[slot]).address +
                              calls_.trace->GetLayout(tensor.layout_id).FirstByte();
      (argument.position == copy_at::kSrc ? way.from : way.to) = address;
    }
    return way;
  }

  // Goes through the calls in order. A use of the host lies after the copies that were asked for
  // before it, also where a queue issues them later, and after the waits that ended before it.
  void Walk() {
    std::vector<size_t> place(uses_.size());  // the use comes in front of this call
    size_t call = 0;
    for (size_t u = 0; u < uses_.size(); ++u) {
      const WorkCall& use = leaves_.calls[uses_[u].leaf];
      while (call < calls_.size() && calls_.calls[call].call_id < use.call_id) ++call;
      place[u] = call;
    }
    for (const auto& [index, copied] : matched_) {
      const int64_t asked = leaves_.calls[copied.leaf].call_id;
      const std::vector<size_t>& uses = uses_of_[copied.bytes.buffer];
      auto use = std::upper_bound(uses.begin(), uses.end(), asked, [&](int64_t id, size_t u) {
        return id < leaves_.calls[uses_[u].leaf].call_id;
      });
      for (; use != uses.end() && place[*use] <= index; ++use) place[*use] = index + 1;
    }
    std::multimap<size_t, size_t> at_place;
    for (size_t u = 0; u < uses_.size(); ++u) at_place.emplace(place[u], u);
    streams::RaceChecker checker;
    const auto uses_before = [&](size_t end) {
      while (!at_place.empty() && at_place.begin()->first <= end) {
        const size_t use = at_place.begin()->second;
        std::vector<ByteAccess> accesses;
        leaves_.VisitAccesses(uses_[use].leaf, [&](const ByteAccess& access) {
          if (uses_[use].unseen && !watched_.contains(access.buffer)) return;
          accesses.push_back(access);
          if (uses_[use].unseen) accesses.back().write = true;
        });
        checker.Work(-1 - static_cast<int64_t>(use), streams::RaceChecker::kHost, accesses);
        at_place.erase(at_place.begin());
      }
    };
    OrderedWalk walk(calls_, checker, [&](size_t i) {
      const auto copied = matched_.find(static_cast<uint32_t>(i));
      if (copied == matched_.end()) return;
      checker.Work(static_cast<int64_t>(i), calls_.calls[i].stream_id, {&copied->second.bytes, 1});
    });
    for (size_t i = 0; i < calls_.size(); ++i) {
      uses_before(i);
      const WorkCall& one = calls_.calls[i];
      if (one.status == 0 && one.model_id == 0 && calls_.form(i).function != nullptr) walk.Call(i);
    }
    walk.End();
    uses_before(SIZE_MAX);
    for (const streams::Race& race : checker.races()) {
      if (race.first < 0 || race.second >= 0) continue;
      const auto copied = matched_.find(static_cast<uint32_t>(race.first));
      if (copied == matched_.end()) continue;
      const Use& use = uses_[static_cast<size_t>(-1 - race.second)];
      rows_.push_back({copied->second.leaf, static_cast<uint32_t>(race.first), use.leaf,
                       !copied->second.bytes.write, use.unseen});
    }
  }

  const Work& leaves_;
  const Work& calls_;
  std::map<Way, std::deque<Copied>> copies_;
  std::unordered_set<int64_t> watched_;  // tensors of the host
  std::vector<Use> uses_;
  std::unordered_map<int64_t, std::vector<size_t>> uses_of_;  // indices in uses_, by buffer
  std::map<uint32_t, Copied> matched_;                        // by call
  std::vector<HostMemoryUse> rows_;
};

}  // namespace

bool HasCopiesOfPinnedMemory(const Work& calls) {
  return std::any_of(calls.forms.begin(), calls.forms.end(), [](const WorkForm& form) {
    if (form.acl_kind() != AclCallKind::kCopyAsync) return false;
    return std::count_if(form.arguments->begin(), form.arguments->end(),
                         [](const auto& argument) { return !argument.tensors.empty(); }) > 1;
  });
}

std::vector<HostMemoryUse> FindHostMemoryUses(const Work& leaves, const Work& calls) {
  return HostMemoryFinder(leaves, calls).Find();
}

}  // namespace acltape::analyzer::lint
