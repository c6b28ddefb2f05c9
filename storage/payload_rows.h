// Rows of the table `payload`: how contents are cut and compressed.
#pragma once

#include <string>
#include <vector>

#include "storage/database.h"

namespace acltape::storage {

// The level of zstd for contents that are written while someone waits.
inline constexpr int kQuickCompression = 1;

class PayloadRows {
 public:
  // `table` is the table's name, with its schema where the connection has several.
  explicit PayloadRows(Database& database, const std::string& table = "payload")
      : add_(database, "INSERT OR IGNORE INTO " + table + " VALUES(?,?,?,?,?)") {}

  // Adds the content in pieces, compressed where that saves room; the caller has a transaction.
  // A content that is already there stays as it is.
  void Add(const std::string& digest, const void* data, size_t bytes, int compression_level);

 private:
  Statement add_;
  std::vector<char> packed_;
};

}  // namespace acltape::storage
