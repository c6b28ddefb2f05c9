// npu-smi for the soft device: says which devices there are, in the forms in which programs and
// scripts ask the vendor's tool and read its answers. It reads the profile and makes no call of
// ACL, so that it is no part of a recording. What a soft device does not have (temperatures, power,
// serial numbers, processes of others) is "NA" or left out.
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/profile.h"

namespace acltape::device {
namespace {

constexpr std::string_view kProduct = "Ascend";

// Ascend910B1 is the chip 910B1 of the type Ascend.
std::string ChipName() {
  const std::string& soc = GetProfile().soc_name;
  return soc.starts_with(kProduct) ? soc.substr(kProduct.size()) : soc;
}

std::string Release() {
  const Version& toolkit = GetProfile().toolkit;
  return std::string(toolkit.major) + "." + toolkit.minor + "." + toolkit.release;
}

uint64_t MemoryMegabytes() { return GetProfile().memory >> 20; }

void PrintFact(const char* name, const std::string& value) {
  std::printf("\t%-31s: %s\n", name, value.c_str());
}

void PrintRule(const char* corners) { std::printf("%s\n", corners); }

void PrintTable(uint32_t /*device*/) {
  constexpr char kFull[] =
      "+-------------------------------------------------------------------------------------------"
      "-----+";
  constexpr char kColumns[] =
      "+---------------------------+---------------+-----------------------------------------------"
      "-----+";
  constexpr char kHeavy[] =
      "+===========================+===============+==============================================="
      "=====+";
  PrintRule(kFull);
  std::printf("| npu-smi %-22s Version: %-54s |\n", Release().c_str(), "soft device of acltape");
  PrintRule(kColumns);
  std::printf("| %-5s %-19s | %-13s | %-12s %-12s %-24s |\n", "NPU", "Name", "Health", "Power(W)",
              "Temp(C)", "Hugepages-Usage(page)");
  std::printf("| %-5s %-19s | %-13s | %-12s %-12s %-24s |\n", "Chip", "", "Bus-Id", "AICore(%)",
              "Memory-Usage", "HBM-Usage(MB)");
  PrintRule(kHeavy);
  for (uint32_t device = 0; device < GetProfile().devices; ++device) {
    std::printf("| %-5u %-19s | %-13s | %-12s %-12s %-24s |\n", device, ChipName().c_str(), "OK",
                "NA", "NA", "0    / 0");
    const std::string memory = "0    / " + std::to_string(MemoryMegabytes());
    std::printf("| %-5u %-19s | %-13s | %-12s %-12s %-24s |\n", 0U, "", "NA", "0", "0    / 0",
                memory.c_str());
    PrintRule(kHeavy);
  }
  std::printf("| %-25s | %-13s | %-30s | %-17s |\n", "NPU     Chip", "Process id", "Process name",
              "Process memory");
  PrintRule(kHeavy);
  for (uint32_t device = 0; device < GetProfile().devices; ++device) {
    const std::string none = "No running processes found in NPU " + std::to_string(device);
    std::printf("| %-94s |\n", none.c_str());
    PrintRule(kFull);
  }
}

void PrintList(uint32_t /*device*/) {
  PrintFact("Total Count", std::to_string(GetProfile().devices));
  for (uint32_t device = 0; device < GetProfile().devices; ++device) {
    std::printf("\n");
    PrintFact("NPU ID", std::to_string(device));
    PrintFact("Chip Count", "1");
  }
}

void PrintMapping(uint32_t /*device*/) {
  std::printf("\t%-30s %-30s %-30s %-30s\n", "NPU ID", "Chip ID", "Chip Logic ID", "Chip Name");
  for (uint32_t device = 0; device < GetProfile().devices; ++device) {
    std::printf("\t%-30u %-30u %-30u %s %s\n", device, 0U, device, kProduct.data(),
                ChipName().c_str());
  }
}

void PrintBoard(uint32_t device) {
  PrintFact("NPU ID", std::to_string(device));
  PrintFact("Product Name", "soft device of acltape");
  PrintFact("Software Version", Release());
  PrintFact("Compatibility", "OK");
  PrintFact("Chip Count", "1");
}

void PrintChip(uint32_t device) {
  PrintFact("NPU ID", std::to_string(device));
  PrintFact("Chip ID", "0");
  PrintFact("Chip Type", std::string(kProduct));
  PrintFact("Chip Name", ChipName());
  PrintFact("Chip Version", "NA");
}

void PrintHealth(uint32_t /*device*/) { PrintFact("Health", "OK"); }

void PrintMemory(uint32_t device) {
  PrintFact("NPU ID", std::to_string(device));
  PrintFact("Chip Count", "1");
  std::printf("\n");
  PrintFact("HBM Capacity(MB)", std::to_string(MemoryMegabytes()));
  PrintFact("Chip ID", "0");
}

struct Question {
  std::string_view words;  // after "info", the numbers of -i and -c left out
  bool of_chip;            // asked with -c
  bool names_device;       // -i is needed
  void (*print)(uint32_t device);
};

constexpr Question kQuestions[] = {
    {"", false, false, PrintTable},         {"-l", false, false, PrintList},
    {"-m", false, false, PrintMapping},     {"-t board", false, true, PrintBoard},
    {"-t board", true, true, PrintChip},    {"-t health", false, true, PrintHealth},
    {"-t health", true, true, PrintHealth}, {"-t memory", false, true, PrintMemory},
};

int Refuse(const std::string& why) {
  std::fprintf(stderr,
               "npu-smi of acltape's soft device: %s; it answers info, info -l, info -m, info -t "
               "board, health or memory -i NPU, and -t board -i NPU -c CHIP\n",
               why.c_str());
  return 1;
}

bool ReadNumber(std::string_view text, uint32_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

int Answer(const std::vector<std::string_view>& words) {
  if (words.size() == 1 && (words[0] == "-v" || words[0] == "--version")) {
    std::printf("npu-smi version: %s\n", Release().c_str());
    return 0;
  }
  if (words.empty() || words[0] != "info") return Refuse("that is not known");
  std::string asked;
  uint32_t device = 0;
  uint32_t chip = 0;
  bool has_device = false;
  bool of_chip = false;
  for (size_t i = 1; i < words.size(); ++i) {
    const bool is_device = words[i] == "-i";
    if (is_device || words[i] == "-c") {
      if (i + 1 == words.size() || !ReadNumber(words[i + 1], is_device ? &device : &chip)) {
        return Refuse("-i and -c take a number");
      }
      (is_device ? has_device : of_chip) = true;
      ++i;
      continue;
    }
    asked += (asked.empty() ? "" : " ") + std::string(words[i]);
  }
  if (device >= GetProfile().devices || chip != 0) {
    return Refuse("there is no such NPU or chip, the devices are " +
                  std::to_string(GetProfile().devices) + " with one chip each");
  }
  for (const Question& question : kQuestions) {
    if (question.words != asked || question.of_chip != of_chip) continue;
    if (question.names_device != has_device) break;
    question.print(device);
    return 0;
  }
  return Refuse("that is not known");
}

}  // namespace
}  // namespace acltape::device

int main(int argc, char** argv) {
  return acltape::device::Answer(std::vector<std::string_view>(argv + 1, argv + argc));
}
