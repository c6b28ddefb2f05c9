// Gives a reader seeded mutations of its sound inputs, where there is no libFuzzer.
//
//   fuzz_plan [SECONDS [SEED]]    runs so long and prints how many inputs that were
//   fuzz_plan --corpus FOLDER     writes the sound inputs, one file each, for libFuzzer
//   fuzz_plan --input FILE        reads one input
//
// The input under way is in the file fuzz-input of the working folder when a reader ends the
// process.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tests/fuzz/reader.h"

namespace acltape::fuzz {
namespace {

const std::string* under_way = nullptr;

void KeepInput() {
  if (under_way == nullptr) return;
  std::ofstream("fuzz-input", std::ios::binary) << *under_way;
  static constexpr char kSentence[] = "the input is in fuzz-input; run again with --input\n";
  static_cast<void>(!write(STDERR_FILENO, kSentence, sizeof kSentence - 1));
  under_way = nullptr;
}

void OnSignal(int number) {
  KeepInput();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// One change: a byte, a run of bytes that is doubled, cut or taken from another input, a number of
// the kind that lengths go wrong with.
void Change(std::string& input, const std::vector<std::string>& sound, std::mt19937_64& random) {
  const size_t index = input.empty() ? 0 : random() % input.size();
  const size_t run = input.empty() ? 0 : random() % (input.size() - index) % 32;
  static constexpr uint64_t kNumbers[] = {
      0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0xffffffff, uint64_t{1} << 40, INT64_MAX, UINT64_MAX};
  switch (random() % 6) {
    case 0:
      if (!input.empty()) input[index] = static_cast<char>(random());
      return;
    case 1:
      if (!input.empty()) input[index] ^= static_cast<char>(1 << random() % 8);
      return;
    case 2:
      input.erase(index, run);
      return;
    case 3:
      input.insert(index, input.substr(index, run));
      return;
    case 4: {
      const uint64_t number = kNumbers[random() % std::size(kNumbers)];
      const size_t width = size_t{1} << random() % 4;
      if (index + width <= input.size()) std::memcpy(input.data() + index, &number, width);
      return;
    }
    default: {
      const std::string& other = sound[random() % sound.size()];
      if (other.empty()) return;
      const size_t from = random() % other.size();
      input.replace(index, run, other.substr(from, random() % 64));
    }
  }
}

void Read(const std::string& input) {
  // On the heap and exactly as long, so that AddressSanitizer sees each byte beyond it.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  under_way = &input;
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  under_way = nullptr;
}

int Run(double seconds, uint64_t seed) {
  const std::vector<std::string> sound = SoundInputs();
  for (const std::string& input : sound) Read(input);
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  long inputs = 0;
  for (; std::chrono::steady_clock::now() < end; ++inputs) {
    std::string input = sound[random() % sound.size()];
    for (size_t left = 1 + random() % 6; left > 0; --left) Change(input, sound, random);
    Read(input);
  }
  std::printf("%ld inputs of seed %llu, no finding\n", inputs,
              static_cast<unsigned long long>(seed));
  return 0;
}

}  // namespace
}  // namespace acltape::fuzz

int main(int argc, char** argv) {
  using namespace acltape::fuzz;
  std::atexit(KeepInput);
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(number, OnSignal);
  const std::string word = argc > 1 ? argv[1] : "5";
  if (word == "--corpus" && argc > 2) {
    int number = 0;
    for (const std::string& input : SoundInputs()) {
      std::ofstream(std::string(argv[2]) + "/sound-" + std::to_string(number++), std::ios::binary)
          << input;
    }
    return 0;
  }
  if (word == "--input" && argc > 2) {
    std::ifstream file(argv[2], std::ios::binary);
    Read({std::istreambuf_iterator<char>(file), {}});
    return 0;
  }
  return Run(std::strtod(word.c_str(), nullptr),
             argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
