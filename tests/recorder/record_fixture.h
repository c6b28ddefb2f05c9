// A folder of its own for each test, and recordings of recorded_program into it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "recorder/collector/record.h"
#include "storage/reader.h"

namespace acltape::test {

class RecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/acltape-recorder-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override {
    // A failed test leaves its trace behind and says where.
    if (HasFailure()) {
      std::printf("traces kept in %s\n", folder_.c_str());
    } else {
      std::filesystem::remove_all(folder_);
    }
  }

  std::string Path(const std::string& name = "t.db") const { return folder_ + "/" + name; }

  collector::RecordOptions Options(std::vector<std::string> arguments) const {
    collector::RecordOptions options;
    options.output = Path();
    options.payload = wire::PayloadPolicy::kNone;
    options.command = {ACLTAPE_RECORDED_PROGRAM};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    return options;
  }
  collector::RecordSummary Record(std::vector<std::string> arguments) const {
    return collector::Record(Options(std::move(arguments)));
  }

  std::string folder_;
};

// The count that recorded_program keeps in a file.
inline int64_t CountIn(const std::string& path) {
  int64_t count = 0;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&count), sizeof(count));
  return count;
}

// The ledger row of a kind; nullptr when there is none.
inline const storage::LedgerEntry* Find(const std::vector<storage::LedgerEntry>& ledger,
                                        const std::string& kind) {
  for (const storage::LedgerEntry& entry : ledger) {
    if (entry.kind == kind) return &entry;
  }
  return nullptr;
}

// Kind and sentence of the Error that `action` throws; kind 0 when it throws none.
template <typename Action>
std::pair<int, std::string> ErrorOf(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {static_cast<int>(error.kind()), error.what()};
  }
  return {0, "no error"};
}

}  // namespace acltape::test
