#include "analyzer/program/missing_values.h"

#include "analyzer/calls/record_more.h"
#include "meaning/options.h"

namespace acltape::analyzer {

std::string HowToHaveResult(const Program& program, int64_t leaf) {
  if (program.leaves[leaf].execution != 0) {
    return "of what a graph holds only the last results are recorded: record a run that issues its "
           "calls without the graph";
  }
  return HowToHaveResults(program);
}

std::string HowToHaveResults(const Program& program) {
  const std::string more = HowToRecordMore(*program.trace);
  if (program.level != Level::kAten || !HoldsLevel(*program.trace, Level::kAcl)) return more;
  return "take the calls of the device with @level acl, or "_cli + more;
}

}  // namespace acltape::analyzer
