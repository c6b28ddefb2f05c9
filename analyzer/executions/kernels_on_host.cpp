#include "analyzer/executions/kernels_on_host.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzer/calls/overlap.h"
#include "storage/database.h"

namespace acltape::analyzer::executions {
namespace {

constexpr std::string_view kOnHost = "acltape::triton_on_host";
constexpr std::string_view kOnDevice = "acltape::triton_kernel";

// 0: the trace has no such operator.
int64_t OperatorNamed(const storage::Reader& trace, std::string_view name) {
  storage::Statement op(trace.database(), "SELECT op_id FROM op WHERE name = ?");
  op.Bind(1, name);
  return op.Next() ? op.Integer(0) : 0;
}

class Joiner {
 public:
  Joiner(Work work, int64_t on_host) : from_(std::move(work)), trace_(*from_.trace) {
    const int64_t on_device = OperatorNamed(trace_, kOnDevice);
    op_ = &trace_.GetOp(on_device != 0 ? on_device : on_host);
    storage::Statement launch(trace_.database(), "SELECT call_id FROM call WHERE op_id = ?");
    launch.Bind(1, on_host);
    while (launch.Next()) launches_.insert(launch.Integer(0));
  }

  Work Join() {
    to_.trace = from_.trace;
    to_.dialect = from_.dialect;
    to_.forms = from_.forms;
    for (size_t first = 0; first < from_.size();) {
      const int64_t launch = from_.calls[first].parent_id;
      size_t end = first + 1;
      if (!launches_.contains(launch)) {
        Add(from_.calls[first], from_.buffers(first));
      } else {
        while (end < from_.size() && from_.calls[end].parent_id == launch) ++end;
        AddLaunch(first, end);
      }
      first = end;
    }
    for (StepRange step : from_.steps) {
      std::tie(step.first, step.end) = to_.Between(step.first_call, step.last_call);
      to_.AddStep(std::move(step));
    }
    return std::move(to_);
  }

 private:
  void Add(WorkCall call, std::span<const int64_t> buffers) {
    call.first_buffer = static_cast<uint32_t>(to_.all_buffers.size());
    to_.all_buffers.insert(to_.all_buffers.end(), buffers.begin(), buffers.end());
    to_.calls.push_back(call);
  }

  // The launch has the arguments of its last leaf, and after the buffers of these one for each
  // tensor that it reads or writes.
  void AddLaunch(size_t first, size_t end) {
    const std::span<const int64_t> of_last = from_.buffers(end - 1);
    std::vector<int64_t> buffers(of_last.begin(), of_last.end());
    WorkForm form = from_.form(end - 1);
    form.op = op_;
    form.kind = LeafKind::kKernel;
    form.accesses.clear();
    const auto add = [&](int64_t buffer, FormAccess access) {
      access.argument = access.element = 0;
      access.slot = static_cast<int32_t>(buffers.size());
      buffers.push_back(buffer);
      form.accesses.push_back(access);
    };
    for (size_t leaf = first; leaf < end; ++leaf) {
      if (from_.form(leaf).kind == LeafKind::kView) {
        AddReads(leaf, add);
        continue;
      }
      from_.VisitAccesses(leaf, [&](const ByteAccess& access) {
        if (access.write) add(access.buffer, *access.form);
      });
    }
    WorkCall call = from_.calls[end - 1];
    call.form = static_cast<int32_t>(to_.forms.size());
    to_.forms.push_back(std::move(form));
    Add(call, buffers);
  }

  // Adds the tensors of a device of which a leaf makes views.
  template <typename AddAccess>
  void AddReads(size_t leaf, const AddAccess& add) const {
    const std::span<const int64_t> buffers = from_.buffers(leaf);
    for (const storage::SignatureArgument& argument : *from_.form(leaf).arguments) {
      if (argument.direction == storage::Direction::kOut) continue;
      for (const storage::SlotRef& tensor : argument.tensors) {
        const auto slot = static_cast<size_t>(tensor.slot);
        if (!tensor.has_buffer() || slot >= buffers.size()) continue;
        if (trace_.GetBuffer(buffers[slot]).device == 0) continue;
        FormAccess read;
        read.layout = &trace_.GetLayout(tensor.layout_id);
        read.first_byte = read.layout->FirstByte();
        read.end_byte = read.layout->EndByte();
        read.strided = !PatternOf(*read.layout).dense();
        add(buffers[slot], read);
      }
    }
  }

  const Work from_;
  const storage::Reader& trace_;
  const storage::Op* op_ = nullptr;
  std::unordered_set<int64_t> launches_;  // call ids
  Work to_;
};

}  // namespace

Work WithKernelsOnHost(Work work) {
  if (work.dialect != Dialect::kAten) return work;
  const int64_t on_host = OperatorNamed(*work.trace, kOnHost);
  return on_host == 0 ? work : Joiner(std::move(work), on_host).Join();
}

bool IsLaunchOfKernel(const storage::Op& op) { return op.name == kOnDevice || op.name == kOnHost; }

}  // namespace acltape::analyzer::executions
