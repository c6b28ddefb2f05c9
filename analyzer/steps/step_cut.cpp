#include "analyzer/steps/step_cut.h"

#include <algorithm>

#include "analyzer/steps/live_bytes.h"

namespace acltape::analyzer {
namespace {

// The tied cut that most clues name. If several have equally many, it is the first of them in
// `clues`. Returns -1 if no clue names a tied cut.
int64_t MostNamed(const std::vector<size_t>& tied, const std::vector<size_t>& clues) {
  int64_t named = -1;
  std::ptrdiff_t most = 0;
  for (const size_t clue : clues) {
    if (!std::binary_search(tied.begin(), tied.end(), clue)) continue;
    const std::ptrdiff_t count = std::count(clues.begin(), clues.end(), clue);
    if (count <= most) continue;
    most = count;
    named = static_cast<int64_t>(clue);
  }
  return named;
}

// Values made from nothing between two steps belong to the second step, even where a clue says
// otherwise. The code after a loop often begins with an allocation too.
size_t WithoutAllocations(const OperatorSequence& sequence, const std::vector<size_t>& tied,
                          size_t cut) {
  while (cut > 0 && sequence.kinds[cut - 1] == LeafKind::kAllocation &&
         std::binary_search(tied.begin(), tied.end(), cut - 1)) {
    --cut;
  }
  return cut;
}

size_t AfterTheLastRead(const OperatorSequence& sequence, const std::vector<size_t>& tied) {
  for (auto cut = tied.rbegin(); cut != tied.rend(); ++cut) {
    if (*cut == 0) continue;
    const size_t last = *cut - 1;
    const bool executes = sequence.kinds[last] >= LeafKind::kSource;
    if (executes && !sequence.MakesFromNothing(last)) return *cut;
  }
  return tied.front();
}

}  // namespace

std::vector<uint8_t> PlacesInsideRanges(const OperatorSequence& sequence, size_t longest) {
  std::vector<int32_t> change(sequence.size() + 1);
  for (const auto& [first, end] : sequence.ranges) {
    if (end - first > longest || end - first < 2) continue;
    ++change[first + 1];
    --change[end];
  }
  std::vector<uint8_t> inside(sequence.size() + 1);
  int32_t open = 0;
  for (size_t place = 0; place < inside.size(); ++place) {
    open += change[place];
    inside[place] = open > 0 ? 1 : 0;
  }
  return inside;
}

CutAnswer ChooseCut(const OperatorSequence& sequence, const std::vector<uint8_t>& inside_range,
                    const CutQuestion& question) {
  const std::vector<int64_t> live =
      LiveBytesAcross(sequence, question.window, question.cuts, question.longest);
  std::vector<size_t> tied;
  for (const bool heed_ranges : {true, false}) {
    int64_t fewest = INT64_MAX;
    for (size_t i = 0; i < live.size(); ++i) {
      const size_t cut = question.cuts.first + i;
      if (heed_ranges && inside_range[cut] != 0) continue;
      if (live[i] < fewest) tied.clear();
      fewest = std::min(fewest, live[i]);
      if (live[i] == fewest) tied.push_back(cut);
    }
    if (!tied.empty()) break;
  }
  const int64_t named = MostNamed(tied, question.clues);
  const size_t cut = named >= 0 ? WithoutAllocations(sequence, tied, static_cast<size_t>(named))
                                : AfterTheLastRead(sequence, tied);
  return {cut, live[cut - question.cuts.first]};
}

}  // namespace acltape::analyzer
