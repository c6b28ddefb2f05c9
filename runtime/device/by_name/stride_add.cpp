// Sums of parts of the channels of two feature maps (StrideAdd).
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_zero.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

constexpr int64_t kChannelsOfBlock = 16;  // C0 of the format NC1HWC0, of any type

// Channels of an input, some of which may be missing in its last block.
struct ChannelPart {
  int64_t first, count;
};

aclError ReadPart(const NamedCall& call, int input, const char* attribute, int64_t blocks,
                  ChannelPart* part) {
  const int64_t channels = call.inputs.Shape(input)[1];
  const int64_t offset = IntegerOf(call, attribute, 0);
  const int64_t all = (channels + kChannelsOfBlock - 1) / kChannelsOfBlock;
  if (offset < 0 || blocks < 1 || offset > all || blocks > all - offset) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: c1_len is %lld and %s %lld, but x%d has %lld channels, which are %lld "
                "blocks of 16",
                call.name, static_cast<long long>(blocks), attribute,
                static_cast<long long>(offset), input + 1, static_cast<long long>(channels),
                static_cast<long long>(all));
  }
  part->first = offset * kChannelsOfBlock;
  part->count = std::min(channels - part->first, blocks * kChannelsOfBlock);
  return ACL_SUCCESS;
}

aclError CheckMaps(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  std::vector<int64_t> first = call.inputs.Shape(0), second = call.inputs.Shape(1);
  const aclDataType type = call.inputs.descs[0]->type;
  const bool ranks = (first.size() == 4 || first.size() == 5) && second.size() == first.size();
  if (ranks) first[1] = second[1];
  if (!ranks || first != second || (type != ACL_FLOAT && type != ACL_FLOAT16 && type != ACL_BF16) ||
      call.inputs.InBlocks(0) || call.inputs.InBlocks(1) || call.outputs.InBlocks(0)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: x1 has the shape %s and the type %d, and x2 the shape %s; expected 4 or "
                "5 dims, which are equal but for the channels in dim 1, not in FRACTAL_NZ, and "
                "float32, float16 or bfloat16",
                call.name, ShapeText(call.inputs.Shape(0)).c_str(), static_cast<int>(type),
                ShapeText(second).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.inputs.descs[1]->type));
  return CheckSameType(call, type, call.outputs.descs[0]->type);
}

// (x1, x2) to y, which has c1_len blocks of 16 channels. Offsets count such blocks, too. An input
// has zeros in place of the channels that are missing in its last block.
aclError AddChannels(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckMaps(call));
  const int64_t blocks = IntegerOf(call, "c1_len", 0);
  ChannelPart parts[2];
  ACLTAPE_RETURN_IF_FAILED(ReadPart(call, 0, "x1_c1_offset", blocks, &parts[0]));
  ACLTAPE_RETURN_IF_FAILED(ReadPart(call, 1, "x2_c1_offset", blocks, &parts[1]));
  std::vector<int64_t> shape = call.inputs.Shape(0);
  shape[1] = blocks * kChannelsOfBlock;
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  OperatorArguments own;
  const auto channels = [&](const NamedTensors& tensors, int i, int64_t first, int64_t count) {
    const std::vector<int64_t> strides = RowMajorStrides(tensors.Shape(i));
    std::vector<int64_t> part = shape;
    part[1] = count;
    return own.View(tensors, i, part, strides, first * strides[1]);
  };
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceZeroGetWorkspaceSize)>(
      call, "aclnnInplaceZero", own.Dense(call.outputs, 0, shape)));
  const int64_t both = std::min(parts[0].count, parts[1].count);
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnAddGetWorkspaceSize)>(
      call, "aclnnAdd", channels(call.inputs, 0, parts[0].first, both),
      channels(call.inputs, 1, parts[1].first, both), own.Float(1),
      channels(call.outputs, 0, 0, both)));
  for (int i = 0; i < 2; ++i) {
    const int64_t more = parts[i].count - both;
    if (more == 0) continue;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceAddGetWorkspaceSize)>(
        call, "aclnnInplaceAdd", channels(call.outputs, 0, both, more),
        channels(call.inputs, i, parts[i].first + both, more), own.Float(1)));
  }
  return ClearPadding(call);
}

constexpr NamedOperator kStridedSums[] = {
    {"StrideAdd", AddChannels},
};

}  // namespace

NamedTable StridedSumsByName() { return kStridedSums; }

}  // namespace acltape::device
