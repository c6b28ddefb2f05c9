#include "analyzer/ranks/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/payload.h"

namespace acltape::analyzer::ranks {
namespace {

using storage::CheckedRow;
using storage::Statement;

// A value that a call left in memory.
struct Write {
  int64_t call_id = 0;
  size_t epoch = 0;  // collectives of the largest communicator that its process had issued before
  std::string digest;
};

// A tensor that one operator writes again and again.
struct State {
  int64_t process_id = 0;
  int64_t storage = 0;
  std::vector<Write> writes;  // in order
};

// Where a state lies, and who writes it there.
using StateKey = std::tuple<int64_t, int64_t, std::string, int64_t>;  // storage, layout, op, place
// What a state and its counterparts on other ranks have in common.
using Form = std::tuple<std::string, std::string, std::string, int64_t>;  // dtype, shape, op, place

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
    LoadStates();
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

  size_t EpochOf(int64_t process, int64_t call_id) const {
    const auto& issued = issued_.at(process);
    return static_cast<size_t>(std::ranges::lower_bound(issued, call_id) - issued.begin());
  }

  // Storages that live until the last meeting, by the block in which they lie.
  struct Storage {
    int64_t first = 0;  // byte of the block
    int64_t end = 0;
    int64_t buffer_id = 0;
    int64_t alloc_ns = 0;
  };

  void LoadStorages() {
    const int64_t last_ns = [this] {
      int64_t last = 0;
      for (const auto& [rank, runs] : world_->runs) {
        last = std::max(last, runs[world_->meetings() - 1]->begin_ns);
      }
      return last;
    }();
    Statement rows(trace_.database(),
                   "SELECT b.buffer_id, b.address - k.address, b.bytes, b.block, b.alloc_ns, "
                   "b.free_ns FROM buffer b JOIN buffer k ON k.buffer_id = b.block "
                   "WHERE b.layer = 'tensor'");
    const CheckedRow row(rows, trace_.path(), "buffer");
    while (rows.Next()) {
      has_storages_ = true;
      if (!row.IsNull(5) && row.Integer(5, "free_ns", -kMost, kMost) < last_ns) continue;
      const int64_t first = row.Integer(1, "address", -kMost, kMost);
      storages_[row.Integer(3, "block", 0, kMost)].push_back(
          {first, first + row.Integer(2, "bytes", 0, kMost), row.Id("buffer_id"),
           row.IntegerOrNull(4, "alloc_ns", -kMost, kMost)});
    }
  }

  // The storage that holds the byte; 0: none that lives to the end.
  int64_t StorageOf(int64_t block, int64_t byte, int64_t at_ns) const {
    if (!has_storages_) return block;
    const auto of_block = storages_.find(block);
    if (of_block == storages_.end()) return 0;
    for (const Storage& one : of_block->second) {
      if (byte >= one.first && byte < one.end && one.alloc_ns <= at_ns) return one.buffer_id;
    }
    return 0;
  }

  void LoadStates() {
    for (const auto& [rank, process] : world_->processes) {
      auto& issued = issued_[process];
      for (const ranks::Run* run : world_->runs.at(rank)) issued.push_back(run->call_id);
    }
    LoadStorages();
    Statement rows(
        trace_.database(),
        "SELECT s.call_id, t.process_id, s.position, s.tensor_id, s.digest, s.bytes, "
        "l.dtype, l.shape, l.byte_offset, o.name, c.begin_ns FROM snapshot s "
        "JOIN call c ON c.call_id = s.call_id JOIN thread t ON t.thread_id = c.thread_id "
        "JOIN op o ON o.op_id = c.op_id JOIN layout l ON l.layout_id = s.tensor_id & 0xffffff "
        "WHERE s.moment = 'after' AND s.position >= 0 AND s.digest <> '' AND c.model_id IS NULL "
        "AND o.dialect = 'aclnn' AND l.dtype IN ('float16', 'bfloat16', 'float32', 'float64') "
        "ORDER BY s.call_id");
    const CheckedRow row(rows, trace_.path(), "snapshot");
    std::map<std::pair<int64_t, StateKey>, State*> known;
    while (rows.Next()) {
      report_.has_values = true;
      const int64_t process = row.Integer(1, "process_id", 0, kMost);
      if (!issued_.contains(process)) continue;
      const int64_t tensor = row.Integer(3, "tensor_id", 0, INT64_MAX);
      const int64_t layout = tensor & 0xffffff;
      const int64_t storage = StorageOf(tensor >> 24, row.Integer(8, "byte_offset", 0, kMost),
                                        row.Integer(10, "begin_ns", -kMost, kMost));
      if (storage == 0) continue;
      const std::string op(row.Text(9, "op"));
      const int64_t position = row.Integer(2, "position", 0, kMost);
      State*& state = known[{process, {storage, layout, op, position}}];
      if (state == nullptr) {
        const Form form{row.Text(6, "dtype"), row.Text(7, "shape"), op, position};
        auto& of_form = states_[form][process];
        of_form.push_back(std::make_unique<State>());
        state = of_form.back().get();
        state->process_id = process;
        state->storage = storage;
      }
      const int64_t call_id = row.Id("call_id");
      writers_[{process, storage}][call_id] = op;
      bytes_[state] = row.Integer(5, "bytes", 0, kMost);
      const size_t epoch = EpochOf(process, call_id);
      if (!state->writes.empty() && state->writes.back().epoch == epoch) state->writes.pop_back();
      state->writes.push_back({call_id, epoch, std::string(row.Text(4, "digest"))});
    }
  }

  void CompareStates() {
    for (auto& [form, by_process] : states_) {
      // A tensor that is written in one epoch alone has no history.
      size_t least = SIZE_MAX;
      size_t most = 0;
      for (auto& [process, states] : by_process) {
        std::erase_if(states, [](const auto& state) { return state->writes.size() < 2; });
        least = std::min(least, states.size());
        most = std::max(most, states.size());
      }
      report_.tensors += static_cast<int64_t>(most);
      if (by_process.size() != issued_.size() || least != most) {
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
          if (!equal || IsZeros(now[a]->digest, bytes_[replicas[a]])) continue;
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
    const auto& calls = writers_.at({state.process_id, state.storage});
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
  std::map<int64_t, std::vector<int64_t>> issued_;  // calls of the world's collectives, by process
  std::map<int64_t, std::vector<Storage>> storages_;
  bool has_storages_ = false;
  std::map<Form, std::map<int64_t, std::vector<std::unique_ptr<State>>>> states_;  // by process
  std::map<const State*, int64_t> bytes_;
  // The operator of each call that writes a storage, by process and storage.
  std::map<std::pair<int64_t, int64_t>, std::map<int64_t, std::string>> writers_;
  std::vector<Parted> parted_;
  ReplicaReport report_;
};

}  // namespace

ReplicaReport FindReplicas(const storage::Reader& trace, const Communication& all,
                           const std::vector<Communicator>& communicators, Lines& lines) {
  return ReplicaSearch(trace, all, communicators, lines).Run();
}

}  // namespace acltape::analyzer::ranks
