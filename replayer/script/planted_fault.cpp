#include "replayer/script/planted_fault.h"

#include <charconv>

#include "storage/error.h"

namespace acltape::replayer::script {
namespace {

struct KindRow {
  FaultKind kind;
  std::string_view name;
};
constexpr KindRow kKinds[] = {
    {FaultKind::kWrongBits, "wrong_bits"},
    {FaultKind::kLowBits, "low_bits"},
    {FaultKind::kMissingWait, "missing_wait"},
    {FaultKind::kStaleInput, "stale_input"},
    {FaultKind::kBakedScalar, "baked_scalar"},
    {FaultKind::kOverwrittenOutput, "overwritten_output"},
    {FaultKind::kReusedWorkspace, "reused_workspace"},
    {FaultKind::kMovedAddress, "moved_address"},
};

bool ReadCall(std::string_view text, int64_t* call) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *call);
  return error == std::errc() && stop == end && *call > 0;
}

}  // namespace

std::string_view FaultKindName(FaultKind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) return row.name;
  }
  return "";
}

PlantedFault ParseFault(const std::string& text) {
  const size_t sign = text.find('@');
  const std::string_view name = std::string_view(text).substr(0, sign);
  for (const KindRow& row : kKinds) {
    if (sign == std::string::npos || row.name != name) continue;
    PlantedFault fault;
    fault.kind = row.kind;
    const std::string_view calls = std::string_view(text).substr(sign + 1);
    const size_t colon = calls.find(':');
    const bool good =
        ReadCall(calls.substr(0, colon), &fault.call_id) &&
        (colon == std::string_view::npos || ReadCall(calls.substr(colon + 1), &fault.other_call));
    if (good) return fault;
  }
  std::string names;
  for (const KindRow& row : kKinds) names += (names.empty() ? "" : ", ") + std::string(row.name);
  throw Error(ErrorKind::kUsage, "'" + text +
                                     "' is no fault; write KIND@CALL or KIND@CALL:OTHER with a "
                                     "kind of " +
                                     names);
}

std::string FaultText(const PlantedFault& fault) {
  std::string text = std::string(FaultKindName(fault.kind)) + "@" + std::to_string(fault.call_id);
  if (fault.other_call != 0) text += ":" + std::to_string(fault.other_call);
  return text;
}

}  // namespace acltape::replayer::script
