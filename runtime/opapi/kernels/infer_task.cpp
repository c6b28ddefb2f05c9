#include "runtime/opapi/kernels/infer_task.h"

#include <limits>

namespace acltape::opapi {

using at::Tensor;

namespace {

// The logarithm of the sum of a query that is left with no score, as a device writes it.
constexpr double kNoScores = std::numeric_limits<double>::infinity();

// Where `count` rows begin that `padding` rows follow up to the row `whole`.
int64_t BeginBefore(const Tensor& padding, int64_t whole, int64_t count) {
  return whole - std::max<int64_t>(padding.item<int64_t>(), 0) - count;
}

// The part of a mask or bias for these rows and columns; a dim of 1 serves all.
Tensor WindowOf(Tensor tensor, const SequencePlace& place, int64_t row, int64_t column,
                int64_t columns) {
  if (!tensor.defined()) return tensor;
  if (tensor.size(0) != 1) tensor = tensor.narrow(0, place.batch, 1);
  if (tensor.size(2) != 1) tensor = tensor.narrow(2, row, place.queries);
  if (tensor.size(3) != 1) tensor = tensor.narrow(3, column, columns);
  return tensor;
}

}  // namespace

void InferTask::Run() const {
  if (partial) Tensor(given).zero_();
  for (size_t i = 0; i < places.size(); ++i) RunSequence(i);
}

void InferTask::RunSequence(size_t index) const {
  SequencePlace place = places[index];
  // Begin of the sequence in the mask and the bias.
  int64_t row = 0, column = 0;
  if (query_padding.defined()) {
    row = place.first_query = BeginBefore(query_padding, query.size(2), place.queries);
    TORCH_CHECK(row >= 0, op, ": sequence ", index, " of ", place.queries,
                " queries begins before its batch of ", query.size(2), " rows with a padding of ",
                query_padding.item<int64_t>());
  }
  if (key_padding.defined()) {
    column = place.first_key = BeginBefore(key_padding, key_rows, place.keys);
    TORCH_CHECK(column >= 0 || query.size(2) == 1, op, ": sequence ", index, " of ", place.keys,
                " keys begins before its batch of ", key_rows, " rows with a padding of ",
                key_padding.item<int64_t>());
    if (column < 0) {
      place.Queries(out).zero_();
      if (lse.defined()) place.Queries(lse).fill_(kNoScores);
      return;
    }
  }
  KeyPlace keys{.batch = place.batch, .first = place.first_key, .count = place.keys};
  if (table.defined()) {
    const int64_t used = (place.keys + block_rows - 1) / block_rows;
    keys.blocks = table[static_cast<int64_t>(index)].narrow(0, 0, used).to(at::kLong);
  }
  const int64_t columns = prefix + place.keys;
  AttentionTerms terms;
  terms.scale = scale;
  terms.bias = WindowOf(bias, place, row, column, columns);
  terms.sink = sink;
  ScoreMask own = mask;
  own.mask = WindowOf(mask.mask, place, row, column, columns);
  terms.left_out = own.LeftOut(place.queries, columns);
  Tensor own_query = place.Queries(query);
  if (query_rope.defined()) own_query = at::cat({own_query, place.Queries(query_rope)}, -1);
  const AttentionResult result = Attend(own_query, key.at(keys), value.at(keys), terms);
  place.Queries(out).copy_(out_scale.Apply(result.out));
  if (lse.defined()) {
    const Tensor logarithm = result.sum.log() + result.maximum;
    place.Queries(lse).copy_(logarithm.masked_fill(result.sum.eq(0), kNoScores));
  }
}

}  // namespace acltape::opapi
