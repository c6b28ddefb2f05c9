// Applies planted faults to the script of a step.
#include <algorithm>
#include <bit>
#include <cmath>

#include "acl/invoke/operator_table.h"
#include "replayer/device/memory_plan.h"
#include "replayer/script/fault_sites.h"
#include "replayer/script/step_script.h"

namespace acltape::replayer::script {

using analyzer::TensorUse;
using storage::ValueKind;
using Treatment = VaryingLeaf::Treatment;

namespace {

// In every floating type, a number whose bytes all have this value is finite.
constexpr int kScribbledByte = 0x3F;

Error CannotPlant(const PlantedFault& fault, const std::string& why) {
  return {ErrorKind::kUsage, "the fault " + FaultText(fault) + " cannot be planted: " + why};
}

const char* WhyNot(FaultKind kind) {
  switch (kind) {
    case FaultKind::kWrongBits:
    case FaultKind::kLowBits:
      return "the call has no result of a floating type";
    case FaultKind::kMissingWait:
      return "the call reads no result of an earlier call of its graph that changes between steps";
    case FaultKind::kStaleInput:
    case FaultKind::kMovedAddress:
      return "the call reads no floating input that changes between the steps";
    case FaultKind::kBakedScalar:
      return "the call has no number that it computes with";
    default:
      return "no result of an earlier call that is read later has room for it";
  }
}

}  // namespace

namespace {

// True if a normalisation keeps no running statistics. Its momentum has no effect then.
bool IsInference(const acl::OperatorInfo& info, const analyzer::lowering::Invocation& invocation) {
  for (size_t a = 0; a < std::min<size_t>(info.arg_count, invocation.arguments.size()); ++a) {
    if (info.args[a].name == "training") return invocation.arguments[a].integer == 0;
  }
  return false;
}

}  // namespace

// True for whole numbers. A scalar of the ACL interface names its type in `text`.
bool IsWhole(const analyzer::lowering::LoweredValue& value) {
  return value.kind == ValueKind::kInt ||
         (value.kind == ValueKind::kScalar &&
          (value.text.starts_with("int") || value.text.starts_with("uint")));
}
bool IsReal(const analyzer::lowering::LoweredValue& value) {
  return value.kind == ValueKind::kReal ||
         (value.kind == ValueKind::kScalar &&
          (value.text.starts_with("float") || value.text.starts_with("bfloat")));
}

std::optional<std::pair<size_t, size_t>> ScalarThatMatters(
    const analyzer::lowering::Lowering& lowering) {
  for (size_t i = 0; i < lowering.invocations.size(); ++i) {
    const analyzer::lowering::Invocation& invocation = lowering.invocations[i];
    const acl::OperatorInfo* info = acl::FindOperator(invocation.op);
    // The numbers of these operators determine shapes.
    const bool shapes = invocation.op == "aclnnArange" || invocation.op == "aclnnRange" ||
                        invocation.op == "aclnnLinspace";
    if (info == nullptr || shapes) continue;
    for (size_t a = 0; a < std::min<size_t>(info->arg_count, invocation.arguments.size()); ++a) {
      const acl::ArgKind kind = info->args[a].kind;
      const analyzer::lowering::LoweredValue& value = invocation.arguments[a];
      if (info->args[a].name == "momentum" && IsInference(*info, invocation)) continue;
      if (kind != acl::ArgKind::kScalar && kind != acl::ArgKind::kFloat &&
          kind != acl::ArgKind::kDouble) {
        continue;
      }
      if (IsWhole(value) || (IsReal(value) && std::isfinite(value.real))) {
        return std::make_pair(i, a);
      }
    }
  }
  return std::nullopt;
}

void ChangeScalar(analyzer::lowering::LoweredValue& value) {
  constexpr double kSmall = 1e-3;  // for example an epsilon: doubled, it would hardly matter
  if (IsWhole(value)) {
    ++value.integer;
    return;
  }
  value.real = std::fabs(value.real) < kSmall ? value.real + 0.25 : value.real * 2;
  // A recorded scalar of the ACL interface also holds the bits of its number.
  if (value.kind == ValueKind::kScalar) value.integer = std::bit_cast<int64_t>(value.real);
}

// Plants the faults of one group. Faults in memory come first, because the other faults need the
// final places of objects.
void StepScript::PlantFaults(FaultsOf which) {
  if (options_.faults.empty()) return;
  const size_t run_match = options_.run_matches.empty() ? 0 : options_.run_matches[0];
  const FaultSites sites(session_, execution_, class_, layout_, places_, *state_,
                         options_.capture_match, run_match);
  for (const PlantedFault& fault : options_.faults) {
    const bool in_memory =
        fault.kind == FaultKind::kOverwrittenOutput || fault.kind == FaultKind::kReusedWorkspace;
    if (in_memory == (which == FaultsOf::kMemory)) Plant(fault, sites);
  }
}

size_t StepScript::PlaceOf(const PlantedFault& fault, int64_t call_id) const {
  for (size_t m = 0; m < class_.matches.size(); ++m) {
    const std::vector<int64_t>& leaves = class_.matches[m].leaves;
    for (size_t place = 0; place < leaves.size(); ++place) {
      if (program_.leaves[leaves[place]].call.call_id == call_id) return place;
    }
  }
  throw CannotPlant(fault, "call " + std::to_string(call_id) + " is no active call of the step");
}

void StepScript::Plant(const PlantedFault& fault, const FaultSites& sites) {
  const size_t place = PlaceOf(fault, fault.call_id);
  const Remedies& remedies = options_.remedies;
  std::optional<size_t> other;
  if (fault.other_call != 0) {
    other = PlaceOf(fault, fault.other_call);
  } else {
    const std::optional<PlantedFault> chosen = sites.At(fault.kind, place);
    if (!chosen) throw CannotPlant(fault, WhyNot(fault.kind));
    if (chosen->other_call != 0) other = PlaceOf(fault, chosen->other_call);
  }
  if (!captured_[place]) return;  // a fault has an effect only in a graph
  CallEffects& effects = effects_[place];
  switch (fault.kind) {
    case FaultKind::kWrongBits:
    case FaultKind::kLowBits:
      effects.after.push_back(WrongByte(fault, place));
      return;
    case FaultKind::kMissingWait:
      if (other && MayRunAtOnce(fault, place, *other)) effects.not_waited_for = other;
      return;
    case FaultKind::kStaleInput:
    case FaultKind::kMovedAddress: {
      const std::optional<int> input = sites.InputThatChanges(place);
      if (!input) throw CannotPlant(fault, WhyNot(fault.kind));
      CallEffects::Private own;
      own.object = *input;
      for (size_t c = 0; c < captures_.size(); ++c) {
        own.blocks.push_back(
            AddBlock("input of call " + std::to_string(fault.call_id) + " at the capture",
                     places_.objects()[*input].bytes));
      }
      own.refreshed = fault.kind == FaultKind::kStaleInput && remedies.fresh_inputs;
      effects.reads.push_back(own);
      return;
    }
    case FaultKind::kBakedScalar: {
      if (remedies.step_arguments || remedies.recapture) return;
      effects.not_updated = true;
      const VaryingLeaf* varying = VaryingAt(place);
      const bool differs =
          varying != nullptr &&
          std::all_of(options_.run_matches.begin(), options_.run_matches.end(), [&](size_t m) {
            return varying->value_of[m] != varying->value_of[options_.capture_match];
          });
      effects.other_scalar = !differs;
      return;
    }
    case FaultKind::kOverwrittenOutput:
    case FaultKind::kReusedWorkspace:
      PlantInMemory(fault, place, *other, sites);
      return;
  }
}

// True if the two calls of a fault may run at the same time. Calls on one stream wait for each
// other. If calls are moved away from side streams, a fault belongs to the side stream of one of
// its calls.
bool StepScript::MayRunAtOnce(const PlantedFault& fault, size_t place, size_t other) const {
  if (options_.remedies.one_stream) return false;
  if (options_.on_planned_stream.empty()) return true;
  if (stream_of_[place] == 0 && stream_of_[other] == 0) {
    throw CannotPlant(fault,
                      "the plan has both calls on the main stream, so that no side stream "
                      "has the fault");
  }
  return (stream_of_[place] != 0 && StaysOnStream(place)) ||
         (stream_of_[other] != 0 && StaysOnStream(other));
}

void StepScript::PlantInMemory(const PlantedFault& fault, size_t place, size_t other,
                               const FaultSites& sites) {
  const bool by_output = fault.kind == FaultKind::kOverwrittenOutput;
  const std::optional<int> result = sites.ResultToOverwrite(place, other, by_output);
  if (!result) throw CannotPlant(fault, WhyNot(fault.kind));
  const StepObject& overwritten = places_.objects()[*result];
  if (by_output) {
    if (options_.remedies.own_memory) return;
    places_.objects()[*sites.NewResult(place)].graph = overwritten.graph;
    return;
  }
  if (options_.remedies.own_workspace) return;
  const MemoryReuse reuse{MemoryReuse::What::kWorkspace, CallOf(place),      place,
                          MemoryReuse::What::kBuffer,    overwritten.buffer, other};
  reuses_.push_back(reuse);
  if (!Keeps(reuse)) return;
  CallEffects& effects = effects_[place];
  effects.before.push_back({{graph_, overwritten.graph}, kScribbledByte, overwritten.bytes, 0});
  if (static_cast<int64_t>(WorkspaceBytes(place)) <= overwritten.bytes) {
    effects.workspace = Spot{graph_, overwritten.graph};
  }
}

// Returns a fill that spoils one byte of the first element of the first result. It is the highest
// byte, which holds the exponent of a number, or for kLowBits the lowest.
FillBytes StepScript::WrongByte(const PlantedFault& fault, size_t place) {
  const std::vector<TensorUse>& writes = program_.uses[class_.leaves[place]].writes;
  for (size_t w = 0; w < writes.size(); ++w) {
    const storage::Layout& layout = *writes[w].layout;
    if (layout.ElementCount() == 0) continue;
    const int64_t byte =
        fault.kind == FaultKind::kLowBits ? 0 : storage::DTypeBytes(layout.dtype) - 1;
    // The values that this byte has in the executed steps.
    std::vector<int> taken;
    for (const size_t m : options_.run_matches) {
      const int64_t leaf = LeafAt(m, place);
      const Bytes result =
          session_.contents().GetResult(program_.leaves[leaf], program_.uses[leaf].writes[w]);
      if (result != nullptr) taken.push_back((*result)[static_cast<size_t>(byte)]);
    }
    std::vector<int> candidates{0x42, 0x43, 0x41};  // exponents of numbers near 32
    if (fault.kind == FaultKind::kLowBits) {
      candidates.clear();
      const int near = taken.empty() ? 0 : taken.front();
      for (int bits = 1; bits < 256; ++bits) candidates.push_back(near ^ bits);
    }
    const auto other = std::find_if(candidates.begin(), candidates.end(), [&](int candidate) {
      return std::find(taken.begin(), taken.end(), candidate) == taken.end();
    });
    const int value = other != candidates.end() ? *other : candidates.front();
    const StepPlaces::Where where = places_.Find(0, writes[w].tensor.buffer_id, layout);
    return {SpotOf(Side::kGraph, where.object, where.offset + byte), value, 1, 0};
  }
  throw CannotPlant(fault, "the call has no result");
}

}  // namespace acltape::replayer::script
