// Facts about the product's chip (section 35 of the rules). Values are texts.
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "acl/acl_platform.h"
#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

// Facts of the server product that no setting changes. The product has no clock of its vector cores
// and no type of memory in its description.
struct PlatformFact {
  aclplatformDevInfo info;
  std::string (*value)();
};

constexpr PlatformFact kPlatformFacts[] = {
    {ACL_PLATFORM_AICORE_CNT, [] { return std::to_string(GetProfile().cube_cores); }},
    {ACL_PLATFORM_AICORE_UB_SIZE, [] { return std::string("196608"); }},
    {ACL_PLATFORM_CUBE_CORE_CNT, [] { return std::to_string(GetProfile().cube_cores); }},
    {ACL_PLATFORM_VECTOR_CORE_CNT, [] { return std::to_string(GetProfile().vector_cores); }},
    {ACL_PLATFORM_L2_SIZE, [] { return std::to_string(GetProfile().l2_bytes); }},
    {ACL_PLATFORM_MEMORY_SIZE, [] { return std::to_string(GetProfile().memory); }},
    {ACL_PLATFORM_CUBE_FREQ, [] { return std::string("1850"); }},
    {ACL_PLATFORM_BT_SIZE, [] { return std::string("1024"); }},
    {ACL_PLATFORM_L0_A_SIZE, [] { return std::string("65536"); }},
    {ACL_PLATFORM_L0_B_SIZE, [] { return std::string("65536"); }},
    {ACL_PLATFORM_L0_C_SIZE, [] { return std::string("131072"); }},
    {ACL_PLATFORM_L1_SIZE, [] { return std::string("524288"); }},
    {ACL_PLATFORM_SOC_VERSION, [] { return GetProfile().soc_name; }},
    {ACL_PLATFORM_AIC_VERSION, [] { return std::string("AIC-C-220"); }},
    {ACL_PLATFORM_NPU_ARCH, [] { return std::to_string(int{DAV_2201}); }},
};

// Vector instructions, and the types that the vendor's pages name for them on this product.
constexpr const char* kFloats = "float16,float32";
constexpr const char* kFloatsAndInts = "float16,float32,int32,int16";
constexpr const char* kBits = "uint16,int16";

struct Instruction {
  std::string_view name;
  const char* types;
};

constexpr Instruction kInstructions[] = {
    {"Intrinsic_vadd", kFloatsAndInts},
    {"Intrinsic_vsub", kFloatsAndInts},
    {"Intrinsic_vmul", kFloatsAndInts},
    {"Intrinsic_vmax", kFloatsAndInts},
    {"Intrinsic_vmin", kFloatsAndInts},
    {"Intrinsic_vadds", kFloatsAndInts},
    {"Intrinsic_vmuls", kFloatsAndInts},
    {"Intrinsic_vmaxs", kFloatsAndInts},
    {"Intrinsic_vmins", kFloatsAndInts},
    {"Intrinsic_vdiv", kFloats},
    {"Intrinsic_vrec", kFloats},
    {"Intrinsic_vexp", kFloats},
    {"Intrinsic_vln", kFloats},
    {"Intrinsic_vabs", kFloats},
    {"Intrinsic_vsqrt", kFloats},
    {"Intrinsic_vrsqrt", kFloats},
    {"Intrinsic_vrelu", "float16,float32,int32"},
    {"Intrinsic_vand", kBits},
    {"Intrinsic_vor", kBits},
    {"Intrinsic_vnot", kBits},
};

aclError WritePlatformText(const std::string& text, char* to, uint32_t room, const char* call) {
  if (text.size() >= room) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the value needs %zu bytes, and maxLen is %u", call,
                text.size() + 1, room);
  }
  std::memcpy(to, text.c_str(), text.size() + 1);
  return ACL_SUCCESS;
}

}  // namespace

aclError aclplatformGetDeviceInfo(aclplatformDevInfo infoType, char* value, uint32_t maxLen) {
  ACLTAPE_CALL("aclplatformGetDeviceInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  for (const PlatformFact& row : kPlatformFacts) {
    if (row.info == infoType) return WritePlatformText(row.value(), value, maxLen, kCall);
  }
  if (infoType == ACL_PLATFORM_VEC_FREQ || infoType == ACL_PLATFORM_MEMORY_TYPE) {
    return Fail(ACL_ERROR_OP_NOT_FOUND, "%s: the product does not tell %d", kCall,
                static_cast<int>(infoType));
  }
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no information %d", kCall,
              static_cast<int>(infoType));
}

aclError aclplatformGetInstructionInfo(aclplatformCoreType type, const char* instruction,
                                       char* value, uint32_t maxLen) {
  ACLTAPE_CALL("aclplatformGetInstructionInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(instruction, kCall, "instruction"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  if (type != ACL_PLATFORM_CORE_TYPE_AI_CORE && type != ACL_PLATFORM_CORE_TYPE_VECTOR_CORE) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no kind of core %d", kCall,
                static_cast<int>(type));
  }
  for (const Instruction& row : kInstructions) {
    if (row.name == instruction) return WritePlatformText(row.types, value, maxLen, kCall);
  }
  return Fail(ACL_ERROR_OP_NOT_FOUND, "%s: no instruction %s is known", kCall, instruction);
}
