// The places of the elements of a tensor in the format FRACTAL_NZ. The matrix of the last two dims
// is cut into blocks of 16 rows and 32 bytes of columns, and padded to whole blocks. The blocks of
// one column of blocks follow each other: the storage is [..., column blocks, row blocks, 16,
// columns of a block].
//
// Plain C++ without a runtime library, because the recorder's agent includes it too.
#pragma once

#include <cstdint>

namespace acltape::acl {

// A block has so many rows, and so many bytes in a row. Two integers of 4 bits share a byte.
inline constexpr int64_t kBlockRows = 16;
inline constexpr int64_t kBlockBytes = 32;
inline constexpr int64_t kBlockColumnsOfFourBits = 2 * kBlockBytes;

// Columns of a block whose elements have so many bytes; 0 where no block holds them.
inline int64_t BlockColumnsOf(uint32_t element_bytes) {
  return element_bytes == 0 || element_bytes > kBlockBytes ? 0 : kBlockBytes / element_bytes;
}

struct BlockedLayout {
  static constexpr uint32_t kMaxRank = 10;

  int64_t batch = 1;              // product of the dims before the matrix
  int64_t rows = 0, columns = 0;  // sizes of the matrix that lies in the blocks
  int64_t row_blocks = 0, column_blocks = 0;
  int64_t block_rows = 0, block_columns = 0;
  // The tensor's view is the transposed matrix: it has as many rows as the matrix has columns.
  bool transposed = false;
  // The tensor's view has the dims of the storage itself. How much of the last blocks is padding is
  // then not said; `rows` and `columns` count it.
  bool of_storage = false;
  int64_t dims[kMaxRank] = {};  // sizes of the storage
  uint32_t rank = 0;

  int64_t elements() const {
    return batch * column_blocks * row_blocks * block_rows * block_columns;
  }
};

inline int64_t BlocksFor(int64_t size, int64_t block) { return (size + block - 1) / block; }

// True when the last four of `storage` are the blocks of a matrix of rows x columns.
inline bool AreBlocksOf(const int64_t* storage, uint32_t storage_rank, uint32_t rank, int64_t rows,
                        int64_t columns) {
  if (storage_rank != rank + 2) return false;
  const int64_t* last = storage + storage_rank - 4;
  return last[2] > 0 && last[3] > 0 && last[0] == BlocksFor(columns, last[3]) &&
         last[1] == BlocksFor(rows, last[2]);
}

// The layout of a tensor in FRACTAL_NZ, from how the program described it. False when the view has
// less than two dims, is empty, or is neither a row-major matrix nor the transposed view of one.
// Where the storage dims are no blocks, the blocks have 16 rows and `block_columns` columns.
inline bool BlockedLayoutOf(const int64_t* sizes, const int64_t* strides, uint32_t rank,
                            const int64_t* storage, uint32_t storage_rank, int64_t block_columns,
                            BlockedLayout* layout) {
  if (rank < 2 || rank + 2 > BlockedLayout::kMaxRank || block_columns == 0) return false;
  for (uint32_t i = 0; i < rank; ++i) {
    if (sizes[i] <= 0) return false;
  }
  *layout = BlockedLayout{};
  bool same = storage_rank == rank && rank >= 4 && sizes[rank - 2] == kBlockRows &&
              (sizes[rank - 1] == kBlockRows || sizes[rank - 1] == block_columns);
  for (uint32_t i = 0; same && i < rank; ++i) same = sizes[i] == storage[i];
  if (same) {
    layout->of_storage = true;
    layout->rank = rank;
    for (uint32_t i = 0; i < rank; ++i) layout->dims[i] = sizes[i];
    for (uint32_t i = 0; i + 4 < rank; ++i) layout->batch *= sizes[i];
    layout->column_blocks = sizes[rank - 4];
    layout->row_blocks = sizes[rank - 3];
    layout->block_rows = sizes[rank - 2];
    layout->block_columns = sizes[rank - 1];
    layout->rows = layout->row_blocks * layout->block_rows;
    layout->columns = layout->column_blocks * layout->block_columns;
    return true;
  }
  const int64_t height = sizes[rank - 2], width = sizes[rank - 1];
  const int64_t down = strides[rank - 2], right = strides[rank - 1];
  const bool row_major = (right == 1 || width == 1) && (down == width || height == 1);
  const bool turned = (down == 1 || height == 1) && (right == height || width == 1);
  if (!row_major && !turned) return false;
  int64_t dense = height * width;
  for (uint32_t i = rank - 2; i-- > 0;) {
    if (sizes[i] > 1 && strides[i] != dense) return false;
    dense *= sizes[i];
  }
  const bool as_is = AreBlocksOf(storage, storage_rank, rank, height, width);
  const bool as_turned = AreBlocksOf(storage, storage_rank, rank, width, height);
  layout->transposed = row_major && turned ? !as_is && as_turned : turned;
  layout->rows = layout->transposed ? width : height;
  layout->columns = layout->transposed ? height : width;
  const bool told = layout->transposed ? as_turned : as_is;
  layout->block_rows = told ? storage[storage_rank - 2] : kBlockRows;
  layout->block_columns = told ? storage[storage_rank - 1] : block_columns;
  layout->row_blocks = BlocksFor(layout->rows, layout->block_rows);
  layout->column_blocks = BlocksFor(layout->columns, layout->block_columns);
  layout->rank = rank + 2;
  for (uint32_t i = 0; i + 2 < rank; ++i) {
    layout->batch *= sizes[i];
    layout->dims[i] = sizes[i];
  }
  layout->dims[rank - 2] = layout->column_blocks;
  layout->dims[rank - 1] = layout->row_blocks;
  layout->dims[rank] = layout->block_rows;
  layout->dims[rank + 1] = layout->block_columns;
  return true;
}

}  // namespace acltape::acl
