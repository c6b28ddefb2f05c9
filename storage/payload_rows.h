// Rows of the table `payload`: how contents are cut and compressed.
#pragma once

#include <string>

#include "storage/payload.h"
#include "storage/tables.h"

namespace acltape::storage {

class PayloadRows {
 public:
  // `schema` is "main." or the like where the connection has several.
  explicit PayloadRows(Database& database, std::string_view schema = "")
      : add_(database, "INSERT OR IGNORE INTO", "", schema) {}

  // Adds the content in pieces, compressed where that saves room; the caller has a transaction.
  // A content that is already there stays as it is where the table has its index (IndexPayloads);
  // without it the caller adds none twice.
  void Add(const std::string& digest, const void* data, size_t bytes,
           const Compression& compression);

 private:
  // Contents of a program are alike: after so many that compression did not make smaller, a sample
  // of the next decides.
  static constexpr int kDoubtAfter = 4;

  RowInsert<tables::kPayload> add_;
  int in_vain_ = 0;  // pieces in a row that compression did not make smaller
};

}  // namespace acltape::storage
