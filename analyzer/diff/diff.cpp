#include "analyzer/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/calls/host_work.h"
#include "analyzer/calls/level.h"
#include "analyzer/calls/overlap.h"
#include "analyzer/calls/unknown_memory.h"
#include "analyzer/diff/causes.h"
#include "analyzer/diff/coverage.h"
#include "analyzer/diff/form_label.h"
#include "analyzer/diff/host_reads.h"
#include "analyzer/diff/origins.h"
#include "analyzer/program/acl_leaves.h"
#include "analyzer/steps/steps.h"
#include "meaning/options.h"
#include "storage/error.h"

namespace acltape::analyzer::diff {
namespace {

constexpr std::string_view LevelName(Dialect dialect) {
  return dialect == Dialect::kAten ? "leaves of PyTorch's dispatcher"
                                   : "calls of the ACL interface";
}

void Pick(const DiffOptions& options, const Work& work, DiffRows& rows) {
  if (!options.pick) return;
  std::vector<int64_t> picked;
  for (const size_t call : options.pick(work)) picked.push_back(work.calls[call].call_id);
  std::sort(picked.begin(), picked.end());
  for (DiffRow& row : rows.rows) {
    row.picked = row.a_calls.empty() ||
                 std::any_of(row.a_calls.begin(), row.a_calls.end(), [&](int64_t call) {
                   return std::binary_search(picked.begin(), picked.end(), call);
                 });
  }
}

// True if the row changes the computation. Without values to judge by, this counts as a difference.
bool ChangesComputation(const DiffRow& row) {
  switch (row.relation) {
    case DiffRelation::kChanged:
    case DiffRelation::kRewritten:
      return true;
    case DiffRelation::kInserted:
    case DiffRelation::kDeleted:
      return !row.copy && !row.dead;
    default:
      return false;
  }
}

void Count(const Flow& a, const Flow& b, DiffReport& report) {
  DiffCounts& counts = report.counts;
  counts.a_calls = static_cast<int64_t>(a.size());
  counts.b_calls = static_cast<int64_t>(b.size());
  for (const DiffRow& row : report.rows) {
    if (!row.picked) continue;
    counts.copies += row.copy;
    switch (row.relation) {
      case DiffRelation::kInserted:
        ++counts.inserted;
        continue;
      case DiffRelation::kDeleted:
        ++counts.deleted;
        continue;
      case DiffRelation::kChanged:
        ++counts.changed;
        break;
      case DiffRelation::kSame:
        break;
      default:
        ++counts.groups;
    }
    ++counts.aligned;
    switch (row.verdict) {
      case DiffVerdict::kEqual:
        ++counts.equal;
        break;
      case DiffVerdict::kWithin:
        ++counts.within;
        break;
      case DiffVerdict::kDifferent:
        ++counts.different;
        break;
      case DiffVerdict::kNotComparable:
        ++counts.not_comparable;
    }
  }
}

void Note(const storage::Reader& trace, const char* which, DiffReport& report) {
  if (trace.State() == "partial") {
    report.notes.push_back(
        fmt::format("{} ({}) is partial: what it lacks counts as inserted or "
                    "deleted",
                    which, trace.path()));
  }
}

}  // namespace

std::string_view DiffRelationName(DiffRelation relation) {
  constexpr std::string_view kNames[] = {"same",  "changed", "inserted", "deleted",
                                         "fused", "split",   "rewritten"};
  return kNames[static_cast<size_t>(relation)];
}

std::string_view DiffCauseName(DiffCause cause) {
  constexpr std::string_view kNames[] = {"",      "origin",      "structural",
                                         "input", "accumulated", "inherited"};
  return kNames[static_cast<size_t>(cause)];
}

namespace {

void AddRead(const Work& work, const storage::SlotRef& tensor, size_t argument, size_t element,
             WorkForm& form) {
  FormAccess access;
  access.slot = tensor.slot;
  access.argument = static_cast<int32_t>(argument);
  access.element = static_cast<int32_t>(element);
  access.layout = &work.trace->GetLayout(tensor.layout_id);
  access.first_byte = access.layout->FirstByte();
  access.end_byte = access.layout->EndByte();
  access.strided = !PatternOf(*access.layout).dense();
  const bool known =
      std::any_of(form.accesses.begin(), form.accesses.end(), [&](const FormAccess& other) {
        return !other.write && other.argument == access.argument && other.element == access.element;
      });
  if (!known) form.accesses.push_back(access);
}

// One of the two traces.
struct DiffInput {
  Work work;
  RecordedValues values;
};

// Lists what sources of random numbers read, such as the input of a dropout. Replays take their
// results from the recording, so the work of a trace leaves these reads out. A result that differs
// with its input is inherited all the same. Operators whose argument gives only a shape read
// nothing.
void AddReadsOfSources(Work& work) {
  for (WorkForm& form : work.forms) {
    if (form.kind != LeafKind::kSource || BaseOperator(*form.op).ends_with("_like")) continue;
    for (size_t a = 0; a < form.arguments->size(); ++a) {
      const storage::SignatureArgument& argument = (*form.arguments)[a];
      if (argument.direction != storage::Direction::kIn || !argument.HoldsTensors()) continue;
      for (size_t i = 0; i < argument.tensors.size(); ++i) {
        const storage::SlotRef& tensor = argument.tensors[i];
        if (tensor.has_buffer()) AddRead(work, tensor, a, i, form);
      }
    }
  }
}

// A program of the host against one of a device: what the host does beside the device has its
// counterpart in the other.
bool HostAgainstDevice(const storage::Reader& a, const storage::Reader& b) {
  return HostWork(a).beside_device() != HostWork(b).beside_device();
}

// ACL programs are compared by their device work, what graphs hold once for each execution. A
// program whose work has no order is compared by its calls, and then both are.
void LoadBoth(const storage::Reader& a, const storage::Reader& b, DiffInput& left, DiffInput& right,
              std::string& note) {
  const std::optional<CommonLevel> common = FindCommonLevel(a, b);
  if (!common) {
    const bool host_too = HostAgainstDevice(a, b);
    left.work = host_too ? LoadWorkOfHostToo(a) : LoadWork(a);
    right.work = host_too ? LoadWorkOfHostToo(b) : LoadWork(b);
  } else {
    left.work = LoadWork(a, common->level);
    right.work = LoadWork(b, common->level);
    note = common->note;
  }
  for (const Work* work : {&left.work, &right.work}) {
    if (work->dialect == Dialect::kAten) RequireKnownMemory(*work->trace);
  }
  if (left.work.dialect != right.work.dialect) {
    throw Error(ErrorKind::kTrace,
                fmt::format("{} holds {} and {} holds {}: record both at one level", a.path(),
                            LevelName(left.work.dialect), b.path(), LevelName(right.work.dialect)));
  }
  AssignSteps(left.work, nullptr);
  AssignSteps(right.work, nullptr);
  AddReadsOfSources(left.work);
  AddReadsOfSources(right.work);
  if (left.work.dialect == Dialect::kAcl) {
    try {
      Program left_leaves = LoadAclLeaves(left.work);
      Program right_leaves = LoadAclLeaves(right.work);
      left.work = std::move(left_leaves.work);
      right.work = std::move(right_leaves.work);
      left.values = ValuesOf(std::move(left_leaves));
      right.values = ValuesOf(std::move(right_leaves));
      return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTrace) throw;
    }
  }
  left.values = ValuesOf(a);
  right.values = ValuesOf(b);
}

}  // namespace

std::optional<CommonLevel> FindCommonLevel(const storage::Reader& a, const storage::Reader& b) {
  if (HostAgainstDevice(a, b)) return std::nullopt;
  const Level left = ChooseLevel(a);
  const Level right = ChooseLevel(b);
  if (left == right) return CommonLevel{left, ""};
  if (HoldsLevel(a, Level::kAcl) && HoldsLevel(b, Level::kAcl)) {
    return CommonLevel{Level::kAcl,
                       fmt::format("compared by the calls of the ACL interface, because the leaves "
                                   "of {} do not show what its graphs computed; @level aten "
                                   "compares leaves all the same"_cli,
                                   left == Level::kAcl ? "A" : "B")};
  }
  if (HoldsLevel(a, Level::kAten) && HoldsLevel(b, Level::kAten)) {
    return CommonLevel{Level::kAten,
                       fmt::format("compared by leaves of PyTorch, because {} holds nothing else",
                                   left == Level::kAten ? "A" : "B")};
  }
  return std::nullopt;
}

DiffReport Diff(const storage::Reader& a, const storage::Reader& b, const DiffOptions& options) {
  DiffInput left;
  DiffInput right;
  std::string note;
  LoadBoth(a, b, left, right, note);
  const Flow left_flow = BuildFlow(left.work, left.values.snapshots);
  const Flow right_flow = BuildFlow(right.work, right.values.snapshots);
  const Alignment alignment = Align(left_flow, right_flow);
  DiffRows rows = MakeRows(left_flow, right_flow, alignment);
  Pick(options, left.work, rows);
  ValueComparer values(left_flow, left.values, right_flow, right.values, options.standard);
  FindCauses(left_flow, right_flow, alignment, values, rows, options.progress);
  if (std::none_of(rows.rows.begin(), rows.rows.end(), HasOwnCause)) {
    FindOtherHostRead(left_flow, right_flow, values, rows);
  }

  DiffReport report;
  report.dialect = left.work.dialect;
  report.standard = values.Description();
  report.rows = std::move(rows.rows);
  if (!note.empty()) report.notes.push_back(note);
  Note(a, "A", report);
  Note(b, "B", report);
  Count(left_flow, right_flow, report);
  MeasureCoverage(left_flow, report);
  // Every trace has the values that the program itself brought to the host. They alone say little.
  const bool judged = std::any_of(report.rows.begin(), report.rows.end(), [](const DiffRow& row) {
    return row.verdict != DiffVerdict::kNotComparable && row.output != kHostValue;
  });
  if (!judged) {
    report.notes.push_back(
        "the traces have no recorded result in common: what they compute was compared, and what "
        "the programs read on the host; record with @payload digest or all to compare results"_cli);
  }
  for (size_t i = 0; i < report.rows.size() && report.first < 0; ++i) {
    DiffRow& row = report.rows[i];
    if (!row.picked) continue;
    if (!judged && row.cause == DiffCause::kNone && ChangesComputation(row)) {
      row.cause = DiffCause::kStructural;
    }
    if (HasOwnCause(row)) report.first = static_cast<int64_t>(i);
  }
  report.propagation = FindPropagation(report, a, b);
  return report;
}

}  // namespace acltape::analyzer::diff
