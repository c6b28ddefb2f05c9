// Tokens in the order of those experts that lie in a range, plain or quantised to int8, by the page
// of aclnnMoeInitRoutingV3.
#pragma once

#include <memory>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/engine/kernel.h"

namespace acltape::opapi {

// (x, expertIdx, scale?, offset?, activeNum, expertCapacity, expertNum, dropPadMode,
// expertTokensNumType, expertTokensNumFlag, quantMode, activeExpertRange?, rowIdxType, expandedX,
// expandedRowIdx, expertTokensCountOrCumsum?, expandedScale?). Rows of experts outside of the range
// are not routed: the places without a row hold zeros, and the index of such a row is -1.
std::unique_ptr<Kernel> BindRangeRouting(const Call& call);

}  // namespace acltape::opapi
