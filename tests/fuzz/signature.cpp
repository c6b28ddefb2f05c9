// Signatures of calls (recorder/collector/argument_decoder.h). The first byte is the number of
// slots.
#include "recorder/collector/argument_decoder.h"
#include "tests/fuzz/reader.h"
#include "tests/recorder/producer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::vector<acltape::collector::DecodedArgument> arguments;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  acltape::collector::DecodeArguments({bytes + 1, size - 1}, data[0], &arguments);
  return 0;
}

namespace acltape::fuzz {

std::vector<std::string> SoundInputs() {
  test::Signature signature;
  signature.Tensor(1, {2, 3}).Int(-5).Real(0.25);
  signature.Put(wire::ArgumentTag::kNone).Put(wire::ArgumentTag::kUndefinedTensor);
  signature.Put(wire::ArgumentTag::kBool).Put(uint8_t{1});
  signature.Put(wire::ArgumentTag::kText).Put(uint32_t{2}).Put('h').Put('i');
  signature.Put(wire::ArgumentTag::kIntList).Put(uint32_t{2}).Put(int64_t{7}).Put(int64_t{8});
  signature.Put(wire::ArgumentTag::kRealList).Put(uint32_t{1}).Put(1.5);
  signature.Put(wire::ArgumentTag::kBoolList).Put(uint32_t{2}).Put(uint8_t{0}).Put(uint8_t{1});
  signature.Put(wire::ArgumentTag::kTensorList).Put(uint32_t{2}).Tensor(0, {});
  signature.Put(wire::ArgumentTag::kNone);
  signature.Put(wire::ArgumentTag::kDtype).Put(uint8_t{5});
  signature.Put(wire::ArgumentTag::kComplex).Put(1.0).Put(-2.0);
  test::Signature small;
  small.Tensor(0, {4, 5});
  return {'\2' + signature.bytes, '\1' + small.bytes, std::string(1, '\0')};
}

}  // namespace acltape::fuzz
