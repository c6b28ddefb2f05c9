// libatb.so: contexts and the life of operations. The operations are in the files atb_*.cpp; those
// that are not there are generated for the installed adapter, and name themselves when they are
// made (cli/environment/adapter_names.h).
#include "runtime/compat/atb.h"

namespace atb {
namespace {

class SoftContext final : public Context {
 public:
  Status SetExecuteStream(aclrtStream stream) override {
    streams_.assign(1, stream);
    return kNoError;
  }
  aclrtStream GetExecuteStream() const override {
    return streams_.empty() ? nullptr : streams_.front();
  }
  Status SetAsyncTilingCopyStatus(bool enable) override {
    copies_tiling_ = enable;
    return kNoError;
  }
  bool GetAsyncTilingCopyStatus() const override { return copies_tiling_; }
  Status SetExecuteStreams(const std::vector<aclrtStream>& streams) override {
    streams_ = streams;
    return kNoError;
  }
  std::vector<aclrtStream> GetExecuteStreams() override { return streams_; }
  Status SetExecuteType(int type) override {
    type_ = type;
    return kNoError;
  }
  int GetExecuteType() override { return type_; }
  Status SetLaunchMode(int mode) override {
    mode_ = mode;
    return kNoError;
  }
  int GetLaunchMode() override { return mode_; }

 private:
  std::vector<aclrtStream> streams_;
  bool copies_tiling_ = false;
  int type_ = 0, mode_ = 0;
};

}  // namespace

Status CreateContext(Context** context) {
  if (context == nullptr) return kInvalidParam;
  *context = new SoftContext;
  return kNoError;
}

Status DestroyContext(Context* context) {
  delete context;
  return kNoError;
}

Status DestroyOperation(Operation* operation) {
  delete operation;
  return kNoError;
}

uint64_t Utils::GetTensorSize(const Tensor& tensor) {
  uint64_t count = tensor.desc.shape.dimNum == 0 ? 0 : 1;
  for (uint64_t i = 0; i < tensor.desc.shape.dimNum; ++i) {
    count *= static_cast<uint64_t>(tensor.desc.shape.dims[i]);
  }
  return count * aclDataTypeSize(tensor.desc.dtype);
}

}  // namespace atb
