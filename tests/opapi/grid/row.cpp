#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {

c10::optional<Tensor> In::maybe(int i) const {
  const auto* tensor = std::get_if<Tensor>(&args_.at(i));
  return tensor == nullptr ? c10::optional<Tensor>() : c10::optional<Tensor>(*tensor);
}

std::vector<int64_t> In::maybe_ints(int i) const {
  return std::holds_alternative<Null>(args_.at(i)) ? std::vector<int64_t>() : ints(i);
}

at::Scalar In::number(int i) const {
  const Arg& arg = args_.at(i);
  if (const auto* value = std::get_if<bool>(&arg)) return *value;
  if (const auto* value = std::get_if<int>(&arg)) return int64_t{*value};
  if (const auto* value = std::get_if<int64_t>(&arg)) return *value;
  if (const auto* value = std::get_if<double>(&arg)) return *value;
  return std::get<at::Scalar>(arg);
}

c10::optional<at::Scalar> In::maybe_number(int i) const {
  if (std::holds_alternative<Null>(args_.at(i))) return c10::nullopt;
  return number(i);
}

const std::vector<at::Scalar>& In::numbers(int i) const {
  return std::get<std::vector<at::Scalar>>(args_.at(i));
}

namespace {

Args With(Args inputs, const Args& extra) {
  inputs.insert(inputs.end(), extra.begin(), extra.end());
  return inputs;
}

}  // namespace

Inputs OneTensor(Args extra) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Tensor& view : source.Views(dtype)) inputs.push_back(With({view}, extra));
    return inputs;
  };
}

Inputs TwoTensors(Args extra, bool mixed) {
  return [extra, mixed](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const auto& [a, b] : source.Pairs(dtype, dtype)) {
      inputs.push_back(With({a, b}, extra));
    }
    if (!mixed) return inputs;
    for (at::ScalarType other : {at::kFloat, at::kHalf, at::kLong, at::kBool}) {
      if (other == dtype) continue;
      inputs.push_back(
          With({source.Random({5, 7}, dtype), source.Random({7}, other, 0, 3)}, extra));
      inputs.push_back(With({source.Random({3, 4}, dtype), source.Random({}, other, 0, 3)}, extra));
    }
    return inputs;
  };
}

Inputs TensorAndNumbers(Args extra) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    int next = 0;
    for (const Tensor& view : source.Views(dtype)) {
      const at::Scalar numbers[] = {at::Scalar(2), at::Scalar(1.5), at::Scalar(true)};
      inputs.push_back(With({view, numbers[next++ % 3]}, extra));
    }
    return inputs;
  };
}

Inputs All(std::vector<Inputs> makers) {
  return [makers](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Inputs& maker : makers) {
      for (Args& args : maker(source, dtype)) inputs.push_back(std::move(args));
    }
    return inputs;
  };
}

Inputs OnlyFloats(Inputs maker) {
  return [maker](Source& source, at::ScalarType dtype) {
    return at::isFloatingType(dtype) ? maker(source, dtype) : std::vector<Args>();
  };
}

}  // namespace acltape::opapi::grid
