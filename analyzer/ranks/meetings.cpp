#include "analyzer/ranks/meetings.h"

#include <algorithm>

namespace acltape::analyzer::ranks {

std::vector<int64_t> Communicator::ProcessesOf(const std::vector<int64_t>& of_ranks) const {
  std::vector<int64_t> found;
  for (const int64_t rank : of_ranks) {
    if (const auto process = processes.find(rank); process != processes.end()) {
      found.push_back(process->second);
    }
  }
  return found;
}

size_t Communicator::meetings() const {
  size_t least = runs.empty() ? 0 : SIZE_MAX;
  for (const auto& [rank, of_rank] : runs) least = std::min(least, of_rank.size());
  return least;
}

std::vector<Communicator> FindCommunicators(const Communication& all) {
  std::map<std::string, Communicator> by_name;
  for (const auto& [process, runs] : all.runs) {
    for (const Run& run : runs) {
      const Collective& what = *run.what;
      if (what.op == "HcclBatchSendRecv" && !what.peer) continue;  // a batch without messages
      Communicator& one = by_name[what.communicator];
      one.name = what.communicator;
      one.ranks = std::max(one.ranks, what.ranks);
      const auto [known, fresh] = one.processes.try_emplace(what.rank, process);
      if (known->second != process) {
        one.ambiguous = true;
        continue;
      }
      (what.peer ? one.messages : one.runs)[what.rank].push_back(&run);
    }
  }
  std::vector<Communicator> communicators;
  for (auto& [name, one] : by_name) {
    // A rank that only sent messages takes part in no collective; one that is there takes part.
    for (const auto& [rank, process] : one.processes) one.runs[rank];
    communicators.push_back(std::move(one));
  }
  return communicators;
}

bool IsSameKind(const Run& a, const Run& b) { return a.what->op == b.what->op; }

namespace {

// The same collective on the ranks that were recorded.
struct Meeting {
  const Communicator* communicator = nullptr;
  size_t position = 0;                    // its place in the runs of each rank
  std::map<int64_t, int64_t> arrived_ns;  // by rank in the communicator
};

std::vector<Meeting> FindMeetings(const std::vector<Communicator>& communicators) {
  std::vector<Meeting> meetings;
  for (const Communicator& communicator : communicators) {
    if (!communicator.IsCompared()) continue;
    for (size_t i = 0; i < communicator.meetings(); ++i) {
      Meeting meeting{&communicator, i, {}};
      const Run* first = communicator.runs.begin()->second[i];
      bool same = true;
      for (const auto& [rank, runs] : communicator.runs) {
        same = same && IsSameKind(*first, *runs[i]);
        meeting.arrived_ns[rank] = runs[i]->arrived_ns;
      }
      if (!same) break;
      meetings.push_back(std::move(meeting));
    }
  }
  return meetings;
}

// A stream of a process, on which collectives run one after the other.
using Queue = std::pair<int64_t, int64_t>;

// How long the host of a process waited for its device between two moments.
int64_t HostWaited(const Communication& all, int64_t process, int64_t from_ns, int64_t to_ns) {
  const auto of_process = all.host_waits.find(process);
  if (of_process == all.host_waits.end()) return 0;
  const auto& waits = of_process->second;
  int64_t waited = 0;
  for (auto wait = std::ranges::lower_bound(waits, std::pair(from_ns, INT64_MIN));
       wait != waits.end() && wait->first < to_ns; ++wait) {
    waited += std::min(wait->second, to_ns) - wait->first;
  }
  return waited;
}

// Without times of the device: a stream comes to a collective when the host has issued it, and not
// before it has done the work since the collective before it, which ended when its last rank came.
// That work is taken to last as long on each rank as the host of the quickest one took to issue it,
// without its waits for the device; so a host that is ahead of the others is not taken for a device
// that waits. Collectives whose orders contradict each other keep the times of their issue.
void EstimateArrivals(const Communication& all, std::vector<Meeting>& meetings) {
  // Runs of a process lie in one array in the order of their issue.
  std::map<Queue, std::map<const Run*, size_t>> in_order;
  std::vector<std::map<Queue, int64_t>> rank_of(meetings.size());
  for (size_t m = 0; m < meetings.size(); ++m) {
    const Communicator& communicator = *meetings[m].communicator;
    for (const auto& [rank, runs] : communicator.runs) {
      const Run* run = runs[meetings[m].position];
      const Queue queue{communicator.processes.at(rank), run->what->stream_id};
      rank_of[m][queue] = rank;
      in_order[queue][run] = m;
    }
  }
  struct Ended {
    int64_t issued_ns = 0;  // when the host issued the collective
    int64_t at_ns = 0;
  };
  std::map<Queue, Ended> before;
  const auto is_next = [&](size_t m) {
    return std::ranges::all_of(rank_of[m], [&](const auto& entry) {
      const auto& waiting = in_order[entry.first];
      return !waiting.empty() && waiting.begin()->second == m;
    });
  };
  std::vector<size_t> to_look_at;
  for (const auto& [queue, waiting] : in_order) to_look_at.push_back(waiting.begin()->second);
  while (!to_look_at.empty()) {
    const size_t m = to_look_at.back();
    to_look_at.pop_back();
    if (!is_next(m)) continue;
    int64_t work_ns = INT64_MAX;
    for (const auto& [queue, rank] : rank_of[m]) {
      const auto ended = before.find(queue);
      if (ended == before.end()) continue;
      const int64_t from_ns = ended->second.issued_ns;
      const int64_t to_ns = meetings[m].arrived_ns[rank];
      work_ns = std::min(work_ns, to_ns - from_ns - HostWaited(all, queue.first, from_ns, to_ns));
    }
    int64_t last = INT64_MIN;
    std::map<Queue, int64_t> issued_ns;
    for (const auto& [queue, rank] : rank_of[m]) {
      int64_t& arrived = meetings[m].arrived_ns[rank];
      issued_ns[queue] = arrived;
      const auto ended = before.find(queue);
      if (ended != before.end()) arrived = std::max(arrived, ended->second.at_ns + work_ns);
      last = std::max(last, arrived);
    }
    for (const auto& [queue, rank] : rank_of[m]) {
      before[queue] = {issued_ns[queue], last};
      auto& waiting = in_order[queue];
      waiting.erase(waiting.begin());
      if (!waiting.empty()) to_look_at.push_back(waiting.begin()->second);
    }
  }
}

// The messages from one rank to another, in order.
using Messages = std::map<std::pair<int64_t, int64_t>, std::vector<const Run*>>;

// A send ends when its receiver has taken it, so that the earlier one of both waits. In a batch, or
// in a graph, a rank waits for all of its messages at once: the longest of these waits counts.
void AddMessageWaits(const Communicator& communicator, std::vector<Wait>& waits) {
  Messages sent;
  Messages received;
  for (const auto& [rank, messages] : communicator.messages) {
    for (const Run* run : messages) {
      const int64_t peer = *run->what->peer;
      run->what->sends ? sent[{rank, peer}].push_back(run) : received[{peer, rank}].push_back(run);
    }
  }
  std::map<std::pair<int64_t, int64_t>, Wait> longest;  // by rank that waited, and its call
  for (const auto& [ends, sends] : sent) {
    const auto other = received.find(ends);
    const size_t pairs = other == received.end() ? 0 : std::min(sends.size(), other->second.size());
    for (size_t i = 0; i < pairs; ++i) {
      const Run* runs[] = {sends[i], other->second[i]};
      const int64_t ranks[] = {ends.first, ends.second};
      const size_t late = runs[0]->arrived_ns > runs[1]->arrived_ns ? 0 : 1;
      const size_t early = 1 - late;
      Wait wait;
      wait.communicator = &communicator;
      wait.message = true;
      wait.number = i + 1;
      wait.runs = {{ranks[0], runs[0]}, {ranks[1], runs[1]}};
      wait.first_rank = ranks[early];
      wait.late_rank = ranks[late];
      wait.first_ns = runs[early]->arrived_ns;
      wait.last_ns = runs[late]->arrived_ns;
      wait.waited_ns = wait.last_ns - wait.first_ns;
      wait.waited_by = {{ranks[early], wait.waited_ns}, {ranks[late], 0}};
      Wait& known = longest[{ranks[early], runs[early]->call_id}];
      if (known.communicator == nullptr || known.waited_ns < wait.waited_ns)
        known = std::move(wait);
    }
  }
  for (auto& [key, wait] : longest) waits.push_back(std::move(wait));
}

}  // namespace

std::vector<Wait> FindWaits(const Communication& all,
                            const std::vector<Communicator>& communicators) {
  std::vector<Meeting> meetings = FindMeetings(communicators);
  if (!all.on_device) EstimateArrivals(all, meetings);
  std::vector<Wait> waits;
  for (const Meeting& meeting : meetings) {
    const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto [first, last] = std::ranges::minmax_element(meeting.arrived_ns, by_time);
    Wait wait;
    wait.communicator = meeting.communicator;
    wait.number = meeting.position + 1;
    wait.first_rank = first->first;
    wait.late_rank = last->first;
    wait.first_ns = first->second;
    wait.last_ns = last->second;
    for (const auto& [rank, arrived] : meeting.arrived_ns) {
      wait.runs[rank] = meeting.communicator->runs.at(rank)[meeting.position];
      wait.waited_by[rank] = last->second - arrived;
      wait.waited_ns += last->second - arrived;
    }
    waits.push_back(std::move(wait));
  }
  if (all.on_device) {
    for (const Communicator& one : communicators) {
      if (!one.ambiguous) AddMessageWaits(one, waits);
    }
  }
  return waits;
}

}  // namespace acltape::analyzer::ranks
