#include "storage/payload_rows.h"

#include <algorithm>

#include "storage/payload.h"

namespace acltape::storage {

void PayloadRows::Add(const std::string& digest, const void* data, size_t bytes,
                      int compression_level) {
  const char* piece_data = static_cast<const char*>(data);
  size_t left = bytes;
  int64_t piece = 0;
  do {
    const size_t take = std::min(left, kPayloadPieceBytes);
    const bool smaller = Compress(piece_data, take, compression_level, packed_);
    add_.Set<"digest">(digest);
    add_.Set<"piece">(piece++);
    add_.Set<"bytes">(static_cast<int64_t>(take));
    add_.Set<"codec">(std::string_view(smaller ? "zstd" : "raw"));
    add_.SetBlob<"data">(smaller ? packed_.data() : piece_data, smaller ? packed_.size() : take);
    add_.Run();
    piece_data += take;
    left -= take;
  } while (left > 0);
}

}  // namespace acltape::storage
