#include "analyzer/ranks/disagreements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>

namespace acltape::analyzer::ranks {
namespace {

// The counts of these may differ between ranks.
bool HasCountsOfItsOwn(const std::string& op) { return op.ends_with('V'); }

bool SameArguments(const Collective& a, const Collective& b) {
  const bool same_count = HasCountsOfItsOwn(a.op) || a.count == b.count;
  return same_count && a.dtype == b.dtype && a.reduction == b.reduction && a.root == b.root &&
         a.matrix == b.matrix;
}

class DisagreementSearch {
 public:
  DisagreementSearch(const Communication& all, const std::vector<Communicator>& communicators,
                     Lines& lines)
      : all_(all), communicators_(communicators), lines_(lines) {
    std::map<std::pair<int64_t, std::string_view>, size_t> captured;
    for (const Collective& one : all.collectives) {
      if (one.model_id == 0 || one.peer) continue;
      captured_as_[&one] = ++captured[{one.process_id, one.communicator}];
    }
  }

  std::vector<RankFinding> Run() {
    for (const Communicator& one : communicators_) {
      if (!one.IsCompared()) continue;
      Compare(one);
      CompareMessages(one);
    }
    CompareOrders();
    return std::move(findings_);
  }

 private:
  std::string NameOf(const Communicator& one, int64_t rank) const {
    const auto process = one.processes.find(rank);
    return process == one.processes.end() ? fmt::format("rank {} of it", rank)
                                          : all_.NameOf(process->second);
  }

  std::string NamesOf(const Communicator& one, const std::vector<int64_t>& ranks) const {
    return all_.NamesOf(one.ProcessesOf(ranks));
  }

  // "HcclAllReduce(count 4, fp32, sum) at train.py:30".
  std::string At(const ranks::Run& run) {
    return fmt::format("{} at {}", run.what->Text(), lines_.Of(run.what->call_id));
  }

  // Its number among the collectives of its communicator that its rank captured, from 1; 0: it is
  // in no graph.
  size_t CapturedAs(const ranks::Run& run) const {
    const auto found = captured_as_.find(run.what);
    return found == captured_as_.end() ? 0 : found->second;
  }

  void Add(std::string_view rule, const Communicator& one, const ranks::Run& run,
           const ranks::Run& other, std::string ranks, std::string message) {
    if (!told_
             .insert({std::string(rule), one.name, lines_.Of(run.what->call_id),
                      lines_.Of(other.what->call_id)})
             .second) {
      return;
    }
    findings_.push_back({&FindRankRule(rule),
                         run.what->call_id,
                         std::move(ranks),
                         std::move(message),
                         {run.what->call_id, other.what->call_id}});
  }

  void Compare(const Communicator& one) {
    for (size_t i = 0; i < one.meetings(); ++i) {
      std::map<std::string, std::vector<int64_t>> by_text;
      for (const auto& [rank, runs] : one.runs) {
        const Collective& what = *runs[i]->what;
        by_text[what.Text() + (what.model_id == 0 ? "" : " in a graph")].push_back(rank);
      }
      const std::vector<int64_t> odd_ranks = OddOnes(by_text);
      const int64_t odd = odd_ranks.back();
      const std::string who = NamesOf(one, odd_ranks);
      const ranks::Run& odd_run = *one.runs.at(odd)[i];
      for (const auto& [rank, runs] : one.runs) {
        if (rank == odd) continue;
        const ranks::Run& run = *runs[i];
        const std::string name = NameOf(one, rank);
        const auto sentence = [&](std::string_view how) {
          return fmt::format("collective {} of communicator {}: {} calls {}, {} calls {}{}", i + 1,
                             one.name, NameOf(one, odd), At(odd_run), name, At(run), how);
        };
        if (!IsSameKind(run, odd_run)) {
          Add("RANK-01", one, odd_run, run, who, sentence("; both wait for ever"));
          return;  // from here on nothing is at the same place
        }
        if (!SameArguments(*run.what, *odd_run.what)) {
          Add("RANK-02", one, odd_run, run, who, sentence(""));
          break;
        }
        if ((run.what->model_id == 0) != (odd_run.what->model_id == 0)) {
          const bool odd_in_graph = odd_run.what->model_id != 0;
          Add("RANK-04", one, odd_run, run, who,
              sentence(odd_in_graph ? "; the first is in a captured graph, the second is not"
                                    : "; the second is in a captured graph, the first is not"));
          break;
        }
        if (const size_t odd_number = CapturedAs(odd_run), number = CapturedAs(run);
            odd_number != number) {
          Add("RANK-11", one, odd_run, run, who,
              sentence(fmt::format("; they were captured as collectives {} and {} of the "
                                   "communicator, and a graph meets that of the same capture alone",
                                   odd_number, number)));
          break;
        }
      }
    }
    CompareLengths(one);
  }

  void CompareLengths(const Communicator& one) {
    const auto most = std::ranges::max_element(
        one.runs, {}, [](const auto& entry) { return entry.second.size(); });
    for (const auto& [rank, runs] : one.runs) {
      if (runs.size() == most->second.size()) continue;
      const ranks::Run& missed = *most->second[runs.size()];
      const int64_t process = one.processes.at(rank);
      std::string last = "it called none of them";
      if (!runs.empty()) last = fmt::format("its last one is {}", At(*runs.back()));
      Add("RANK-03", one, missed, runs.empty() ? missed : *runs.back(), NameOf(one, rank),
          fmt::format("{} does not come to collective {} of communicator {}: {} waits in {}; {} "
                      "made {} of {}, {}",
                      all_.NameOf(process), runs.size() + 1, one.name, NameOf(one, most->first),
                      At(missed), all_.NameOf(process), runs.size(), most->second.size(), last));
    }
  }

  void CompareMessages(const Communicator& one) {
    using Pair = std::pair<int64_t, int64_t>;  // who sends, who receives
    std::map<Pair, std::array<std::vector<const ranks::Run*>, 2>> sides;
    for (const auto& [rank, runs] : one.messages) {
      for (const ranks::Run* run : runs) {
        const bool sends = run->what->sends;
        const Pair pair = sends ? Pair{rank, *run->what->peer} : Pair{*run->what->peer, rank};
        sides[pair][sends ? 0 : 1].push_back(run);
      }
    }
    for (const auto& [pair, both] : sides) {
      if (!one.processes.contains(pair.first) || !one.processes.contains(pair.second)) continue;
      const auto& [sent, received] = both;
      const size_t common = std::min(sent.size(), received.size());
      for (size_t i = 0; i < common; ++i) {
        const Collective& a = *sent[i]->what;
        const Collective& b = *received[i]->what;
        if (a.count == b.count && a.dtype == b.dtype) continue;
        Add("RANK-06", one, *sent[i], *received[i], NamesOf(one, {pair.first, pair.second}),
            fmt::format("message {} from {} to {}: sent by {}, received by {}", i + 1,
                        NameOf(one, pair.first), NameOf(one, pair.second), At(*sent[i]),
                        At(*received[i])));
        break;
      }
      if (sent.size() == received.size()) continue;
      const bool more_sent = sent.size() > received.size();
      const ranks::Run& alone = more_sent ? *sent[common] : *received[common];
      const int64_t missing = more_sent ? pair.second : pair.first;
      Add("RANK-06", one, alone, alone, NameOf(one, missing),
          fmt::format("message {} from {} to {} has one side: {}, and {} {} {}", common + 1,
                      NameOf(one, pair.first), NameOf(one, pair.second), At(alone),
                      NameOf(one, missing), more_sent ? "receives" : "sends", common));
    }
  }

  // The place of each collective in the order of its rank: (communicator, number) is the same
  // collective on all ranks.
  struct Place {
    int64_t stream = 0;
    size_t position = 0;
    const ranks::Run* run = nullptr;
  };
  using Meeting = std::pair<const Communicator*, size_t>;

  std::map<int64_t, std::map<Meeting, Place>> PlacesByProcess() const {
    std::map<int64_t, std::map<const ranks::Run*, size_t>> order;
    for (const auto& [process, runs] : all_.runs) {
      for (size_t i = 0; i < runs.size(); ++i) order[process][&runs[i]] = i;
    }
    std::map<int64_t, std::map<Meeting, Place>> places;
    for (const Communicator& one : communicators_) {
      if (!one.IsCompared()) continue;
      for (const auto& [rank, runs] : one.runs) {
        const int64_t process = one.processes.at(rank);
        for (size_t i = 0; i < one.meetings(); ++i) {
          places[process][{&one, i}] = {runs[i]->what->stream_id, order[process][runs[i]], runs[i]};
        }
      }
    }
    return places;
  }

  // On one stream of a rank the first collective ends before the next one begins. If another rank
  // has both on one stream the other way round, each waits for the other.
  void CompareOrders() {
    const auto places = PlacesByProcess();
    for (auto a = places.begin(); a != places.end(); ++a) {
      for (auto b = std::next(a); b != places.end(); ++b) CompareOrder(*a, *b);
    }
  }

  void CompareOrder(const std::pair<const int64_t, std::map<Meeting, Place>>& a,
                    const std::pair<const int64_t, std::map<Meeting, Place>>& b) {
    // The common collectives in the order of a, for each pair of streams.
    std::map<std::pair<int64_t, int64_t>, std::map<size_t, std::pair<Meeting, Place>>> common;
    for (const auto& [meeting, place] : a.second) {
      const auto other = b.second.find(meeting);
      if (other == b.second.end()) continue;
      common[{place.stream, other->second.stream}][place.position] = {meeting, other->second};
    }
    for (const auto& [streams, in_order] : common) {
      const std::pair<Meeting, Place>* latest = nullptr;
      for (const auto& [position, entry] : in_order) {
        if (latest != nullptr && entry.second.position < latest->second.position &&
            latest->first.first != entry.first.first) {
          const ranks::Run& earlier = *a.second.at(latest->first).run;
          const ranks::Run& later = *a.second.at(entry.first).run;
          Add("RANK-05", *entry.first.first, later, earlier, all_.NamesOf({a.first, b.first}),
              fmt::format("{} calls {} of communicator {} and then {} of communicator {} on one "
                          "stream, {} the other way round at {} and {}",
                          all_.NameOf(a.first), At(earlier), latest->first.first->name, At(later),
                          entry.first.first->name, all_.NameOf(b.first),
                          lines_.Of(entry.second.run->what->call_id),
                          lines_.Of(latest->second.run->what->call_id)));
          break;
        }
        if (latest == nullptr || entry.second.position > latest->second.position) latest = &entry;
      }
    }
  }

  const Communication& all_;
  const std::vector<Communicator>& communicators_;
  Lines& lines_;
  std::map<const Collective*, size_t> captured_as_;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> told_;
  std::vector<RankFinding> findings_;
};

}  // namespace

std::vector<RankFinding> FindDisagreements(const Communication& all,
                                           const std::vector<Communicator>& communicators,
                                           Lines& lines) {
  return DisagreementSearch(all, communicators, lines).Run();
}

}  // namespace acltape::analyzer::ranks
