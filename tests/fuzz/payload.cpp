// Packed contents of tensors (storage/payload.h). The first two bytes are the length that the
// content should have.
#include "storage/payload.h"

#include "tests/fuzz/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::vector<char> content(data[0] + 256 * data[1]);
  acltape::storage::Decompress(acltape::fuzz::TextOf(data + 2, size - 2), content.data(),
                               content.size());
  return 0;
}

namespace acltape::fuzz {

std::vector<std::string> SoundInputs() {
  std::vector<std::string> inputs;
  for (const size_t length : {0x100, 0x1000, 0x7fff}) {
    const std::string content(length, 'x');
    const auto packed = storage::Compress(content.data(), length, {.level = 3});
    if (!packed) continue;
    std::string& input = inputs.emplace_back();
    input.push_back(static_cast<char>(length & 0xff));
    input.push_back(static_cast<char>(length >> 8));
    input.append(*packed);
  }
  return inputs;
}

}  // namespace acltape::fuzz
