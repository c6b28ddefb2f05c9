#include "runtime/opapi/kernels/group_kernel.h"

#include <string>

#include "runtime/opapi/engine/kernel.h"
#include "runtime/opapi/engine/waiting_kernel.h"

namespace acltape::opapi {
namespace {

HcclDataType DtypeOf(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return HCCL_DATA_TYPE_FP16;
    case at::kBFloat16:
      return HCCL_DATA_TYPE_BFP16;
    case at::kFloat:
      return HCCL_DATA_TYPE_FP32;
    default:
      TORCH_CHECK(false, "no exchange of ", at::toString(dtype));
  }
}

class GroupKernel final : public WaitingKernel {
 public:
  GroupKernel(Group group, std::function<SoftExchange()> before, std::function<void()> after)
      : WaitingKernel(&Run),
        group_(std::move(group)),
        before_(std::move(before)),
        after_(std::move(after)) {}

  void Launched(bool captured) override { SoftGroups()->launched(group_.member(), captured); }
  bool Ready() override { return Advance(/*wait=*/false); }
  void GiveUp(const char* why) override {
    SoftGroups()->fail(group_.member(), why);
    state_ = State::kWorks;
  }

 private:
  enum class State { kWorks, kWaits, kEnded };

  static aclError Run(void* bound) {
    auto* self = static_cast<GroupKernel*>(static_cast<Kernel*>(bound));
    self->Advance(/*wait=*/true);
    self->state_ = State::kWorks;  // for the next run
    if (self->result_ != ACL_SUCCESS) SoftSetErrorMessage(self->message_.c_str());
    return self->result_;
  }

  // Goes on with this run; true when it has ended.
  bool Advance(bool wait) {
    const SoftGroupFunctions& groups = *SoftGroups();
    try {
      WorkerThread::Enter();
      if (state_ == State::kWorks) {
        const SoftExchange exchange = before_();
        groups.begin(group_.member(), &exchange);
        state_ = State::kWaits;
      }
      if (state_ == State::kEnded) return true;
      if (!wait && !groups.ready(group_.member())) return false;
      const aclError code = groups.finish(group_.member());
      if (code == ACL_SUCCESS) after_();
      return End(code);
    } catch (...) {
      const aclError code = ReportKernelException();
      if (state_ == State::kWorks) GiveUp(SoftErrorMessage());
      return End(code);
    }
  }

  bool End(aclError result) {
    state_ = State::kEnded;
    result_ = result;
    message_ = result == ACL_SUCCESS ? "" : SoftErrorMessage();
    return true;
  }

  const Group group_;
  const std::function<SoftExchange()> before_;
  const std::function<void()> after_;

  // State of the run.
  State state_ = State::kWorks;
  aclError result_ = ACL_SUCCESS;
  std::string message_;
};

}  // namespace

Group::Group(const Call& call, int i) {
  const SoftGroupFunctions* groups = SoftGroups();
  if (groups == nullptr) {
    call.RejectArg(i, "names a group, and this process has loaded no libhccl.so");
  }
  SoftGroupMember* member = groups->join(call.Text(i).c_str(), &rank_, &ranks_);
  if (member == nullptr) call.RejectCall(SoftErrorMessage());
  member_.reset(member, groups->leave);
}

SoftExchange ExchangeOf(SoftExchangeKind kind, int64_t count, const at::Tensor& send,
                        const at::Tensor& recv) {
  return {kind, DtypeOf(send.scalar_type()), static_cast<uint64_t>(count), send.data_ptr(),
          recv.data_ptr()};
}

std::unique_ptr<Kernel> MakeGroupKernel(Group group, std::function<SoftExchange()> before,
                                        std::function<void()> after) {
  return std::make_unique<GroupKernel>(std::move(group), std::move(before), std::move(after));
}

}  // namespace acltape::opapi
