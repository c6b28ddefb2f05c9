#include "analyzer/steps/operator_sequence.h"

namespace acltape::analyzer {

bool OperatorSequence::MakesFromNothing(size_t place) const {
  if (kinds[place] == LeafKind::kAllocation) return true;
  if (kinds[place] != LeafKind::kKernel && kinds[place] != LeafKind::kSource) return false;
  bool reads = false;
  bool writes = false;
  VisitAccesses(place, [&](const ByteAccess& access) { (access.write ? writes : reads) = true; });
  return writes && !reads;
}

}  // namespace acltape::analyzer
