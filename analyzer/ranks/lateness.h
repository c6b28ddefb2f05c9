// Who comes late to the meetings of ranks, and what it did meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/ranks/lines.h"
#include "analyzer/ranks/meetings.h"
#include "analyzer/ranks/rules.h"

namespace acltape::analyzer::ranks {

struct RankTimes {
  int64_t collectives = 0;
  int64_t sent_bytes = 0;
  int64_t received_bytes = 0;
  int64_t waited_ns = 0;      // for later ranks
  int64_t late = 0;           // meetings to which it came last
  int64_t waited_for_ns = 0;  // sum of the waits of the others for it
};
// By process.
std::map<int64_t, RankTimes> SumByRank(const Communication& all, const std::vector<Wait>& waits);

// How long processes waited for others: by the process that waited and the one that came last.
std::map<std::pair<int64_t, int64_t>, int64_t> SumByPair(const std::vector<Wait>& waits);

// Where a process was longest on the host between two moments before a call. The time in calls of
// HCCL, and in a synchronisation with no work between it and a collective, is left out: there the
// process waits for the other ranks, or for a free core of the host.
struct Stay {
  int64_t ns = 0;     // 0: nothing is known
  std::string where;  // the line of the call, or both lines between which it made none
  std::string what;   // "in aten::mm (call 7) at train.py:30", "without a recorded call between .."

  std::string Text() const;  // "2.5 ms in aten::mm (call 7) at train.py:30"; empty
};
Stay LongestStay(const storage::Reader& trace, int64_t process, int64_t from_ns, int64_t to_ns,
                 int64_t before_call, Lines& lines);

// RANK-09: a rank that is last in most meetings of a communicator, and spends most of that time in
// one place. These waits, without the longest one, take a tenth of the time between the first and
// the last meeting. A rank that is a little slower everywhere is no finding: the tables show it.
std::vector<RankFinding> FindLateRanks(const storage::Reader& trace, const Communication& all,
                                       const std::vector<Wait>& waits, Lines& lines);

}  // namespace acltape::analyzer::ranks
