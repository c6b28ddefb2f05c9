#include "runtime/opapi/kernels/library_attention.h"

#include <torch/version.h>

#include <limits>

#if __has_include(<ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>)
#define ACLTAPE_LIBRARY_ATTENTION 1
#endif

namespace acltape::opapi {

using at::Tensor;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The values `steps` places further among those that the dtype has.
Tensor Stepped(Tensor values, int steps) {
  const Tensor towards = at::scalar_tensor(steps < 0 ? -kInfinity : kInfinity, values.options());
  for (int i = 0; i < std::abs(steps); ++i) values = at::nextafter(values, towards);
  return values;
}

#ifdef ACLTAPE_LIBRARY_ATTENTION

bool IsCausal(const Tensor& left_out, int64_t queries, int64_t keys) {
  if (left_out.numel() != queries * keys) return false;
  return left_out.reshape({queries, keys})
      .equal(at::ones({queries, keys}, at::TensorOptions(at::kBool)).triu(1));
}

// Groups of query heads that share one head of key and value: the library takes them as they are
// since PyTorch 2.13 at the latest.
bool TakesHeads(int64_t queries, int64_t keys) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 13)
  return keys > 0 && queries % keys == 0;
#else
  return queries == keys;
#endif
}

// The terms in the form that the library's operator takes; nothing when it has no such form.
struct LibraryTerms {
  bool causal = false;
  c10::optional<Tensor> bias;
};

std::optional<LibraryTerms> InLibraryTerms(const Tensor& query, const Tensor& key,
                                           const Tensor& value, const AttentionTerms& terms) {
  const bool plain = query.numel() > 0 && key.numel() > 0 &&
                     TakesHeads(query.size(1), key.size(1)) && value.size(3) == query.size(3);
  if (!plain || terms.sink.defined() || terms.weights.defined()) return std::nullopt;
  LibraryTerms library;
  if (terms.bias.defined()) {
    if (terms.bias_first || terms.bias.scalar_type() != query.scalar_type()) return std::nullopt;
    library.bias = terms.bias.expand({query.size(0), query.size(1), query.size(2), key.size(2)});
  }
  if (terms.left_out.defined()) {
    if (library.bias || !IsCausal(terms.left_out, query.size(2), key.size(2))) return std::nullopt;
    library.causal = true;
  }
  return library;
}

#endif

}  // namespace

std::pair<Tensor, Tensor> SplitLogSumExp(const Tensor& logsumexp, const Tensor& maximum) {
  Tensor best_maximum = logsumexp.clone();
  Tensor best_sum = at::ones_like(logsumexp);
  Tensor open = at::isfinite(logsumexp).logical_and_(at::isfinite(maximum));
  const Tensor nearest = maximum.to(logsumexp.scalar_type());
  // The library rounds its scores elsewhere than Attend, so its maximum may be a few values away.
  for (const int shift : {0, 1, -1, 2, -2, 3, -3, 4, -4}) {
    const Tensor candidate = Stepped(nearest, shift);
    const Tensor exact = (logsumexp - candidate).exp();
    for (const int nudge : {0, 1, -1, 2, -2}) {
      if (!open.any().item<bool>()) return {best_maximum, best_sum};
      const Tensor sum = Stepped(exact, nudge);
      const Tensor found = open.logical_and((candidate + sum.log()).eq(logsumexp));
      best_maximum = at::where(found, candidate, best_maximum);
      best_sum = at::where(found, sum, best_sum);
      open = open.logical_and(found.logical_not());
    }
  }
  return {best_maximum, best_sum};
}

#ifdef ACLTAPE_LIBRARY_ATTENTION

std::optional<AttentionResult> LibraryAttend(const Tensor& query, const Tensor& key,
                                             const Tensor& value, const AttentionTerms& terms) {
  const auto library = InLibraryTerms(query, key, value, terms);
  if (!library) return std::nullopt;
  auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      query, key, value, /*dropout_p=*/0, library->causal, library->bias, terms.scale);
  const Tensor highest = AttentionScores(query, key, terms).amax(-1);
  auto [maximum, sum] = SplitLogSumExp(logsumexp, highest);
  return AttentionResult{out, maximum.unsqueeze(-1), sum.unsqueeze(-1)};
}

std::optional<AttentionGradients> LibraryAttendBackward(const Tensor& gradient, const Tensor& query,
                                                        const Tensor& key, const Tensor& value,
                                                        const Tensor& out, const Tensor& maximum,
                                                        const Tensor& sum,
                                                        const AttentionTerms& terms) {
  const auto library = InLibraryTerms(query, key, value, terms);
  if (!library || gradient.scalar_type() != query.scalar_type()) return std::nullopt;
  const Tensor logsumexp = (maximum + sum.log()).squeeze(-1);
  auto [of_query, of_key, of_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      gradient, query, key, value, out, logsumexp, /*dropout_p=*/0, library->causal, library->bias,
      terms.scale);
  AttentionGradients result;
  result.query = of_query;
  result.key = of_key;
  result.value = of_value;
  return result;
}

#else

std::optional<AttentionResult> LibraryAttend(const Tensor&, const Tensor&, const Tensor&,
                                             const AttentionTerms&) {
  return std::nullopt;
}

std::optional<AttentionGradients> LibraryAttendBackward(const Tensor&, const Tensor&, const Tensor&,
                                                        const Tensor&, const Tensor&, const Tensor&,
                                                        const Tensor&, const AttentionTerms&) {
  return std::nullopt;
}

#endif

}  // namespace acltape::opapi
