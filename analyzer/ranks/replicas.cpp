#include "analyzer/ranks/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "analyzer/ranks/states.h"
#include "storage/payload.h"

namespace acltape::analyzer::ranks {
namespace {

bool IsZeros(const std::string& digest, int64_t bytes) {
  static std::map<int64_t, std::string> zeros;
  const auto [entry, fresh] = zeros.try_emplace(bytes);
  if (fresh) {
    const std::vector<uint8_t> content(static_cast<size_t>(std::min<int64_t>(bytes, 1 << 28)));
    entry->second = storage::DigestOf(content.data(), content.size());
  }
  return entry->second == digest;
}

class ReplicaSearch {
 public:
  ReplicaSearch(const storage::Reader& trace, const Communication& all,
                const std::vector<Communicator>& communicators, Lines& lines)
      : trace_(trace), all_(all), communicators_(communicators), lines_(lines) {}

  ReplicaReport Run() {
    world_ = FindWorld();
    if (world_ == nullptr) return std::move(report_);
    states_ = LoadStates(trace_, *world_);
    report_.has_values = states_.has_values;
    CompareStates();
    return std::move(report_);
  }

 private:
  // The communicator with most ranks; of several that with most meetings.
  const Communicator* FindWorld() const {
    const Communicator* world = nullptr;
    for (const Communicator& one : communicators_) {
      if (!one.IsCompared() || one.meetings() == 0) continue;
      if (world == nullptr || std::pair(one.runs.size(), one.meetings()) >
                                  std::pair(world->runs.size(), world->meetings())) {
        world = &one;
      }
    }
    return world;
  }

  void CompareStates() {
    for (auto& [form, by_process] : states_.by_form) {
      // A tensor that is written in one epoch alone has no history.
      size_t least = SIZE_MAX;
      size_t most = 0;
      for (auto& [process, states] : by_process) {
        std::erase_if(states, [](const auto& state) { return state->writes.size() < 2; });
        least = std::min(least, states.size());
        most = std::max(most, states.size());
      }
      report_.tensors += static_cast<int64_t>(most);
      if (by_process.size() != world_->processes.size() || least != most) {
        report_.unpaired += static_cast<int64_t>(most);
        continue;
      }
      for (size_t i = 0; i < most; ++i) {
        std::vector<const State*> replicas;
        for (const auto& [process, states] : by_process) replicas.push_back(states[i].get());
        CompareReplicas(form, replicas);
      }
    }
    std::ranges::sort(parted_, {}, [](const Parted& one) { return one.epoch; });
    Report();
  }

  struct Parted {
    size_t epoch = 0;
    std::string who;
    const State* odd = nullptr;
    const State* other = nullptr;
    int64_t call_id = 0;  // the write of the odd one
    int64_t other_call = 0;
    int64_t odd_before = 0;  // the writes before these two
    int64_t other_before = 0;
    size_t equal_epoch = 0;  // the last one at which they were equal
    std::string form;
  };

  // The last epoch at which two ranks had the same value, by pair; -1: never.
  class Together {
   public:
    explicit Together(size_t ranks) : ranks_(ranks), since_(ranks * ranks, -1) {}
    int& operator()(size_t a, size_t b) { return since_[std::min(a, b) * ranks_ + std::max(a, b)]; }

   private:
    size_t ranks_;
    std::vector<int> since_;
  };

  // Compares the values of the ranks at each epoch at which all have one. Ranks that were together
  // once and are not later have parted.
  void CompareReplicas(const Form& form, const std::vector<const State*>& replicas) {
    std::vector<size_t> position(replicas.size());
    Together together(replicas.size());
    bool counted = false;
    while (true) {
      size_t epoch = 0;
      for (size_t r = 0; r < replicas.size(); ++r) {
        if (position[r] == replicas[r]->writes.size()) return;
        epoch = std::max(epoch, replicas[r]->writes[position[r]].epoch);
      }
      bool all_there = true;
      for (size_t r = 0; r < replicas.size(); ++r) {
        const auto& writes = replicas[r]->writes;
        while (position[r] < writes.size() && writes[position[r]].epoch < epoch) ++position[r];
        all_there = all_there && position[r] < writes.size() && writes[position[r]].epoch == epoch;
      }
      if (!all_there) continue;
      std::vector<const Write*> now;
      for (size_t r = 0; r < replicas.size(); ++r) {
        now.push_back(&replicas[r]->writes[position[r]]);
      }
      if (AddParted(form, replicas, position, now, together, epoch)) return;
      for (size_t a = 0; a < replicas.size(); ++a) {
        for (size_t b = a + 1; b < replicas.size(); ++b) {
          const bool equal = now[a]->digest == now[b]->digest;
          if (!equal || IsZeros(now[a]->digest, replicas[a]->bytes)) continue;
          together(a, b) = static_cast<int>(epoch);
          report_.replicas += counted ? 0 : 1;
          counted = true;
        }
      }
      for (size_t& next : position) ++next;
    }
  }

  static bool HaveParted(Together& together, const std::vector<const Write*>& now, size_t a,
                         size_t b) {
    return a != b && together(a, b) >= 0 && now[a]->digest != now[b]->digest;
  }

  // The first two ranks that have parted; nothing: none have.
  static std::optional<std::pair<size_t, size_t>> FindParted(Together& together,
                                                             const std::vector<const Write*>& now) {
    for (size_t a = 0; a < now.size(); ++a) {
      for (size_t b = a + 1; b < now.size(); ++b) {
        if (HaveParted(together, now, a, b)) return std::pair(a, b);
      }
    }
    return std::nullopt;
  }

  // Keeps which ranks have parted at an epoch; false: none have. Only ranks that were equal to
  // these before are set side by side: what another rank has here tells nothing of them.
  bool AddParted(const Form& form, const std::vector<const State*>& replicas,
                 const std::vector<size_t>& position, const std::vector<const Write*>& now,
                 Together& together, size_t epoch) {
    const auto parted = FindParted(together, now);
    if (!parted) return false;
    const auto [a, b] = *parted;
    std::map<std::string, std::vector<int64_t>> by_digest;
    for (size_t r = 0; r < replicas.size(); ++r) {
      const bool was_equal = r == a || r == b || together(a, r) >= 0 || together(b, r) >= 0;
      if (was_equal) by_digest[now[r]->digest].push_back(static_cast<int64_t>(r));
    }
    const std::vector<int64_t> odd_ones = OddOnes(by_digest);
    std::vector<int64_t> who;
    for (const int64_t r : odd_ones) who.push_back(replicas[static_cast<size_t>(r)]->process_id);
    // Ranks that were equal to one of both were equal to both, so there is another one.
    const auto odd = static_cast<size_t>(odd_ones.back());
    size_t other = odd == a ? b : a;
    for (size_t r = 0; r < replicas.size(); ++r) {
      if (!HaveParted(together, now, odd, r)) continue;
      other = r;
      break;
    }
    parted_.push_back({epoch, all_.NamesOf(who), replicas[odd], replicas[other], now[odd]->call_id,
                       now[other]->call_id, BeforeOf(replicas[odd]->writes, position[odd]),
                       BeforeOf(replicas[other]->writes, position[other]),
                       static_cast<size_t>(std::max(together(odd, other), 0)),
                       fmt::format("{} of shape {}", std::get<0>(form), std::get<1>(form))});
    return true;
  }

  static int64_t BeforeOf(const std::vector<Write>& writes, size_t position) {
    return position == 0 ? 0 : writes[position - 1].call_id;
  }

  // The operators that write a storage between two calls, with how often each does.
  std::map<std::string, std::vector<int64_t>> WritersBetween(const State& state, int64_t after,
                                                             int64_t before) const {
    std::map<std::string, std::vector<int64_t>> writers;
    const auto& calls = states_.writers.at({state.process_id, state.storage});
    for (auto call = calls.upper_bound(after); call != calls.end() && call->first <= before;
         ++call) {
      writers[call->second].push_back(call->first);
    }
    return writers;
  }

  // "; meanwhile only rank 1 writes it by aten::add_ (call 7) at train.py:30". Empty: both ranks
  // write it by the same operators.
  std::string OnlyOneWrites(const Parted& parted) {
    const auto odd = WritersBetween(*parted.odd, parted.odd_before, parted.call_id);
    const auto other = WritersBetween(*parted.other, parted.other_before, parted.other_call);
    const auto extra = [&](const auto& here, const auto& there, const State& state) {
      for (const auto& [op, calls] : here) {
        const auto counterpart = there.find(op);
        const size_t known = counterpart == there.end() ? 0 : counterpart->second.size();
        if (calls.size() <= known) continue;
        return fmt::format("; meanwhile only {} writes it by {} at {}",
                           all_.NameOf(state.process_id), lines_.Named(calls[known]),
                           lines_.Of(calls[known]));
      }
      return std::string();
    };
    const std::string by_odd = extra(odd, other, *parted.odd);
    return by_odd.empty() ? extra(other, odd, *parted.other) : by_odd;
  }

  // Tensors that part later follow from those that parted first.
  void Report() {
    if (parted_.empty()) return;
    const Parted* first = &parted_.front();
    size_t then = 0;
    for (const Parted& one : parted_) {
      if (one.epoch != parted_.front().epoch) break;
      ++then;
      if (one.call_id < first->call_id) first = &one;
    }
    std::string more;
    if (then > 1) more = fmt::format(", and {} other tensors then", then - 1);
    if (then < parted_.size()) more += fmt::format(", {} later", parted_.size() - then);
    report_.findings.push_back(
        {&FindRankRule("RANK-08"),
         first->call_id,
         first->who,
         fmt::format("{} that {} writes at {} is equal on {} until collective {} of communicator "
                     "{}, and different from collective {} on{}{}",
                     first->form, lines_.Named(first->call_id), lines_.Of(first->call_id),
                     all_.NamesOf({first->odd->process_id, first->other->process_id}),
                     first->equal_epoch, world_->name, first->epoch, OnlyOneWrites(*first), more),
         {first->call_id, first->other_call}});
  }

  const storage::Reader& trace_;
  const Communication& all_;
  const std::vector<Communicator>& communicators_;
  Lines& lines_;
  const Communicator* world_ = nullptr;
  States states_;
  std::vector<Parted> parted_;
  ReplicaReport report_;
};

}  // namespace

ReplicaReport FindReplicas(const storage::Reader& trace, const Communication& all,
                           const std::vector<Communicator>& communicators, Lines& lines) {
  return ReplicaSearch(trace, all, communicators, lines).Run();
}

}  // namespace acltape::analyzer::ranks
