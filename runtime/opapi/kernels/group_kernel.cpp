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
    case at::kLong:
      return HCCL_DATA_TYPE_INT64;
    default:
      TORCH_CHECK(false, "no exchange of ", at::toString(dtype));
  }
}

class GroupKernel final : public WaitingKernel {
 public:
  GroupKernel(Group group, std::vector<ExchangeStep> steps, std::function<void()> after)
      : WaitingKernel(&Run),
        group_(std::move(group)),
        steps_(std::move(steps)),
        after_(std::move(after)) {}

  void Launched(bool captured) override { SoftGroups()->launched(group_.member(), captured); }
  bool Ready() override { return Advance(/*wait=*/false); }
  void GiveUp(const char* why) override {
    SoftGroups()->fail(group_.member(), why);
    BeginAnew();
  }

 private:
  enum class State { kWorks, kWaits, kEnded };

  static aclError Run(void* bound) {
    auto* self = static_cast<GroupKernel*>(static_cast<Kernel*>(bound));
    self->Advance(/*wait=*/true);
    self->BeginAnew();  // for the next run
    if (self->result_ != ACL_SUCCESS) SoftSetErrorMessage(self->message_.c_str());
    return self->result_;
  }

  void BeginAnew() {
    state_ = State::kWorks;
    step_ = 0;
  }

  // Goes on with this run; true when it has ended.
  bool Advance(bool wait) {
    if (state_ == State::kEnded) return true;
    const SoftGroupFunctions& groups = *SoftGroups();
    try {
      WorkerThread::Enter();
      for (; step_ < steps_.size(); ++step_) {
        if (state_ == State::kWorks) {
          const SoftExchange exchange = steps_[step_]();
          groups.begin(group_.member(), &exchange);
          state_ = State::kWaits;
        }
        if (!wait && !groups.ready(group_.member())) return false;
        const aclError code = groups.finish(group_.member());
        if (code != ACL_SUCCESS) return End(code);
        state_ = State::kWorks;
      }
      after_();
      return End(ACL_SUCCESS);
    } catch (...) {
      const aclError code = ReportKernelException();
      if (step_ < steps_.size()) GiveUp(SoftErrorMessage());
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
  const std::vector<ExchangeStep> steps_;
  const std::function<void()> after_;

  // State of the run.
  State state_ = State::kWorks;
  size_t step_ = 0;  // the next one; in kWaits the one whose exchange has begun
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
  return {kind,
          DtypeOf(send.scalar_type()),
          static_cast<uint64_t>(count),
          send.data_ptr(),
          recv.data_ptr(),
          nullptr,
          nullptr,
          nullptr,
          nullptr};
}

RowExchange::RowExchange(const std::vector<int64_t>& to, const std::vector<int64_t>& from,
                         int64_t width) {
  const auto lay = [width](const std::vector<int64_t>& rows, std::vector<uint64_t>* counts,
                           std::vector<uint64_t>* places) {
    uint64_t place = 0;
    for (const int64_t count : rows) {
      counts->push_back(static_cast<uint64_t>(count * width));
      places->push_back(place);
      place += counts->back();
    }
  };
  lay(to, &send_counts_, &send_places_);
  lay(from, &recv_counts_, &recv_places_);
}

SoftExchange RowExchange::Of(const at::Tensor& send, const at::Tensor& recv) const {
  return {SOFT_ALL_TO_ALL_V,   HCCL_DATA_TYPE_UINT8, 0,
          send.data_ptr(),     recv.data_ptr(),      send_counts_.data(),
          send_places_.data(), recv_counts_.data(),  recv_places_.data()};
}

std::unique_ptr<Kernel> MakeGroupKernel(Group group, std::vector<ExchangeStep> steps,
                                        std::function<void()> after) {
  return std::make_unique<GroupKernel>(std::move(group), std::move(steps), std::move(after));
}

void ExpectSum(const Call& call, int i) {
  if (call.Text(i) != "sum") call.RejectArg(i, "is \"" + call.Text(i) + "\"; ranks only sum");
}

void ExpectAxes(const Call& call, int i, int64_t first, int64_t second) {
  if (call.IsAbsent(i) || call.Ints(i) == std::vector<int64_t>{first, second}) return;
  call.RejectArg(i, "must be " + SizesText({first, second}) + ", or absent");
}

std::unique_ptr<Kernel> MakeSumKernel(Group group, at::ScalarType dtype,
                                      std::function<at::Tensor()> own,
                                      std::function<void(const at::Tensor&)> after) {
  const auto sum = std::make_shared<at::Tensor>();
  const auto before = [sum, dtype, own = std::move(own)] {
    *sum = own().to(dtype).contiguous();
    return ExchangeOf(SOFT_ALL_REDUCE, sum->numel(), *sum, *sum);
  };
  return MakeGroupKernel(std::move(group), before, [sum, after = std::move(after)] {
    after(*sum);
    *sum = at::Tensor();
  });
}

}  // namespace acltape::opapi
