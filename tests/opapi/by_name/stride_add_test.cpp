// StrideAdd by its name, beside blocks of 16 channels that are filled with zeros.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The blocks from `offset` on of a map whose last block is filled.
Tensor Blocks(const Tensor& x, int64_t offset, int64_t blocks) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[1] = (shape[1] + 15) / 16 * 16;
  Tensor filled = at::zeros(shape, x.options());
  filled.narrow(1, 0, x.size(1)).copy_(x);
  return filled.narrow(1, 16 * offset, 16 * blocks);
}

aclError AddChannels(const Tensor& a, const Tensor& b, const Tensor& out, int64_t offset_a,
                     int64_t offset_b, int64_t blocks) {
  NamedCall call("StrideAdd");
  call.In(a).In(b).Out(out).Set("x1_c1_offset", offset_a).Set("x2_c1_offset", offset_b);
  return call.Set("c1_len", blocks).Run();
}

TEST(StridedSumsByName, TheExampleOfTheAdapter) {
  const Tensor x = at::ones({1, 1, 1, 1, 1}), out = at::full({1, 16, 1, 1, 1}, 77.0f);
  ASSERT_EQ(AddChannels(x, x, out, 0, 0, 1), ACL_SUCCESS) << TakeMessage();
  Tensor wanted = at::zeros({1, 16, 1, 1, 1});
  wanted[0][0] = 2;
  EXPECT_TRUE(SameBits(out, wanted));
}

TEST(StridedSumsByName, OffsetsAndLengthsCountBlocksOf16Channels) {
  at::manual_seed(32);
  const struct {
    int64_t a, b, offset_a, offset_b, blocks;
  } kParts[] = {{32, 64, 0, 1, 2}, {48, 48, 1, 2, 1}, {35, 50, 1, 1, 2},
                {17, 64, 1, 3, 1}, {64, 17, 2, 0, 2}, {5, 3, 0, 0, 1}};
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const auto& part : kParts) {
      const Tensor a = Random({2, part.a, 3, 2}, type), b = Random({2, part.b, 3, 2}, type);
      const Tensor out = at::full({2, 16 * part.blocks, 3, 2}, 77, type);
      ASSERT_EQ(AddChannels(a, b, out, part.offset_a, part.offset_b, part.blocks), ACL_SUCCESS)
          << TakeMessage();
      EXPECT_TRUE(SameBits(
          out, Blocks(a, part.offset_a, part.blocks) + Blocks(b, part.offset_b, part.blocks)));
    }
  }
  EXPECT_EQ(AddChannels(at::empty({0, 16, 2, 2}), at::empty({0, 20, 2, 2}),
                        at::empty({0, 16, 2, 2}), 0, 0, 1),
            ACL_SUCCESS)
      << TakeMessage();
}

TEST(StridedSumsByName, FormsThatAreRefused) {
  const Tensor x = at::zeros({1, 20, 2, 2}), out = at::zeros({1, 16, 2, 2});
  const struct {
    Tensor a, b, out;
    int64_t offset_a, offset_b, blocks;
    const char* part;
  } kCalls[] = {
      {x, x, out, 2, 0, 1, "x1_c1_offset 2, but x1 has 20 channels, which are 2 blocks"},
      {x, x, out, 0, 2, 1, "x2_c1_offset 2"},
      {x, x, out, 0, -1, 1, "x2_c1_offset -1"},
      {x, x, out, 0, 0, 3, "c1_len is 3"},
      {x, x, out, 0, 0, 0, "c1_len is 0"},
      {x, x, at::zeros({1, 20, 2, 2}), 0, 0, 1, "output 0 has the shape [1, 20, 2, 2]"},
      {x, at::zeros({1, 20, 2, 1}), out, 0, 0, 1, "equal but for the channels"},
      {at::zeros({1, 20}), at::zeros({1, 20}), at::zeros({1, 16}), 0, 0, 1, "expected 4 or 5 dims"},
      {x.to(at::kInt), x.to(at::kInt), out.to(at::kInt), 0, 0, 1, "and the type 3"},
      {x, x.to(at::kHalf), out, 0, 0, 1, "its tensors have the types 0 and 1"},
      {x, x, out.to(at::kHalf), 0, 0, 1, "its tensors have the types 0 and 1"},
  };
  for (const auto& each : kCalls) {
    TakeMessage();
    EXPECT_NE(AddChannels(each.a, each.b, each.out, each.offset_a, each.offset_b, each.blocks),
              ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(each.part), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace acltape::opapi
