#include "analyzer/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/calls/host_work.h"
#include "analyzer/calls/unknown_memory.h"
#include "analyzer/diff/causes.h"
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

bool OwnCause(DiffCause cause) {
  return cause == DiffCause::kOrigin || cause == DiffCause::kStructural ||
         cause == DiffCause::kInput;
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

void FindPropagation(DiffReport& report) {
  std::map<int64_t, size_t> place;
  for (size_t i = 0; i < report.rows.size(); ++i) {
    if (!OwnCause(report.rows[i].cause) || !report.rows[i].picked) continue;
    place[static_cast<int64_t>(i)] = report.propagation.size();
    DiffPropagation propagation;
    propagation.origin = static_cast<int64_t>(i);
    report.propagation.push_back(propagation);
  }
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const DiffRow& row = report.rows[i];
    const auto found = place.find(row.origin);
    if (row.origin < 0 || found == place.end()) continue;
    DiffPropagation& propagation = report.propagation[found->second];
    if (row.cause == DiffCause::kInherited) {
      ++propagation.inherited;
      propagation.depth = std::max(propagation.depth, row.depth);
      propagation.last = static_cast<int64_t>(i);
    } else {
      ++propagation.absorbed;
      if (propagation.first_absorbed < 0) propagation.first_absorbed = static_cast<int64_t>(i);
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

// One of the two traces.
struct DiffInput {
  Work work;
  RecordedValues values;
};

// ACL programs are compared by their device work, what graphs hold once for each execution. A
// program whose work has no order is compared by its calls, and then both are.
void LoadBoth(const storage::Reader& a, const storage::Reader& b, DiffInput& left,
              DiffInput& right) {
  // A program of the host against one of a device: what the host does beside the device has its
  // counterpart in the other.
  const bool host_too = HostWork(a).beside_device() != HostWork(b).beside_device();
  left.work = host_too ? LoadWorkOfHostToo(a) : LoadWork(a);
  right.work = host_too ? LoadWorkOfHostToo(b) : LoadWork(b);
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

DiffReport Diff(const storage::Reader& a, const storage::Reader& b, const DiffOptions& options) {
  DiffInput left;
  DiffInput right;
  LoadBoth(a, b, left, right);
  const Flow left_flow = BuildFlow(left.work, left.values.snapshots);
  const Flow right_flow = BuildFlow(right.work, right.values.snapshots);
  const Alignment alignment = Align(left_flow, right_flow);
  DiffRows rows = MakeRows(left_flow, right_flow, alignment);
  Pick(options, left.work, rows);
  ValueComparer values(left_flow, left.values, right_flow, right.values, options.standard);
  FindCauses(left_flow, right_flow, alignment, values, rows, options.progress);

  DiffReport report;
  report.dialect = left.work.dialect;
  report.standard = values.Description();
  report.rows = std::move(rows.rows);
  Note(a, "A", report);
  Note(b, "B", report);
  Count(left_flow, right_flow, report);
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
    if (OwnCause(row.cause)) report.first = static_cast<int64_t>(i);
  }
  FindPropagation(report);
  return report;
}

}  // namespace acltape::analyzer::diff
