// Functions that a file of this folder defines: one reader that takes bytes, and sound inputs of
// it.
//
// libFuzzer calls LLVMFuzzerTestOneInput with inputs that it makes by what they reach. driver.cpp
// calls it with seeded mutations of the sound inputs. A reader passes when it returns: it may
// refuse with acltape::Error, and the function catches that. Any other exception is a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace acltape::fuzz {

// Inputs that the reader takes as they are; mutations begin with these.
std::vector<std::string> SoundInputs();

inline std::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace acltape::fuzz
