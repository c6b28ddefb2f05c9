// The generated numbers of the interface are those of its headers.
#include <gtest/gtest.h>

#include <set>
#include <type_traits>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "generated/meaning/interface_numbers.h"
#include "generated/meaning/parameter_positions.h"

namespace acltape::meaning {
namespace {

TEST(InterfaceNumbers, AreThoseOfTheHeaders) {
  static_assert(kAclErrorRtStreamCaptured == ACL_ERROR_RT_STREAM_CAPTURED);
  static_assert(kAclErrorRtStreamNotCaptured == ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  static_assert(kAclErrorRepeatInitialize == ACL_ERROR_REPEAT_INITIALIZE);
  static_assert(kAclnnErrParamNullptr == ACLNN_ERR_PARAM_NULLPTR);
  static_assert(kAclEventExternal == ACL_EVENT_EXTERNAL);
  static_assert(kAclEventWaitExternal == ACL_EVENT_WAIT_EXTERNAL);
  static_assert(kAclModelRiCaptureModeRelaxed == ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  static_assert(kAclDtUndefined == ACL_DT_UNDEFINED && kAclDtUndefined < 0);
  static_assert(std::is_same_v<decltype(kAclEventExternal), const uint32_t>);
  EXPECT_NE(kAclEventExternal, uint32_t{kAclEventWaitExternal});
}

TEST(InterfaceNumbers, NamesOfATraceAreThereOnce) {
  std::set<std::string_view> names;
  std::set<int32_t> numbers;
  for (const NamedNumber& format : kAclFormats) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_TRUE(numbers.insert(format.number).second) << format.name;
  }
  EXPECT_TRUE(names.contains("ND") && names.contains("FRACTAL_Z_3D"));
  // The recorder does not keep how these lie in memory.
  EXPECT_FALSE(numbers.contains(ACL_FORMAT_FRACTAL_NZ_C0_16));
  EXPECT_EQ(kAclCaptureModes[ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL].name, "thread_local");
}

TEST(ParameterPositions, AreThoseOfTheFunctions) {
  EXPECT_EQ(position::aclrtMemcpy::kSrc, 2);
  EXPECT_EQ(position::aclrtMemcpy2d::kHeight, 5);
  // The position that the recorder adds comes after them.
  EXPECT_EQ(position::aclmdlRICondHandleCreate::kCell, 4);
}

}  // namespace
}  // namespace acltape::meaning
