// Rules about memory to which a graph refers: allocations during the capture, and memory that is
// freed while the graph is still executed.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzer/lint/rule.h"
#include "analyzer/memory/buffer_lives.h"
#include "analyzer/memory/reuse.h"

namespace acltape::analyzer::lint {
namespace {

using K = AclCallKind;

// Marks the calls of a capture that lie in task groups which the program updates. An update may
// give their launches other memory.
std::vector<uint8_t> UpdatedLaunches(const Work& work, const Stretch& capture) {
  std::vector<uint8_t> updated(capture.end - capture.first);
  std::unordered_map<int64_t, std::pair<size_t, size_t>> groups;  // calls, by the group's address
  size_t begin = capture.first;
  for (size_t i = capture.first; i < capture.end; ++i) {
    const WorkForm& form = work.form(i);
    if (form.acl_kind() == K::kGroupBegin) begin = i;
    if (form.acl_kind() == K::kGroupEnd) groups[form.Integer(form.function->object)] = {begin, i};
  }
  for (size_t i = capture.end; i < work.size() && !groups.empty(); ++i) {
    const WorkForm& form = work.form(i);
    if (form.acl_kind() != K::kUpdateBegin) continue;
    const auto group = groups.find(form.Integer(form.function->object));
    if (group == groups.end()) continue;
    const auto [first, end] = group->second;
    for (size_t call = first; call < end; ++call) updated[call - capture.first] = 1;
    groups.erase(group);
  }
  return updated;
}

}  // namespace

void CheckAllocation(const LintContext& context, Found& found) {
  const Stretch& stretch = context.stretch();
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (FactsOf(context.work.form(i).acl_variant()).capture_rule != "LINT-04") continue;
    if (context.work.calls[i].thread != stretch.thread) continue;
    Found::Options options;
    options.edits = {HoistEdit(context.work.calls[i].call_id)};
    found.Add(static_cast<int64_t>(i),
              Named(i) +
                  " reaches the device while the stream captures: legal, but it fails when memory "
                  "is short, and the graph keeps the address",
              options);
  }
}

void CheckFreedAddress(const LintContext& context, Found& found) {
  const Work& work = context.work;
  const Stretch& stretch = context.stretch();
  // Executions of the graph. If the program did not capture the stretch, one follows its end.
  std::vector<size_t> executions;
  for (size_t i = stretch.end; stretch.recorded() && i < work.size(); ++i) {
    const WorkForm& form = work.form(i);
    const bool runs =
        IsExecution(form.acl_kind()) && form.Integer(form.function->object) == stretch.model_id;
    if (runs) executions.push_back(i);
  }
  const std::vector<uint8_t> updated = UpdatedLaunches(work, stretch);
  std::unordered_set<int64_t> told;
  for (size_t i = stretch.first; i < stretch.end; ++i) {
    if (!context.facts->IsCapturing(stretch, i) || updated[i - stretch.first] != 0) continue;
    work.VisitAccesses(i, [&](const ByteAccess& access) {
      const int64_t free = context.handles.FreeOf(access.buffer);
      if (free < 0) return;
      const auto freed = static_cast<size_t>(free);
      int64_t used = -1;  // a time at which the graph runs without the memory
      if (!stretch.recorded() && freed < stretch.end) used = static_cast<int64_t>(stretch.end) - 1;
      const auto later = std::upper_bound(executions.begin(), executions.end(), freed);
      if (later != executions.end()) used = static_cast<int64_t>(*later);
      if (used < 0 || !told.insert(access.buffer).second) return;
      Found::Options options;
      options.other = free;
      found.Add(stretch.recorded() ? used : static_cast<int64_t>(i),
                stretch.recorded()
                    ? Named(static_cast<size_t>(used)) + " runs " + Named(i) + " on buffer " +
                          std::to_string(access.buffer) + ", which " + Named(freed) + " has freed"
                    : Named(i) + " would keep the address of buffer " +
                          std::to_string(access.buffer) + ", which " + Named(freed) + " frees",
                options);
    });
  }
}

// Finds results of a step that are read after the graph has run again and overwritten them. The
// steps of a family count as executions of one graph.
void CheckLateRead(const LintContext& context, Found& found) {
  FindKeptResults(context, found);
  FindOverwrittenResults(context, found);
  const Work& work = context.work;
  if (context.steps.families.empty()) return;
  const memory::BufferLives lives(work);
  for (const graph::StepFamily& family : context.steps.families) {
    if (family.steps.size() < 2) continue;
    std::vector<std::vector<uint32_t>> executions;
    for (size_t step = 0; step < family.steps.size(); ++step) {
      const auto first = family.calls.begin() + static_cast<std::ptrdiff_t>(step * family.places);
      executions.emplace_back(first, first + static_cast<std::ptrdiff_t>(family.places));
    }
    for (const memory::LateRead& late : memory::FindLateReads(work, lives, executions)) {
      // If the program itself writes the memory again, the reader gets what it gets without a
      // graph.
      bool rewritten = false;
      work.VisitAccesses(late.overwrite, [&](const ByteAccess& access) {
        rewritten = rewritten || (access.write && access.buffer == late.buffer);
      });
      if (rewritten) continue;
      const AclFunction* function = work.form(late.writer).function;
      if (function != nullptr && function->kind != K::kOperator) continue;  // an upload of the host
      Found::Options options;
      options.other = late.reader;
      options.merged = true;
      found.Add(late.writer,
                Named(late.writer) + " makes what is read by " + Named(late.reader) + ", after " +
                    Named(late.overwrite) +
                    ", with which the next execution of the graph would have overwritten it",
                options);
    }
  }
}

}  // namespace acltape::analyzer::lint
