#include "analyzer/calls/work.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/host_work.h"
#include "analyzer/calls/level.h"
#include "analyzer/calls/overlap.h"
#include "base/hash.h"
#include "meaning/dialects.h"
#include "storage/error.h"
#include "storage/process_choice.h"

namespace acltape::analyzer {
namespace {

using storage::Argument;

// Finds for each slot the first slot with the same buffer, plus one; 0 if the slot has no buffer.
void FindEqualSlots(const std::vector<int64_t>& buffers, std::vector<int64_t>& first_equal) {
  first_equal.resize(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto first =
        std::find(buffers.begin(), buffers.begin() + static_cast<std::ptrdiff_t>(i), buffers[i]);
    first_equal[i] = buffers[i] == 0 ? 0 : first - buffers.begin() + 1;
  }
}

struct FormKey {
  int64_t signature_id = 0;
  bool failed = false;
  std::vector<int64_t> first_equal;
  bool operator==(const FormKey&) const = default;
};

struct FormKeyHash {
  size_t operator()(const FormKey& key) const {
    uint64_t hash = static_cast<uint64_t>(key.signature_id) * 2 + (key.failed ? 1 : 0);
    for (const int64_t slot : key.first_equal) {
      hash = base::HashWith(hash, static_cast<uint64_t>(slot));
    }
    return hash;
  }
};

class Loader {
 public:
  Loader(const storage::Reader& trace, Level level, bool host_too)
      : trace_(trace), level_(level), host_too_(host_too) {
    work_.trace = &trace;
  }

  Work Load() {
    work_.dialect = level_ == Level::kAcl ? Dialect::kAcl : Dialect::kAten;
    const bool acl = work_.dialect == Dialect::kAcl;
    work_.calls.reserve(static_cast<size_t>(trace_.CallCount(!acl)));
    const std::set<int64_t> left_out = storage::ThreadsLeftOut(trace_);
    const HostWork host(trace_);
    std::vector<int64_t> enclosing;  // ACL calls, ascending; their nested calls are part of them
    trace_.VisitCalls(/*leaves_only=*/!acl, [&](const storage::Call& call) {
      if (left_out.contains(call.thread_id)) return;
      const storage::Op& op = trace_.GetOp(call.op_id);
      if (acl) {
        if (!meaning::IsAclDialect(op.dialect)) return;
        enclosing.push_back(call.call_id);
        if (call.parent_id != 0 &&
            std::binary_search(enclosing.begin(), enclosing.end(), call.parent_id)) {
          return;
        }
      } else if (!IsLeafDialect(op.dialect) || (!host_too_ && host.Has(call))) {
        return;
      }
      WorkCall& row = work_.calls.emplace_back();
      row.call_id = call.call_id;
      row.parent_id = call.parent_id;
      row.begin_ns = call.begin_ns;
      row.duration_ns = call.end_ns - call.begin_ns;
      row.model_id = call.model_id;
      row.form = FormOf(call, op);
      row.thread = static_cast<int32_t>(call.thread_id);
      row.status = call.status;
      row.scope = static_cast<int32_t>(call.scope_id);
      row.phase = call.phase;
      const WorkForm& form = work_.forms[row.form];
      row.stream_id = call.stream_id;
      if (row.stream_id == 0 && form.function != nullptr && form.function->stream >= 0) {
        row.stream_id = form.Integer(form.function->stream);
      }
      row.first_buffer = static_cast<uint32_t>(work_.all_buffers.size());
      work_.all_buffers.insert(work_.all_buffers.end(), call.buffers.begin(), call.buffers.end());
    });
    if (work_.calls.empty()) {
      throw Error(ErrorKind::kTrace,
                  trace_.path() + " holds no operator call and no call of the ACL interface");
    }
    std::set<int64_t> threads;
    for (const WorkCall& call : work_.calls) threads.insert(call.thread);
    storage::RequireOneProcess(trace_, threads);
    for (const storage::Step& step : StepsOf(trace_, level_)) {
      const auto [first, end] = work_.Between(step.first_call, step.last_call);
      work_.AddStep({step.step, first, end, step.found_by, step.first_call, step.last_call});
    }
    return std::move(work_);
  }

 private:
  int32_t FormOf(const storage::Call& call, const storage::Op& op) {
    key_.signature_id = call.signature_id;
    key_.failed = call.status != 0;
    FindEqualSlots(call.buffers, key_.first_equal);
    const auto [entry, created] = form_of_.emplace(key_, static_cast<int32_t>(work_.forms.size()));
    if (created) AddForm(call, op);
    return entry->second;
  }

  void AddForm(const storage::Call& call, const storage::Op& op) {
    WorkForm& form = work_.forms.emplace_back();
    form.signature_id = call.signature_id;
    form.op = &op;
    form.arguments = &trace_.SignatureArguments(call.signature_id);
    const std::vector<Argument> arguments = trace_.Arguments(call.signature_id, key_.first_equal);
    if (work_.dialect == Dialect::kAcl) {
      form.function = &FindAclFunction(op.name);
      if (call.status != 0 || !IsDeviceWork(form.function->kind)) return;
      form.kind = LeafKind::kKernel;
      AddAccesses(form, UsesOfAclCall(op.name, arguments));
      return;
    }
    form.kind = KindOfLeaf(op, call.status, arguments);
    AddAccesses(form, UsesOfLeaf(op, form.kind, arguments));
  }

  void AddAccesses(WorkForm& form, const std::vector<ArgumentUse>& uses) {
    for (const ArgumentUse& use : uses) {
      const storage::SlotRef& tensor = (*form.arguments)[use.argument].tensors[use.element];
      if (!tensor.has_buffer()) continue;
      FormAccess access;
      access.slot = tensor.slot;
      access.argument = use.argument;
      access.element = use.element;
      access.write = use.write;
      access.layout = &trace_.GetLayout(tensor.layout_id);
      access.first_byte = access.layout->FirstByte();
      access.end_byte = access.layout->EndByte();
      access.strided = !PatternOf(*access.layout).dense();
      form.accesses.push_back(access);
    }
  }

  const storage::Reader& trace_;
  const Level level_;
  const bool host_too_;
  Work work_;
  FormKey key_;
  std::unordered_map<FormKey, int32_t, FormKeyHash> form_of_;
};

}  // namespace

int64_t WorkForm::Integer(int position) const {
  if (position < 0 || position >= static_cast<int>(arguments->size())) return 0;
  return (*arguments)[position].integer;
}

int64_t Work::Find(int64_t call_id) const {
  if (dialect == Dialect::kAclLeaves) {
    const auto place = place_of_id.find(call_id);
    return place == place_of_id.end() ? -1 : static_cast<int64_t>(place->second);
  }
  const auto found =
      std::lower_bound(calls.begin(), calls.end(), call_id,
                       [](const WorkCall& call, int64_t id) { return call.call_id < id; });
  return found == calls.end() || found->call_id != call_id ? -1 : found - calls.begin();
}

std::pair<int64_t, int64_t> Work::Between(int64_t first_call, int64_t last_call) const {
  if (dialect == Dialect::kAclLeaves) {
    const auto first = std::lower_bound(issued_by.begin(), issued_by.end(), first_call);
    const auto end = std::upper_bound(first, issued_by.end(), last_call);
    return {first - issued_by.begin(), end - issued_by.begin()};
  }
  const auto by_id = [](const WorkCall& call, int64_t id) { return call.call_id < id; };
  const auto first = std::lower_bound(calls.begin(), calls.end(), first_call, by_id);
  const auto end = std::lower_bound(first, calls.end(), last_call + 1, by_id);
  return {first - calls.begin(), end - calls.begin()};
}

void Work::AddStep(StepRange step) {
  if (step.first >= step.end) return;
  if (step.first_call == 0) step.first_call = calls[step.first].call_id;
  if (step.last_call == 0) step.last_call = calls[step.end - 1].call_id;
  for (int64_t call = step.first; call < step.end; ++call) {
    calls[call].step = static_cast<int32_t>(step.step);
  }
  steps.push_back(std::move(step));
}

std::string Work::Describe(size_t call) const {
  return "call " + std::to_string(calls[call].call_id) + " " + op(call).FullName();
}

Work LoadWork(const storage::Reader& trace, Level level) {
  return Loader(trace, level, /*host_too=*/false).Load();
}

Work LoadWorkOfHostToo(const storage::Reader& trace) {
  return Loader(trace, ChooseLevel(trace), /*host_too=*/true).Load();
}

Work LoadWork(const storage::Reader& trace) { return LoadWork(trace, ChooseLevel(trace)); }

}  // namespace acltape::analyzer
