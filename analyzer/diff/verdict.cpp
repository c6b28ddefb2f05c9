#include "analyzer/diff/verdict.h"

#include <fmt/format.h>

namespace acltape::analyzer::diff {

std::string VerdictOf(const DiffReport& report) {
  if (report.different()) {
    const size_t places = report.propagation.size();
    return places == 1 ? "different: 1 place with a cause of its own"
                       : fmt::format("different: {} places with a cause of their own", places);
  }
  const DiffCounts& counts = report.counts;
  if (counts.aligned == 0) return "nothing was compared";
  if (report.coverage.TooLittle()) {
    return fmt::format(
        "not known: {} calls are aligned, and compared results tell of {} leaves that computed",
        counts.aligned, report.coverage.Share());
  }
  if (counts.within + counts.different == 0) {
    return fmt::format("equal: all {} compared results, of {} aligned calls", counts.equal,
                       counts.aligned);
  }
  return "no meaningful divergence";
}

}  // namespace acltape::analyzer::diff
