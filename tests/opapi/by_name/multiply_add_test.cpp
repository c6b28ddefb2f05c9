// A tensor and a part of two others by the operators' names.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

TEST(MultiplyAddsByName, ProductsAndQuotients) {
  at::manual_seed(95);
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const double tolerance = dtype == at::kFloat ? 1e-5 : dtype == at::kHalf ? 1e-2 : 0.1;
    const Tensor x = Random({2, 3}, dtype), a = Random({3}, dtype);
    const Tensor b = Random({2, 1}, dtype, 0.5, 2);
    for (const std::string name : {"Addcmul", "Addcdiv"}) {
      for (bool on_host : {true, false}) {
        const Tensor out = at::full({2, 3}, 77, dtype), value = at::scalar_tensor(0.5, dtype);
        NamedCall call(name.c_str());
        call.In(x).In(a).In(b);
        on_host ? call.Host(value) : call.In(value);
        ASSERT_EQ(call.Out(out).Run(), ACL_SUCCESS) << TakeMessage();
        for (int64_t i = 0; i < 6; ++i) {
          const double p = a[i % 3].item<double>(), q = b[i / 3][0].item<double>();
          const double wanted =
              x[i / 3][i % 3].item<double>() + 0.5 * (name == "Addcmul" ? p * q : p / q);
          EXPECT_NEAR(out[i / 3][i % 3].item<double>(), wanted, tolerance) << name;
        }
      }
    }
    const Tensor end = Random({2, 3}, dtype), out = at::full({2, 3}, 77, dtype);
    NamedCall lerp("Lerp");
    lerp.In(x).In(end).Host(at::scalar_tensor(0.25, dtype)).Out(out);
    ASSERT_EQ(lerp.Run(), ACL_SUCCESS) << TakeMessage();
    for (int64_t i = 0; i < 6; ++i) {
      const double from = x.view({-1})[i].item<double>(), to = end.view({-1})[i].item<double>();
      EXPECT_NEAR(out.view({-1})[i].item<double>(), 0.75 * from + 0.25 * to, tolerance);
    }
  }
}

TEST(MultiplyAddsByName, NothingAndFormsThatAreRefused) {
  const Tensor none = at::empty({0, 3}), one = at::scalar_tensor(1.0f), x = Random({2, 3});
  NamedCall empty("Addcmul");
  EXPECT_EQ(empty.In(none).In(none).In(none).Host(one).Out(none).Run(), ACL_SUCCESS)
      << TakeMessage();
  const auto refuse = [](NamedCall& call, const char* part) {
    TakeMessage();
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  {
    NamedCall wrong("Addcmul");
    wrong.In(x).In(x).In(x).In(at::ones({2})).Out(at::empty({2, 3}));
    refuse(wrong, "value the shape [2]; the soft device takes one type of floats");
  }
  {
    NamedCall wrong("Addcdiv");
    wrong.In(x).In(x.to(at::kInt)).In(x).Host(one).Out(at::empty({2, 3}));
    refuse(wrong, "takes one type of floats for all tensors");
  }
  {
    NamedCall wrong("Addcmul");
    wrong.In(x).In(x).In(x).Host(one).Out(at::empty({3, 3}));
    refuse(wrong, "output 0 has the shape [3, 3], expected [2, 3]");
  }
  {
    NamedCall wrong("Lerp");
    wrong.In(x).In(x).Host(at::scalar_tensor(1, at::kInt)).Out(at::empty({2, 3}));
    refuse(wrong, "the soft device takes one type");
  }
}

}  // namespace
}  // namespace acltape::opapi
