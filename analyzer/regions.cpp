#include "analyzer/regions.h"

#include <string_view>

namespace acltape::analyzer {
namespace {

// Operators whose result shape depends on values, by name without overload.
constexpr std::string_view kDataDependent[] = {
    "aten::nonzero",
    "aten::masked_select",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::bincount",
    "aten::unique_consecutive",
    "aten::repeat_interleave",
};

}  // namespace

std::string BarrierReason(LeafKind kind, const storage::Op& op) {
  if (kind == LeafKind::kHostRead) return "host read";
  if (op.dialect == kOpaqueDialect) return "opaque kernel";
  for (const std::string_view name : kDataDependent) {
    if (op.name == name && (name != "aten::repeat_interleave" || op.overload == "Tensor" ||
                            op.overload == "self_Tensor")) {
      return "data-dependent shape";
    }
  }
  return "";
}

std::string BarrierReason(const Work& work, size_t call) {
  const WorkForm& form = work.form(call);
  std::string reason = BarrierReason(form.kind, *form.op);
  if (!reason.empty()) return reason;
  if (form.op->name == "aten::index") {
    for (const FormAccess& access : form.accesses) {
      const bool mask = access.layout->dtype == storage::DType::kBool;
      if (mask && (*form.arguments)[access.argument].name == "indices") return "mask";
    }
  }
  if (form.op->name == "aten::copy_" || form.op->name == "aten::_to_copy") {
    int from = -1;
    int to = -1;
    work.VisitAccesses(call, [&](const ByteAccess& access) {
      (access.write ? to : from) = work.trace->GetBuffer(access.buffer).device;
    });
    if (from >= 0 && to >= 0 && from != to) return "copy between devices";
  }
  return "";
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
