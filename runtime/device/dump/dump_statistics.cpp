#include "runtime/device/dump/dump_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "runtime/device/dump/dump_file.h"
#include "runtime/device/short_floats.h"

namespace acltape::device {
namespace {

struct TensorNumbers {
  double most = -std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();
  double sum = 0;
  double squares = 0;
  uint64_t count = 0;  // counts numbers that are neither NaN nor infinite
  uint64_t nans = 0;
  uint64_t negative_infinities = 0;
  uint64_t positive_infinities = 0;
};

template <typename T>
double AsDouble(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

struct NumberType {
  aclDataType type;
  const char* name;
  double (*read)(const char* from);
};

constexpr NumberType kNumberTypes[] = {
    {ACL_FLOAT, "float32", AsDouble<float>},    {ACL_FLOAT16, "float16", AsDouble<Half>},
    {ACL_BF16, "bfloat16", AsDouble<Bfloat16>}, {ACL_DOUBLE, "float64", AsDouble<double>},
    {ACL_INT8, "int8", AsDouble<int8_t>},       {ACL_UINT8, "uint8", AsDouble<uint8_t>},
    {ACL_INT16, "int16", AsDouble<int16_t>},    {ACL_UINT16, "uint16", AsDouble<uint16_t>},
    {ACL_INT32, "int32", AsDouble<int32_t>},    {ACL_UINT32, "uint32", AsDouble<uint32_t>},
    {ACL_INT64, "int64", AsDouble<int64_t>},    {ACL_UINT64, "uint64", AsDouble<uint64_t>},
    {ACL_BOOL, "bool", AsDouble<uint8_t>},
};

const NumberType* FindNumberType(aclDataType type) {
  for (const NumberType& row : kNumberTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

void Count(double value, TensorNumbers* numbers) {
  if (std::isnan(value)) {
    ++numbers->nans;
  } else if (std::isinf(value)) {
    ++(value < 0 ? numbers->negative_infinities : numbers->positive_infinities);
  } else {
    numbers->most = std::max(numbers->most, value);
    numbers->least = std::min(numbers->least, value);
    numbers->sum += value;
    numbers->squares += value * value;
    ++numbers->count;
  }
}

std::string NumberText(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

struct Statistic {
  const char* name;
  bool usual;
  std::string (*text)(const TensorNumbers& numbers);
};

constexpr Statistic kStatistics[] = {
    {"Max", true, [](const TensorNumbers& n) { return NumberText(n.most); }},
    {"Min", true, [](const TensorNumbers& n) { return NumberText(n.least); }},
    {"Avg", true,
     [](const TensorNumbers& n) { return NumberText(n.sum / static_cast<double>(n.count)); }},
    {"Nan", true, [](const TensorNumbers& n) { return std::to_string(n.nans); }},
    {"Negative Inf", true,
     [](const TensorNumbers& n) { return std::to_string(n.negative_infinities); }},
    {"Positive Inf", true,
     [](const TensorNumbers& n) { return std::to_string(n.positive_infinities); }},
    {"L2norm", false, [](const TensorNumbers& n) { return NumberText(std::sqrt(n.squares)); }},
};

bool IsChosen(const Statistic& row, const std::vector<std::string>& names) {
  return names.empty() ? row.usual : std::find(names.begin(), names.end(), row.name) != names.end();
}

std::string ShapeText(const SoftTensor& tensor) {
  std::string text;
  for (size_t i = 0; i < tensor.rank; ++i) {
    text += (i > 0 ? "x" : "") + std::to_string(tensor.sizes[i]);
  }
  return text;
}

}  // namespace

std::string StatisticsOf(const char* op, const std::vector<SoftTensor>& tensors,
                         const std::vector<std::string>& names) {
  std::string lines = "Op Name,Input/Output,Index,Data Size,Data Type,Format,Shape";
  for (const Statistic& row : kStatistics) {
    if (IsChosen(row, names)) lines += std::string(",") + row.name;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SoftTensor& tensor = tensors[i];
    const std::string bytes = DenseBytes(tensor);
    const NumberType* type = FindNumberType(tensor.type);
    TensorNumbers numbers;
    for (size_t byte = 0; type != nullptr && byte < bytes.size(); byte += tensor.item) {
      Count(type->read(bytes.data() + byte), &numbers);
    }
    lines += std::string("\n") + op + (tensor.is_output ? ",Output," : ",Input,") +
             std::to_string(i) + "," + std::to_string(bytes.size()) + "," +
             (type != nullptr ? type->name : "other") + "," + std::to_string(tensor.format) + "," +
             ShapeText(tensor);
    for (const Statistic& row : kStatistics) {
      if (IsChosen(row, names)) lines += "," + row.text(numbers);
    }
  }
  return lines + "\n";
}

}  // namespace acltape::device
