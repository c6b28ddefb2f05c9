// The numbers of HcclDataType and HcclReduceOp with their names, the bytes of an element, and how a
// trace keeps a batch of messages. The soft device, the recorder, replays and the views of a trace
// take them from here.
#pragma once

#include <cstdint>

namespace acltape::meaning {

struct HcclDtype {
  int number;
  const char* name;
  uint32_t bytes;
};

inline constexpr HcclDtype kHcclDtypes[] = {
    {0, "int8", 1},     {1, "int16", 2},  {2, "int32", 4},    {3, "fp16", 2},
    {4, "fp32", 4},     {5, "int64", 8},  {6, "uint64", 8},   {7, "uint8", 1},
    {8, "uint16", 2},   {9, "uint32", 4}, {10, "fp64", 8},    {11, "bfp16", 2},
    {12, "int128", 16}, {14, "hif8", 1},  {15, "fp8e4m3", 1}, {16, "fp8e5m2", 1},
    {17, "fp8e8m0", 1},
};

// The place in the array is the number.
inline constexpr const char* kHcclReductions[] = {"sum", "prod", "max", "min"};

// A trace keeps these numbers of each part of HcclBatchSendRecv, in this order: 0 if it sends and 1
// if it receives, the number of elements, their dtype, and the other rank.
inline constexpr uint32_t kItemNumbers = 4;

// The row of a dtype; null: there is none.
constexpr const HcclDtype* FindHcclDtype(int number) {
  for (const HcclDtype& row : kHcclDtypes) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

}  // namespace acltape::meaning
