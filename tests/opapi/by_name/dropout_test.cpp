// Dropout with a mask that is given, by its name.
#include <limits>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

Tensor ScalarOf(double value, at::ScalarType dtype) {
  return at::scalar_tensor(value, at::TensorOptions().dtype(dtype));
}

TEST(DropoutByName, ABitForEachElementSaysWhatIsKept) {
  at::manual_seed(41);
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{3, 7}, std::vector<int64_t>{1}, std::vector<int64_t>{}}) {
      const Tensor x = Random(shape, dtype), out = at::full(shape, 77, dtype);
      const Tensor mask = at::randint(0, 256, {16}, at::kByte);
      Tensor wanted = at::zeros({x.numel()}, at::kDouble);
      for (int64_t i = 0; i < x.numel(); ++i) {
        const bool kept = (mask[i / 8].item<int>() >> (i % 8) & 1) != 0;
        if (kept) wanted[i] = x.view({-1})[i].item<double>() / 0.25;
      }
      NamedCall call("DropOutDoMask");
      call.In(x).In(mask).Host(ScalarOf(0.25, dtype)).Out(out);
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted.view(shape), 1e-2, 1e-6)) << out;
    }
  }
}

TEST(DropoutByName, AByteForEachElementSaysWhatIsKept) {
  constexpr float kEndlessValue = std::numeric_limits<float>::infinity();
  const Tensor mask = at::tensor({1, 0, 1, 0, 1, 0}).to(at::kByte);
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const Tensor x = at::tensor({1.0f, 2.0f, -3.0f, kEndlessValue, kEndlessValue, 0.0f});
    const Tensor out = at::full({2, 3}, 77, dtype);
    NamedCall call("DropOutDoMaskV3");
    call.In(x.to(dtype).view({2, 3})).In(mask).Host(ScalarOf(0.5, dtype)).Out(out);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    const Tensor wanted = at::tensor({2.0f, 0.0f, -6.0f, 0.0f, kEndlessValue, 0.0f});
    EXPECT_TRUE(SameBits(out, wanted.to(dtype).view({2, 3}))) << out;
  }
  const Tensor out = at::full({6}, 77.0f);
  NamedCall none("DropOutDoMaskV3");
  none.In(at::ones({6})).In(mask).Host(ScalarOf(0, at::kFloat)).Out(out);
  ASSERT_EQ(none.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, at::zeros({6})));
}

TEST(DropoutByName, AMaskThatWasDrawnByNameFits) {
  const Tensor mask = at::full({4, 50}, 9, at::kByte), x = at::ones({4, 50});
  NamedCall draw("DropOutGenMaskV3");
  draw.Host({4, 50}).Host(ScalarOf(0.8, at::kFloat)).Out(mask).Set("seed", int64_t{5});
  ASSERT_EQ(draw.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor out = at::full({4, 50}, 77.0f);
  NamedCall call("DropOutDoMaskV3");
  call.In(x).In(mask).Host(ScalarOf(0.8, at::kFloat)).Out(out);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::allclose(out, mask.to(at::kFloat) * 1.25f, 1e-6));
  EXPECT_NEAR(out.mean().item<double>(), 1, 0.25);
}

TEST(DropoutByName, NothingAndFormsThatAreRefused) {
  const auto run = [](const char* name, const Tensor& x, const Tensor& mask, double keep,
                      const Tensor& out) {
    TakeMessage();
    NamedCall call(name);
    call.In(x).In(mask).Host(ScalarOf(keep, at::kFloat)).Out(out);
    return call.Run();
  };
  const Tensor x = at::ones({9}), out = at::empty({9});
  const Tensor bits = at::ones({2}, at::kByte), bytes = at::ones({9}, at::kByte);
  for (const char* name : {"DropOutDoMask", "DropOutDoMaskV3"}) {
    EXPECT_EQ(run(name, at::empty({0, 3}), bits, 0.5, at::empty({0, 3})), ACL_SUCCESS);
    EXPECT_NE(run(name, x, bytes, 1.5, out), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("keep_prob is 1.5"), std::string::npos);
    EXPECT_NE(run(name, x, bytes.to(at::kInt), 0.5, out), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("elements of uint8"), std::string::npos);
    EXPECT_NE(run(name, x, bytes, 0.5, at::empty({8})), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("output 0 has the shape [8], expected [9]"), std::string::npos);
    EXPECT_NE(run(name, x, bytes, 0.5, at::empty({9}, at::kHalf)), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("takes one type"), std::string::npos);
    EXPECT_NE(run(name, x.to(at::kInt), bytes, 0.5, out.to(at::kInt)), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("expected floats"), std::string::npos);
  }
  EXPECT_NE(run("DropOutDoMaskV3", x, bits, 0.5, out), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("9 elements of uint8"), std::string::npos);
  EXPECT_NE(run("DropOutDoMask", x, bits.narrow(0, 0, 1), 0.5, out), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("2 elements of uint8"), std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
