// ViewCopy by its name, beside copies between views of libtorch.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Numbers = std::vector<int64_t>;

struct ViewOfBuffer {
  Tensor buffer;
  Numbers size, stride, offset;
};

void Give(NamedCall& call, const ViewOfBuffer& view) {
  call.In(view.buffer).Host(view.size).Host(view.stride).Host(view.offset);
}

aclError Copy(const ViewOfBuffer& to, const ViewOfBuffer& from) {
  NamedCall call("ViewCopy");
  Give(call, to);
  Give(call, from);
  return call.Out(to.buffer).Run();
}

TEST(ViewCopiesByName, ElementsGoFromViewToView) {
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kChar,
                              at::kByte, at::kBool, at::kDouble}) {
    const Tensor source = (at::arange(40) % 7).to(type), target = (at::arange(60) % 3).to(type);
    const Tensor wanted = target.clone();
    wanted.as_strided({2, 3, 2}, {30, 2, 7}, 5).copy_(source.as_strided({2, 3, 2}, {1, 12, 5}, 3));
    ASSERT_EQ(Copy({target, {2, 3, 2}, {30, 2, 7}, {5}}, {source, {2, 3, 2}, {1, 12, 5}, {3}}),
              ACL_SUCCESS)
        << TakeMessage();
    EXPECT_TRUE(SameBits(target, wanted));
  }
}

TEST(ViewCopiesByName, RepeatedElementsScalarsAndNothing) {
  const Tensor source = Random({4}), target = at::zeros({3, 4});
  ASSERT_EQ(Copy({target, {3, 4}, {4, 1}, {0}}, {source, {3, 4}, {0, 1}, {0}}), ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(SameBits(target, source.expand({3, 4}).contiguous()));
  ASSERT_EQ(Copy({target, {}, {}, {11}}, {source, {}, {}, {2}}), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(target[2][3].item<float>(), source[2].item<float>());
  const Tensor before = target.clone();
  EXPECT_EQ(Copy({target, {0, 5}, {9, 99}, {0}}, {source, {0, 5}, {1, 1}, {0}}), ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(SameBits(target, before));
}

TEST(ViewCopiesByName, NumbersMayBeConstantsOrInt32) {
  const Tensor source = Random({6}), target = at::zeros({6});
  NamedCall call("ViewCopy");
  const Numbers size{2}, stride{3}, offset{1};
  call.In(target).Constant(size).Constant(stride).Constant(offset).In(source);
  for (int number : {2, 2, 0}) call.Host(at::tensor({number}, at::kInt));
  ASSERT_EQ(call.Out(target).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(target[1].item<float>(), source[0].item<float>());
  EXPECT_EQ(target[4].item<float>(), source[2].item<float>());
}

TEST(ViewCopiesByName, FormsThatAreRefused) {
  const Tensor a = at::zeros({6}), b = at::zeros({6});
  const ViewOfBuffer whole{b, {6}, {1}, {0}};
  const struct {
    ViewOfBuffer to, from;
    const char* part;
  } kCalls[] = {
      {{a, {7}, {1}, {0}}, {b, {7}, {1}, {0}}, "dst has the type 0, and a view of the size [7]"},
      {{a, {6}, {1}, {1}}, whole, "the offset [1]"},
      {{a, {6}, {1}, {-1}}, whole, "the offset [-1]"},
      {{a, {6}, {1}, {}}, whole, "the offset []"},
      {{a, {6}, {-1}, {5}}, whole, "the stride [-1]"},
      {{a, {-6}, {1}, {0}}, whole, "the size [-6]"},
      {{a, {3, 2}, {2}, {0}}, whole, "the size [3, 2], the stride [2]"},
      {{a, {2}, {INT64_MAX}, {5}}, {b, {2}, {1}, {0}}, "dst has the type 0"},
      {{a, {6}, {1}, {0}}, {b, {6}, {2}, {0}}, "src has the type 0"},
      {{a, {3}, {1}, {0}}, whole, "dst_size is [3] and src_size [6]"},
      {{a, {6}, {1}, {0}}, {b.to(at::kInt), {6}, {1}, {0}}, "its tensors have the types 0 and 3"},
  };
  for (const auto& each : kCalls) {
    TakeMessage();
    EXPECT_NE(Copy(each.to, each.from), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(each.part), std::string::npos) << message;
  }
  NamedCall elsewhere("ViewCopy");
  Give(elsewhere, {a, {6}, {1}, {0}});
  Give(elsewhere, whole);
  TakeMessage();
  EXPECT_NE(elsewhere.Out(at::zeros({6})).Run(), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("the output is dst"), std::string::npos);
  NamedCall few("ViewCopy");
  EXPECT_NE(few.In(a).Out(a).Run(), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("expected at least 8 and 1"), std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
