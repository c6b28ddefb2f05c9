#include "analyzer/program/regions.h"

#include <string_view>

#include "meaning/dialects.h"
#include "meaning/torch_operators.h"

namespace acltape::analyzer {
namespace {

using meaning::Barrier;

// The properties of a call's arguments that decide about barriers.
struct Arguments {
  bool mask = false;  // a mask is in a tensor list that it reads
  // The devices of the tensors that it reads last and writes last; -1: none.
  int from = -1;
  int to = -1;
};

bool IsMask(const storage::ArgumentValue& argument, const storage::Layout& layout) {
  return argument.kind == storage::ValueKind::kTensorList &&
         (layout.dtype == storage::DType::kBool || layout.dtype == storage::DType::kUint8);
}

Arguments ArgumentsOf(const Work& work, size_t call) {
  const WorkForm& form = work.form(call);
  Arguments told;
  for (const FormAccess& access : form.accesses) {
    const storage::ArgumentValue& argument = (*form.arguments)[access.argument];
    if (!access.write && IsMask(argument, *access.layout)) told.mask = true;
  }
  work.VisitAccesses(call, [&](const ByteAccess& access) {
    (access.write ? told.to : told.from) = work.trace->GetBuffer(access.buffer).device;
  });
  return told;
}

// True if all memory that the call is given is a device's.
bool IsOnDevice(const Work& work, size_t call) {
  bool device = false, host = false;
  work.VisitAccesses(call, [&](const ByteAccess& access) {
    (work.trace->GetBuffer(access.buffer).device > 0 ? device : host) = true;
  });
  return device && !host;
}

}  // namespace

std::string Barriers::ReasonOf(size_t call) {
  const WorkForm& form = work_.form(call);
  const storage::Op& op = *form.op;
  if (work_.dialect == Dialect::kAcl) return "";
  if (form.kind == LeafKind::kView || form.kind == LeafKind::kAllocation) return "";
  if (op.dialect == kOpaqueDialect) return "opaque kernel";
  // Only a call for which the host waits ends a region of device work.
  if (meaning::IsAclDialect(op.dialect)) return form.kind == LeafKind::kHostRead ? "host read" : "";
  const meaning::TorchOperator facts = meaning::TorchOperatorOf(op.name, op.overload);
  switch (facts.barrier) {
    case Barrier::kHostRead:
      return "host read";
    case Barrier::kDataDependent:
      return "data-dependent shape";
    case Barrier::kExchange:
      return IsOnDevice(work_, call) ? kDeviceCollectiveBarrier : "collective";
    case Barrier::kMask:
      if (ArgumentsOf(work_, call).mask) return "mask";
      break;
    case Barrier::kNone:
      break;
  }
  if (form.kind == LeafKind::kHostRead) return "host read";
  if (!meaning::IsKnownNamespace(op.name)) return ReasonOfUnknown(call);
  if (facts.copies_between_devices) {
    const Arguments told = ArgumentsOf(work_, call);
    if (told.from >= 0 && told.to >= 0 && told.from != told.to) return kCopyBarrier;
  }
  return "";
}

std::string Barriers::ReasonOfUnknown(size_t call) {
  switch (unknown_.Judge(call)) {
    case CallsInside::kNotRecorded:
      return kUnknownBarrier;
    case CallsInside::kWait:
      return kWaitBarrier;
    case CallsInside::kOtherWork:
      return kOtherWorkBarrier;
    case CallsInside::kHiddenInputs:
      return kHiddenBarrier;
    case CallsInside::kChanging:
      return kChangingBarrier;
    case CallsInside::kRepeatable:
      break;
  }
  return work_.form(call).kind == LeafKind::kExchange ? kUntoldBarrier : "";
}

std::vector<Region> FindRegions(size_t leaf_count,
                                const std::function<std::string(size_t)>& barrier,
                                const std::function<bool(size_t)>& cut_before) {
  std::vector<Region> regions;
  bool open = false;
  for (size_t i = 0; i < leaf_count; ++i) {
    const std::string reason = barrier(i);
    if (!reason.empty()) {
      regions.push_back({i, i + 1, false, reason});
      open = false;
      continue;
    }
    if (!open || cut_before(i)) regions.push_back({i, i, true, ""});
    regions.back().end = i + 1;
    open = true;
  }
  return regions;
}

}  // namespace acltape::analyzer
