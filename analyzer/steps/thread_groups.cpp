#include "analyzer/steps/thread_groups.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/joined_sets.h"

namespace acltape::analyzer {
namespace {

// When a thread last used a thing and last changed it, as places in the work; -1: never.
struct Use {
  size_t thread = 0;
  int64_t used = -1;
  int64_t changed = -1;
};

class Joiner {
 public:
  Joiner(const std::vector<int64_t>& first_calls, base::JoinedSets& sets)
      : first_calls_(first_calls), sets_(sets) {}

  // A thing, such as a buffer, is used by `call`. `uses` are those before.
  void Add(std::vector<Use>& uses, size_t thread, int64_t call, bool changes) {
    Use* own = nullptr;
    for (Use& use : uses) {
      if (use.thread == thread) {
        own = &use;
      } else if ((changes ? use.used : use.changed) >= first_calls_[thread]) {
        sets_.Join(use.thread, thread);
      }
    }
    if (own == nullptr) own = &uses.emplace_back(Use{thread});
    own->used = call;
    if (changes) own->changed = call;
  }

 private:
  const std::vector<int64_t>& first_calls_;  // by thread
  base::JoinedSets& sets_;
};

}  // namespace

ThreadGroups::ThreadGroups(const Work& work) {
  std::unordered_map<int32_t, size_t> index;  // by thread
  std::vector<int64_t> first_calls;
  for (size_t call = 0; call < work.size(); ++call) {
    if (index.try_emplace(work.calls[call].thread, index.size()).second) {
      first_calls.push_back(static_cast<int64_t>(call));
    }
  }
  base::JoinedSets sets(index.size());
  Joiner joiner(first_calls, sets);
  std::unordered_map<int64_t, std::vector<Use>> streams;
  std::unordered_map<int64_t, std::vector<Use>> buffers;
  for (size_t place = 0; index.size() > 1 && place < work.size(); ++place) {
    const WorkForm& form = work.form(place);
    const size_t thread = index.at(work.calls[place].thread);
    const auto call = static_cast<int64_t>(place);
    const int64_t stream = work.calls[place].stream_id;
    if (stream != 0 && (form.active() || WaitsOnHost(form.acl_kind()))) {
      joiner.Add(streams[stream], thread, call, true);
    }
    if (!form.active()) continue;
    work.VisitAccesses(place, [&](const ByteAccess& access) {
      joiner.Add(buffers[access.buffer], thread, call, access.write);
    });
  }
  std::unordered_map<size_t, size_t> group_of_root;
  for (const auto& [thread, member] : index) {
    groups_[thread] =
        group_of_root.try_emplace(sets.Find(member), group_of_root.size()).first->second;
  }
  size_ = group_of_root.size();
  std::vector<int64_t> amounts(size_);
  std::unordered_map<int64_t, int64_t> held;  // calls, by graph
  int64_t whole = 0;
  for (size_t place = 0; size_ > 1 && place < work.size(); ++place) {
    const WorkCall& call = work.calls[place];
    const WorkForm& form = work.form(place);
    int64_t amount = form.active() ? 1 : 0;
    if (call.model_id != 0) {
      held[call.model_id] += std::exchange(amount, 0);
    } else if (IsExecution(form.acl_kind())) {
      const auto graph = held.find(form.Integer(form.function->object));
      amount = graph == held.end() ? 1 : graph->second;
    }
    amounts[groups_.at(call.thread)] += amount;
    whole += amount;
  }
  if (size_ > 1)
    working_ = size_ - static_cast<size_t>(std::count(amounts.begin(), amounts.end(), 0));
  for (most_ = 0; most_ < size_ && 2 * amounts[most_] <= whole;) ++most_;
}

}  // namespace acltape::analyzer
