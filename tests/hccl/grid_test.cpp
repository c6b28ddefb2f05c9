// Every collective over dtypes, operations, sizes, 2, 4 and 8 ranks, in place or not, eagerly and
// captured, held against sums that the test computes (HCL-04, HCL-05, HCL-07). The numbers are
// small integers, so that every dtype has the exact result.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/hccl/ranks.h"

namespace acltape::hccl {
namespace {

enum Function {
  kAllReduce,
  kReduce,
  kReduceScatter,
  kReduceScatterV,
  kBroadcast,
  kScatter,
  kAllGather,
  kAllGatherV,
  kAlltoAll,
  kAlltoAllV,
  kAlltoAllVC,
  kFunctions
};
constexpr const char* kNames[kFunctions] = {
    "AllReduce", "Reduce",     "ReduceScatter", "ReduceScatterV", "Broadcast", "Scatter",
    "AllGather", "AllGatherV", "AlltoAll",      "AlltoAllV",      "AlltoAllVC"};
bool Reduces(Function function) { return function <= kReduceScatterV; }
bool CanBeInPlace(Function function) { return function < kAlltoAll && function != kScatter; }

struct Dtype {
  HcclDataType dtype;
  const char* name;
  size_t bytes;
  bool is_signed;
  void (*store)(double value, char* to);
  double (*load)(const char* from);
};

template <typename T>
void Store(double value, char* to) {
  const T converted = static_cast<T>(value);
  std::memcpy(to, &converted, sizeof converted);
}
template <typename T>
double Load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}
void StoreHalf(double value, char* to) {
  const aclFloat16 bits = aclFloatToFloat16(static_cast<float>(value));
  std::memcpy(to, &bits, sizeof bits);
}
double LoadHalf(const char* from) {
  aclFloat16 bits;
  std::memcpy(&bits, from, sizeof bits);
  return static_cast<double>(aclFloat16ToFloat(bits));
}
// The upper half of a float: exact for small integers.
void StoreBfloat16(double value, char* to) {
  const auto wide = static_cast<float>(value);
  std::memcpy(to, reinterpret_cast<const char*>(&wide) + 2, 2);
}
double LoadBfloat16(const char* from) {
  float wide = 0;
  std::memcpy(reinterpret_cast<char*>(&wide) + 2, from, 2);
  return static_cast<double>(wide);
}

const Dtype kDtypes[] = {
    {HCCL_DATA_TYPE_INT8, "int8", 1, true, Store<int8_t>, Load<int8_t>},
    {HCCL_DATA_TYPE_INT16, "int16", 2, true, Store<int16_t>, Load<int16_t>},
    {HCCL_DATA_TYPE_INT32, "int32", 4, true, Store<int32_t>, Load<int32_t>},
    {HCCL_DATA_TYPE_INT64, "int64", 8, true, Store<int64_t>, Load<int64_t>},
    {HCCL_DATA_TYPE_UINT8, "uint8", 1, false, Store<uint8_t>, Load<uint8_t>},
    {HCCL_DATA_TYPE_UINT16, "uint16", 2, false, Store<uint16_t>, Load<uint16_t>},
    {HCCL_DATA_TYPE_UINT32, "uint32", 4, false, Store<uint32_t>, Load<uint32_t>},
    {HCCL_DATA_TYPE_UINT64, "uint64", 8, false, Store<uint64_t>, Load<uint64_t>},
    {HCCL_DATA_TYPE_FP16, "fp16", 2, true, StoreHalf, LoadHalf},
    {HCCL_DATA_TYPE_BFP16, "bfp16", 2, true, StoreBfloat16, LoadBfloat16},
    {HCCL_DATA_TYPE_FP32, "fp32", 4, true, Store<float>, Load<float>},
    {HCCL_DATA_TYPE_FP64, "fp64", 8, true, Store<double>, Load<double>},
};

struct Case {
  Function function;
  HcclReduceOp op;
  const Dtype* dtype;
  uint64_t count;
  uint32_t ranks;
  bool in_place;
  bool captured;

  std::string Text() const {
    static constexpr const char* kOps[] = {"sum", "prod", "max", "min"};
    return std::string(kNames[function]) + " " + dtype->name + (Reduces(function) ? " " : "") +
           (Reduces(function) ? kOps[op] : "") + " count " + std::to_string(count) + " of " +
           std::to_string(ranks) + " ranks" + (in_place ? " in place" : "") +
           (captured ? " captured" : "");
  }
  // The root where there is one: not always the first rank.
  uint32_t Root() const { return static_cast<uint32_t>(count % ranks); }

  // Element i of what rank r gives.
  double Given(uint32_t r, uint64_t i) const {
    if (Reduces(function) && op == HCCL_REDUCE_PROD) return (r + i) % 3 == 0 ? 2 : 1;
    const auto number = static_cast<double>((r * 7 + i * 3 + i / 11) % 5);
    return dtype->is_signed ? number - 2 : number;
  }
  double Reduced(uint64_t i) const {
    double result = Given(0, i);
    for (uint32_t r = 1; r < ranks; ++r) {
      const double next = Given(r, i);
      if (op == HCCL_REDUCE_SUM) result += next;
      if (op == HCCL_REDUCE_PROD) result *= next;
      if (op == HCCL_REDUCE_MAX) result = std::max(result, next);
      if (op == HCCL_REDUCE_MIN) result = std::min(result, next);
    }
    return result;
  }
  // Uneven counts.
  uint64_t CountOf(uint32_t r) const { return count + r; }
  uint64_t Between(uint32_t from, uint32_t to) const {
    return (count + from + 2 * to) % (count + 3);
  }
  uint64_t PlaceOf(uint32_t r) const {
    uint64_t place = 0;
    for (uint32_t i = 0; i < r; ++i) place += CountOf(i);
    return place;
  }
};

// A rank's values at first in `send`, and at last in `recv`.
std::vector<double> GivenBy(const Case& c, uint32_t rank) {
  uint64_t elements = c.count;
  switch (c.function) {
    case kReduceScatter:
    case kAlltoAll:
    case kScatter:
      elements = c.count * c.ranks;
      break;
    case kReduceScatterV:
      elements = c.PlaceOf(c.ranks);
      break;
    case kAllGatherV:
      elements = c.CountOf(rank);
      break;
    case kAlltoAllV:
    case kAlltoAllVC:
      elements = 0;
      for (uint32_t to = 0; to < c.ranks; ++to) elements += c.Between(rank, to);
      break;
    default:
      break;
  }
  std::vector<double> values;
  for (uint64_t i = 0; i < elements; ++i) values.push_back(c.Given(rank, i));
  return values;
}

std::vector<double> Expected(const Case& c, uint32_t rank) {
  std::vector<double> values;
  const auto append = [&](uint32_t from, uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) values.push_back(c.Given(from, first + i));
  };
  switch (c.function) {
    case kReduce:
      if (rank != c.Root()) break;
      [[fallthrough]];
    case kAllReduce:
      for (uint64_t i = 0; i < c.count; ++i) values.push_back(c.Reduced(i));
      break;
    case kReduceScatter:
      for (uint64_t i = 0; i < c.count; ++i) values.push_back(c.Reduced(rank * c.count + i));
      break;
    case kReduceScatterV:
      for (uint64_t i = 0; i < c.CountOf(rank); ++i) {
        values.push_back(c.Reduced(c.PlaceOf(rank) + i));
      }
      break;
    case kBroadcast:
      append(c.Root(), 0, c.count);
      break;
    case kScatter:
      append(c.Root(), rank * c.count, c.count);
      break;
    case kAllGather:
      for (uint32_t from = 0; from < c.ranks; ++from) append(from, 0, c.count);
      break;
    case kAllGatherV:
      for (uint32_t from = 0; from < c.ranks; ++from) append(from, 0, c.CountOf(from));
      break;
    case kAlltoAll:
      for (uint32_t from = 0; from < c.ranks; ++from) append(from, rank * c.count, c.count);
      break;
    default:
      for (uint32_t from = 0; from < c.ranks; ++from) {
        uint64_t place = 0;
        for (uint32_t to = 0; to < rank; ++to) place += c.Between(from, to);
        append(from, place, c.Between(from, rank));
      }
      break;
  }
  return values;
}

HcclResult Call(const Case& c, const Rank& rank, void* send, void* recv) {
  const HcclDataType dtype = c.dtype->dtype;
  std::vector<uint64_t> counts, places, back, back_places, matrix;
  uint64_t sent = 0, received = 0;
  for (uint32_t other = 0; other < c.ranks; ++other) {
    counts.push_back(c.CountOf(other));
    places.push_back(c.PlaceOf(other));
  }
  if (c.function == kAlltoAllV) {
    for (uint32_t other = 0; other < c.ranks; ++other) {
      counts[other] = c.Between(rank.rank, other);
      places[other] = sent;
      sent += counts[other];
      back.push_back(c.Between(other, rank.rank));
      back_places.push_back(received);
      received += back.back();
    }
  }
  for (uint32_t from = 0; from < c.ranks; ++from) {
    for (uint32_t to = 0; to < c.ranks; ++to) matrix.push_back(c.Between(from, to));
  }
  switch (c.function) {
    case kAllReduce:
      return HcclAllReduce(send, recv, c.count, dtype, c.op, rank.comm, rank.stream);
    case kReduce:
      return HcclReduce(send, recv, c.count, dtype, c.op, c.Root(), rank.comm, rank.stream);
    case kReduceScatter:
      return HcclReduceScatter(send, recv, c.count, dtype, c.op, rank.comm, rank.stream);
    case kReduceScatterV:
      return HcclReduceScatterV(send, counts.data(), places.data(), recv, c.CountOf(rank.rank),
                                dtype, c.op, rank.comm, rank.stream);
    case kBroadcast:
      return HcclBroadcast(recv, c.count, dtype, c.Root(), rank.comm, rank.stream);
    case kScatter:
      return HcclScatter(send, recv, c.count, dtype, c.Root(), rank.comm, rank.stream);
    case kAllGather:
      return HcclAllGather(send, recv, c.count, dtype, rank.comm, rank.stream);
    case kAllGatherV:
      return HcclAllGatherV(send, c.CountOf(rank.rank), recv, counts.data(), places.data(), dtype,
                            rank.comm, rank.stream);
    case kAlltoAll:
      return HcclAlltoAll(send, c.count, dtype, recv, c.count, dtype, rank.comm, rank.stream);
    case kAlltoAllV:
      return HcclAlltoAllV(send, counts.data(), places.data(), dtype, recv, back.data(),
                           back_places.data(), dtype, rank.comm, rank.stream);
    default:
      return HcclAlltoAllVC(send, matrix.data(), dtype, recv, dtype, rank.comm, rank.stream);
  }
}

// Memory of a rank for all cases.
struct Memory {
  char* send = nullptr;
  char* recv = nullptr;
};

void RunCase(const Case& c, const Rank& rank, const Memory& memory) {
  const std::vector<double> given = GivenBy(c, rank.rank);
  const std::vector<double> expected = Expected(c, rank.rank);
  const size_t bytes = c.dtype->bytes;
  char* send = memory.send;
  char* recv = memory.recv;
  if (c.function == kBroadcast) send = recv;
  if (c.in_place && c.function == kAllGather) send = recv + rank.rank * c.count * bytes;
  if (c.in_place && c.function == kAllGatherV) send = recv + c.PlaceOf(rank.rank) * bytes;
  if (c.in_place && c.function <= kReduce) send = recv;
  if (c.in_place && c.function == kReduceScatter) recv = send + rank.rank * c.count * bytes;
  if (c.in_place && c.function == kReduceScatterV) recv = send + c.PlaceOf(rank.rank) * bytes;
  std::vector<char> host(given.size() * bytes);
  for (size_t i = 0; i < given.size(); ++i) c.dtype->store(given[i], host.data() + i * bytes);
  if (!host.empty()) std::memcpy(send, host.data(), host.size());  // soft memory is host memory

  if (c.captured) {
    aclmdlRI model = nullptr;
    ASSERT_OK(aclmdlRICaptureBegin(rank.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    ASSERT_EQ(Call(c, rank, send, recv), HCCL_SUCCESS) << c.Text() << aclGetRecentErrMsg();
    ASSERT_OK(aclmdlRICaptureEnd(rank.stream, &model));
    ASSERT_OK(aclmdlRIExecuteAsync(model, rank.stream));
    ASSERT_OK(aclrtSynchronizeStream(rank.stream)) << c.Text();
    ASSERT_OK(aclmdlRIDestroy(model));
  } else {
    ASSERT_EQ(Call(c, rank, send, recv), HCCL_SUCCESS) << c.Text() << aclGetRecentErrMsg();
    ASSERT_OK(aclrtSynchronizeStream(rank.stream)) << c.Text();
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const double seen = c.dtype->load(recv + i * bytes);
    ASSERT_EQ(seen, expected[i]) << c.Text() << ", rank " << rank.rank << ", element " << i;
  }
}

// A sanitizer takes ten times as long, and looks for other things than values.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// `large`: of few dtypes and operations, because each case takes its time.
std::vector<Case> Cases(uint32_t ranks, const std::vector<uint64_t>& counts, bool large) {
  std::vector<Case> cases;
  for (int function = 0; function < kFunctions; ++function) {
    const auto kind = static_cast<Function>(function);
    for (const Dtype& dtype : kDtypes) {
      if (kSanitized && dtype.bytes != 2) continue;
      if (large && !dtype.is_signed) continue;
      if (large && dtype.bytes != 2 && dtype.bytes != 4) continue;
      if (large && kSanitized && dtype.dtype != HCCL_DATA_TYPE_BFP16) continue;
      const int ops = large ? 1 : HCCL_REDUCE_RESERVED;
      for (int op = 0; op < (Reduces(kind) ? ops : 1); ++op) {
        for (uint64_t count : counts) {
          for (int in_place = 0; in_place < (CanBeInPlace(kind) ? 2 : 1); ++in_place) {
            for (int captured = 0; captured < (large && kSanitized ? 1 : 2); ++captured) {
              cases.push_back({kind, static_cast<HcclReduceOp>(op), &dtype, count, ranks,
                               in_place != 0, captured != 0});
            }
          }
        }
      }
    }
  }
  return cases;
}

void RunGrid(uint32_t ranks, std::vector<uint64_t> counts, bool large = false) {
  ShowDevices("8");
  if (kSanitized && !large) counts = {7, 5001};
  const std::vector<Case> cases = Cases(ranks, counts, large);
  OnRanks(ranks, [&](Rank& rank) {
    const uint64_t most = (*std::max_element(counts.begin(), counts.end()) + ranks) * ranks * 8;
    Memory memory;
    ASSERT_OK(aclrtMalloc(reinterpret_cast<void**>(&memory.send), most, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclrtMalloc(reinterpret_cast<void**>(&memory.recv), most, ACL_MEM_MALLOC_HUGE_FIRST));
    for (const Case& c : cases) {
      if (testing::Test::HasFatalFailure()) return;
      RunCase(c, rank, memory);
    }
  });
  std::printf("%zu cases with %u ranks\n", cases.size(), ranks);
}

TEST(HcclGrid, HCL_04_TwoRanksGiveTheExactResults) { RunGrid(2, {0, 1, 7, 1000, 70001}); }
TEST(HcclGrid, HCL_04_FourRanksGiveTheExactResults) { RunGrid(4, {0, 1, 7, 1000, 40001}); }
TEST(HcclGrid, HCL_04_EightRanksGiveTheExactResults) { RunGrid(8, {0, 1, 7, 9001}); }
// Ranks read such data where it lies.
TEST(HcclGrid, HCL_04_LargeDataGivesTheExactResults) {
  RunGrid(2, {530001}, /*large=*/true);
  RunGrid(3, {530001}, /*large=*/true);
}

}  // namespace
}  // namespace acltape::hccl
