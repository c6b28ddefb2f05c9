#include "cli/replay/replay_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "analyzer/ranks/lines.h"
#include "analyzer/ranks/meetings.h"
#include "cli/frame/command.h"
#include "cli/frame/forked.h"
#include "cli/tables/coverage_words.h"
#include "cli/tables/temporary_folder.h"
#include "replayer/acl_level/rank_meeting.h"
#include "replayer/acl_level/replay_level.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

using analyzer::ranks::Communication;
using analyzer::ranks::Communicator;
using nlohmann::json;

// A rank of the program: its process in the trace, and its rank.
struct Rank {
  int64_t process = 0;
  int64_t rank = 0;
};

std::vector<Rank> RanksOf(const std::string& path, const Communication& all) {
  std::vector<Rank> ranks;
  for (const auto& [process, rank] : all.ranks) ranks.push_back({process, rank});
  std::ranges::sort(ranks, {}, &Rank::rank);
  if (ranks.size() < 2) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{} has {} rank{} with communicators of HCCL; leave out @ranks, or record "
                    "the whole program"_cli,
                    path, ranks.empty() ? "no" : "one", ranks.empty() ? "s" : ""));
  }
  return ranks;
}

// The devices of the ranks: those that ASCEND_RT_VISIBLE_DEVICES names, if it is set.
std::vector<std::string> DevicesOf(size_t ranks) {
  std::vector<std::string> devices;
  const char* visible = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (visible == nullptr) {
    for (size_t i = 0; i < ranks; ++i) devices.push_back(std::to_string(i));
    return devices;
  }
  std::stringstream words(visible);
  for (std::string word; std::getline(words, word, ',');) devices.push_back(word);
  if (devices.size() < ranks) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} ranks need a device each, and ASCEND_RT_VISIBLE_DEVICES names {}; "
                            "name more of them, or unset it",
                            ranks, devices.size()));
  }
  return devices;
}

// In the process of one rank, which sees one device.
std::string ReplayOne(const RanksRequest& request, const Rank& rank, const std::string& device,
                      size_t ranks, const std::string& folder) {
  setenv("ASCEND_RT_VISIBLE_DEVICES", device.c_str(), /*overwrite=*/1);
  setenv("ACLTAPE_SOFT_DEVICES", std::to_string(ranks).c_str(), /*overwrite=*/0);
  replayer::ReplayOptions options = request.options;
  options.rank_meeting = folder;
  try {
    const storage::Reader reader(
        request.trace, {.process = std::to_string(rank.process), .level = storage::Level::kAcl});
    const replayer::ReplayReport report =
        replayer::acl_level::Replay(reader, options, /*results=*/nullptr);
    json left_out = json::object();
    for (const auto& [name, count] : report.acl.left_out) left_out[name] = count;
    for (const auto& [name, count] : report.acl.unknown) left_out[name] = count;
    json answer{{"device", report.device},
                {"operators", report.acl.operators},
                {"executions", report.acl.executions},
                {"substituted", report.substituted},
                {"compared", report.compared},
                {"equal", report.equal},
                {"within", report.within},
                {"different", report.differing},
                {"left_out", left_out},
                {"too_little", report.SawTooLittle()},
                {"coverage", report.SawTooLittle() ? NotKnown(report.coverage) : ""},
                {"code", report.ExitCode()},
                {"mismatches", json::array()}};
    for (const replayer::Mismatch& mismatch : report.mismatches) {
      const auto& metrics = mismatch.metrics;
      answer["mismatches"].push_back(
          {{"call", mismatch.call_id},
           {"op", mismatch.op},
           {"output", mismatch.name},
           {"difference",
            mismatch.digest_only
                ? std::string("another digest; the trace keeps no values to look into")
                : fmt::format("{} of {} elements, first [{}]: recorded {}, replayed {}",
                              metrics.differing, metrics.elements, metrics.first_index,
                              metrics.first_a, metrics.first_b)}});
    }
    return answer.dump();
  } catch (const Error& error) {
    replayer::acl_level::EndMeeting(folder);
    throw Error(error.kind(), fmt::format("rank {}: {}", rank.rank, error.what()));
  }
}

class Answer {
 public:
  Answer(const RanksRequest& request, const storage::Reader& reader, const Communication& all,
         const std::vector<Rank>& ranks, const std::vector<json>& answers)
      : request_(request), reader_(reader), all_(all), ranks_(ranks), answers_(answers) {}

  void Print() const {
    Report report;
    report.Add("summary", Summary());
    report.Add("ranks", Ranks());
    report.Add("differences", Differences());
    fmt::print("{}", report.ToText(request_.format));
  }

  int Code() const {
    int code = kExitFine;
    for (const json& answer : answers_) code = std::max(code, answer["code"].get<int>());
    return Sum("different") > 0 ? kExitDifferences : code;
  }

 private:
  int64_t Sum(const char* key) const {
    int64_t sum = 0;
    for (const json& answer : answers_) sum += answer[key].get<int64_t>();
    return sum;
  }

  std::string Verdict() const {
    const int64_t compared = Sum("compared");
    if (Sum("different") > 0) {
      const bool whole =
          std::ranges::all_of(answers_, [](const json& one) { return one["left_out"].empty(); });
      return fmt::format("different: {} of {} compared outputs; {}{}", Sum("different"), compared,
                         FirstDifference(),
                         whole ? "" : "; calls were left out, which may be the cause");
    }
    if (compared == 0) return "nothing was compared";
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (answers_[i]["too_little"].get<bool>()) {
        return fmt::format("rank {}: {}", ranks_[i].rank,
                           answers_[i]["coverage"].get<std::string>());
      }
    }
    const std::string on = fmt::format("on {} ranks: ", ranks_.size());
    if (Sum("equal") == compared) {
      return fmt::format("equal bit for bit {}all {} compared outputs", on, compared);
    }
    return fmt::format("equal bit for bit {}{} of {} compared outputs, {} within {}", on,
                       Sum("equal"), compared, Sum("within"), request_.options.standard->given());
  }

  // A collective brings a difference to the other ranks, so the rank with the earliest one is where
  // to look.
  std::string FirstDifference() const {
    std::optional<std::pair<int64_t, size_t>> earliest;
    size_t as_early = 0;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (answers_[i]["mismatches"].empty()) continue;
      const int64_t before = all_.CountUpTo(ranks_[i].process, FirstCall(i), storage::Level::kAcl);
      if (!earliest || before < earliest->first) {
        earliest = {before, i};
        as_early = 0;
      }
      as_early += before == earliest->first ? 1 : 0;
    }
    if (!earliest) return "none of them is listed";
    const size_t i = earliest->second;
    analyzer::ranks::Lines lines(reader_);
    return fmt::format("first on rank {}{}, in {} at {}, after {} collective{}", ranks_[i].rank,
                       as_early > 1 ? " (and others as early)" : "", lines.Named(FirstCall(i)),
                       lines.Of(FirstCall(i)), earliest->first, earliest->first == 1 ? "" : "s");
  }

  int64_t FirstCall(size_t i) const { return answers_[i]["mismatches"][0]["call"].get<int64_t>(); }

  Table Summary() const {
    Table table({"quantity", "value"});
    table.Add({"device", answers_.front()["device"].get<std::string>()});
    table.Add({"mode", std::string(request_.options.mode == replayer::Mode::kEager ? "eager"
                                                                                   : "captured")});
    table.Add({"ranks", static_cast<int64_t>(ranks_.size())});
    int64_t collectives = 0;
    for (const auto& [process, runs] : all_.runs) {
      collectives += static_cast<int64_t>(runs.size());
    }
    table.Add({"collectives and messages, in graphs too", collectives});
    table.Add({"operators", Sum("operators")});
    table.Add({"  substituted by recorded outputs", Sum("substituted")});
    table.Add({"executions of the program's graphs", Sum("executions")});
    table.Add({"outputs compared", Sum("compared")});
    table.Add({"outputs equal", Sum("equal")});
    table.Add({"outputs different", Sum("different")});
    for (size_t i = 0; i < ranks_.size(); ++i) {
      for (const auto& [name, count] : answers_[i]["left_out"].items()) {
        table.Add(
            {fmt::format("left out on rank {}: {}", ranks_[i].rank, name), count.get<int64_t>()});
      }
    }
    table.Add({"verdict", Verdict()});
    if (Code() != 0) table.Add({"reproduce", request_.given.Text()});
    return table;
  }

  Table Ranks() const {
    Table table({"rank", "process", "operators", "executions", "compared", "equal", "different"});
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const auto number = [&](const char* key) { return answers_[i][key].get<int64_t>(); };
      table.Add({ranks_[i].rank, ranks_[i].process, number("operators"), number("executions"),
                 number("compared"), number("equal"), number("different")});
    }
    return table;
  }

  Table Differences() const {
    Table table({"rank", "call_id", "op", "output", "after_collectives", "where", "difference"});
    analyzer::ranks::Lines lines(reader_);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      for (const json& mismatch : answers_[i]["mismatches"]) {
        const auto call = mismatch["call"].get<int64_t>();
        table.Add({ranks_[i].rank, call, mismatch["op"].get<std::string>(),
                   mismatch["output"].get<std::string>(),
                   all_.CountUpTo(ranks_[i].process, call, storage::Level::kAcl), lines.Of(call),
                   mismatch["difference"].get<std::string>()});
      }
    }
    return table;
  }

  const RanksRequest& request_;
  const storage::Reader& reader_;
  const Communication& all_;
  const std::vector<Rank>& ranks_;
  const std::vector<json>& answers_;
};

}  // namespace

int ReplayRanks(const RanksRequest& request) {
  Communication all;
  {
    // A process is copied while no trace is open.
    const storage::Reader reader(request.trace);
    all = analyzer::ranks::LoadCommunication(reader);
  }
  const std::vector<Rank> ranks = RanksOf(request.trace, all);
  const std::vector<std::string> devices = DevicesOf(ranks.size());
  const TemporaryFolder place;  // where the processes meet
  std::vector<std::function<std::string()>> works;
  for (size_t i = 0; i < ranks.size(); ++i) {
    works.emplace_back(
        [&, i] { return ReplayOne(request, ranks[i], devices[i], ranks.size(), place.path()); });
  }
  std::vector<json> answers;
  for (const Forked& forked :
       CallAllForked(works, [&] { replayer::acl_level::EndMeeting(place.path()); })) {
    if (forked.exit_code != kExitFine) return forked.exit_code;
    answers.push_back(json::parse(forked.result));
  }
  const storage::Reader reader(request.trace);
  const Answer answer(request, reader, all, ranks, answers);
  answer.Print();
  return answer.Code();
}

}  // namespace acltape::cli
