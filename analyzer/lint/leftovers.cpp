#include "analyzer/lint/leftovers.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::lint {
namespace {

// Operators that functionalisation puts in the place of work in a tensor's own memory. Each makes a
// tensor of its own, in which the work is done.
constexpr std::string_view kCopies[] = {"aten::clone",           "aten::copy",
                                        "aten::_to_copy",        "aten::slice_scatter",
                                        "aten::select_scatter",  "aten::as_strided_scatter",
                                        "aten::diagonal_scatter"};

bool OnlyCopies(std::string_view name) {
  return std::find(std::begin(kCopies), std::end(kCopies), name) != std::end(kCopies);
}

}  // namespace

const Work* Leftovers::Leaves() {
  if (loaded_) return leaves_;
  loaded_ = true;
  leaves_ = &work_;
  if (work_.dialect != Dialect::kAten) {
    if (!beside_) beside_ = std::make_shared<LeavesBeside>(work_);
    leaves_ = beside_->Load();
    if (leaves_ == nullptr) return leaves_;
  }
  if (LaunchesUnknownKernels(*leaves_)) return leaves_ = nullptr;
  first_entries_ = executions::FirstEntries(*leaves_);
  return leaves_;
}

bool Leftovers::LaunchesUnknownKernels(const Work& leaves) const {
  for (size_t i = 0; calls_ != nullptr && i < calls_->size(); ++i) {
    const bool launch = calls_->op(i).name.starts_with("aclrtLaunchKernel");
    if (launch && leaves.Find(calls_->calls[i].parent_id) < 0) return true;
  }
  return false;
}

bool Leftovers::AreCopiedBy(size_t call) {
  const Work* leaves = Leaves();
  if (leaves == nullptr) return false;
  const bool is_leaf = leaves == &work_;
  const int64_t leaf =
      is_leaf ? static_cast<int64_t>(call) : leaves->Find(work_.calls[call].parent_id);
  if (leaf < 0 || !OnlyCopies(leaves->op(static_cast<size_t>(leaf)).name)) return false;
  bool leftover = false;
  leaves->VisitAccesses(static_cast<size_t>(leaf), [&](const ByteAccess& access) {
    if (leftover || access.write || access.form->layout == nullptr) return;
    leftover = !UnwrittenBytes(*leaves, static_cast<uint32_t>(leaf), access).empty();
  });
  return leftover;
}

// The addresses of a source's elements that nothing wrote since the allocation.
ByteSet Leftovers::UnwrittenBytes(const Work& leaves, uint32_t leaf, const ByteAccess& source) {
  const storage::Reader& trace = *leaves.trace;
  const storage::Buffer& buffer = trace.GetBuffer(source.buffer);
  const auto first = first_entries_.find(source.buffer);
  ByteSet bytes;
  if (buffer.device == 0 || first == first_entries_.end() || first->second >= leaf ||
      leaves.form(first->second).kind != LeafKind::kAllocation) {
    return bytes;
  }
  ByteSet elements;
  AddElements(*source.form->layout, elements);
  for (const ByteRange& part : elements.Within(source.first, source.end)) {
    bytes.Add(buffer.address + part.first, buffer.address + part.end);
  }
  // A framework may name one memory by several buffers, so that addresses are compared.
  for (uint32_t entry = first->second; entry < leaf && !bytes.empty(); ++entry) {
    leaves.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (!access.write) return;
      const storage::Buffer& written = trace.GetBuffer(access.buffer);
      if (written.device != buffer.device) return;
      bytes.Remove(written.address + access.first, written.address + access.end);
    });
  }
  LeaveOutCalls(leaves, leaves.calls[first->second].call_id, leaves.calls[leaf].call_id, bytes);
  return bytes;
}

// Leaves out what calls of the interface wrote that are no work of a leaf.
void Leftovers::LeaveOutCalls(const Work& leaves, int64_t first_call, int64_t end_call,
                              ByteSet& bytes) const {
  if (calls_ == nullptr || bytes.empty()) return;
  const auto [first, end] = calls_->Between(first_call, end_call);
  for (int64_t i = first; i < end; ++i) {
    const auto call = static_cast<size_t>(i);
    if (leaves.Find(calls_->calls[call].parent_id) >= 0) continue;
    calls_->VisitAccesses(call, [&](const ByteAccess& access) {
      if (!access.write) return;
      const int64_t base = calls_->trace->GetBuffer(access.buffer).address;
      bytes.Remove(base + access.first, base + access.end);
    });
  }
}

}  // namespace acltape::analyzer::lint
