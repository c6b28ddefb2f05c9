#include "storage/payload_rows.h"

#include <algorithm>

#include "storage/payload.h"

namespace acltape::storage {

void PayloadRows::Add(const std::string& digest, const void* data, size_t bytes,
                      int compression_level) {
  const char* at = static_cast<const char*>(data);
  size_t left = bytes;
  int64_t piece = 0;
  do {
    const size_t take = std::min(left, kPayloadPieceBytes);
    const bool smaller = Compress(at, take, compression_level, packed_);
    add_.Bind(1, std::string_view(digest));
    add_.Bind(2, piece++);
    add_.Bind(3, static_cast<int64_t>(take));
    add_.Bind(4, std::string_view(smaller ? "zstd" : "raw"));
    add_.BindBlob(5, smaller ? packed_.data() : at, smaller ? packed_.size() : take);
    add_.Run();
    at += take;
    left -= take;
  } while (left > 0);
}

}  // namespace acltape::storage
