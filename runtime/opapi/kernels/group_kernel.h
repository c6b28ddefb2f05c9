// Kernels of operators that take the name of a group and communicate with its other ranks
// (runtime/rank_groups.h). An exchange is the n-th collective of the communicator on each rank,
// like a call of HCCL, so the order of both is one order.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <vector>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/rank_groups.h"

namespace acltape::opapi {

// This process's place in a group.
class Group {
 public:
  // Argument `i` of the call is the group's name. Rejects a name that this process does not have.
  Group(const Call& call, int i);

  int64_t rank() const { return rank_; }
  int64_t ranks() const { return ranks_; }
  SoftGroupMember* member() const { return member_.get(); }

 private:
  std::shared_ptr<SoftGroupMember> member_;
  uint32_t rank_ = 0, ranks_ = 0;
};

// An exchange of dense tensors. `count` is the number of elements that all ranks have in common
// (see SoftExchange); the tensors must live until it has ended.
SoftExchange ExchangeOf(SoftExchangeKind kind, int64_t count, const at::Tensor& send,
                        const at::Tensor& recv);

// Rows of `width` bytes, those for each rank one after the other, in both tensors. Lives, like the
// tensors, until the exchange has ended.
class RowExchange {
 public:
  // The numbers of rows that go to each rank and come from each.
  RowExchange(const std::vector<int64_t>& to, const std::vector<int64_t>& from, int64_t width);

  SoftExchange Of(const at::Tensor& send, const at::Tensor& recv) const;

 private:
  std::vector<uint64_t> send_counts_, send_places_, recv_counts_, recv_places_;
};

// A step of a kernel: it works, and gives the exchange that follows.
using ExchangeStep = std::function<SoftExchange()>;

// A kernel that runs each step and makes the exchange that it gives, one after the other, and then
// runs `after`. All may run many times.
std::unique_ptr<Kernel> MakeGroupKernel(Group group, std::vector<ExchangeStep> steps,
                                        std::function<void()> after);
inline std::unique_ptr<Kernel> MakeGroupKernel(Group group, ExchangeStep before,
                                               std::function<void()> after) {
  return MakeGroupKernel(std::move(group), std::vector<ExchangeStep>{std::move(before)},
                         std::move(after));
}

// Rejects the call unless text `i` is "sum", the one way in which devices reduce.
void ExpectSum(const Call& call, int i);

// Rejects the call unless the dims at `i`, between which ranks exchange, are these or not given.
void ExpectAxes(const Call& call, int i, int64_t first, int64_t second);

// A kernel that sums over the ranks what `own` computes, rounded to the dtype first. `after` gets
// the sum.
std::unique_ptr<Kernel> MakeSumKernel(Group group, at::ScalarType dtype,
                                      std::function<at::Tensor()> own,
                                      std::function<void(const at::Tensor&)> after);

}  // namespace acltape::opapi
