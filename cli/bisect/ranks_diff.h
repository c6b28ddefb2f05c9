// Two recordings of a program of several ranks, rank by rank. A collective brings a difference to
// the other ranks, so collectives are the clock that tells on which rank it began.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/diff/diff.h"
#include "cli/frame/command_line.h"
#include "cli/terminal/table.h"
#include "storage/trace_part.h"

namespace acltape::cli {

class RanksDiff {
 public:
  // Compares each rank of A with that of B. `part` chooses the level. Throws Error kUsage if the
  // traces have not the same ranks, at least two, and as analyzer::diff::Diff.
  RanksDiff(const std::string& a, const std::string& b, const storage::TracePart& part,
            const analyzer::diff::DiffOptions& options);

  // The rank whose first difference comes after the fewest collectives, "rank:1"; empty: all ranks
  // agree.
  std::string FirstRank() const;
  // Prints what was found; returns the exit code of `diff`. `given`: the command line of it.
  int Print(Format format, const CommandLine& given) const;
  // The table of ranks alone: for a command that goes on with the first one.
  Table RankTable() const;

 private:
  struct Rank {
    int64_t rank = 0;
    analyzer::diff::DiffCounts counts;
    analyzer::Coverage coverage;
    std::string verdict;
    std::string standard;
    // Its first difference, if there is one.
    bool different = false;
    std::string place;
    std::string where;
    std::string cause;
    std::string change;
    std::string result;
    // The collectives that the rank had come to by then, in A, or in B where A has no such call.
    int64_t collectives = 0;
  };

  const Rank* First() const;
  // The ranks that part as early as the first one.
  size_t AsEarly() const;
  std::string Verdict() const;
  Table Summary(const CommandLine& given) const;

  std::array<std::string, 2> paths_;
  std::vector<Rank> ranks_;
};

}  // namespace acltape::cli
