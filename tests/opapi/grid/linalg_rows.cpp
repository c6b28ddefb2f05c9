// Decompositions of matrices and solutions, against textbook algorithms in double.
#include <cmath>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

const Tolerance kEliminated = {64, 2e-5, false, "the operator eliminates in the type of its input"};

// Calls fn(matrix of `from`, matrix of `into`...) for each matrix of the batch; dense doubles.
template <typename Fn>
void ForEachMatrix(const Tensor& from, const Tensors& into, Fn fn) {
  const int64_t rows = from.size(-2), columns = from.size(-1);
  const Tensor flat = from.reshape({-1, rows, columns});
  Tensors targets;
  for (const Tensor& tensor : into) {
    targets.push_back(tensor.view({flat.size(0), tensor.size(-2), tensor.size(-1)}));
  }
  for (int64_t i = 0; i < flat.size(0); ++i) {
    Tensors matrices;
    for (const Tensor& target : targets) matrices.push_back(target[i]);
    fn(flat[i], matrices);
  }
}

// Turns `r` into an upper triangle by Householder reflections and applies them to `q`, which begins
// as the identity. A reflection gives the diagonal the other sign than it had, as LAPACK does, so Q
// and R are unique.
void Reflect(const Tensor& r, const Tensor& q) {
  const auto element = r.accessor<double, 2>();
  const int64_t rows = r.size(0), columns = r.size(1);
  for (int64_t k = 0; k < std::min(rows - 1, columns); ++k) {
    double below = 0;
    for (int64_t i = k + 1; i < rows; ++i) below += element[i][k] * element[i][k];
    if (below == 0) continue;
    const double length = std::sqrt(below + element[k][k] * element[k][k]);
    const double diagonal = element[k][k] > 0 ? -length : length;
    const Tensor v = at::zeros({rows}, at::kDouble);
    for (int64_t i = k; i < rows; ++i) v[i] = element[i][k];
    v[k] -= diagonal;
    const double size = v.dot(v).item<double>();
    r.sub_(at::outer(v, at::mv(r.t(), v)) * (2 / size));
    q.sub_(at::outer(at::mv(q, v), v) * (2 / size));
  }
}

// (self, mode): 0 reduced, 1 complete, 2 only R, for which Q is empty
std::tuple<Tensor, Tensor> ReflectedQr(const In& in) {
  const int64_t mode = in.integer(1), rows = in[0].size(-2), columns = in[0].size(-1);
  std::vector<int64_t> square = in[0].sizes().vec();
  square.back() = rows;
  const Tensor r = in[0].to(at::kDouble).contiguous().clone();
  const Tensor q = at::eye(rows, at::kDouble).expand(square).contiguous();
  ForEachMatrix(r, {q, r}, [](const Tensor&, const Tensors& into) { Reflect(into[1], into[0]); });
  const int64_t kept = mode == 1 ? rows : std::min(rows, columns);
  const at::ScalarType dtype = in[0].scalar_type();
  return {mode == 2 ? at::empty({0}, dtype) : q.slice(-1, 0, kept).to(dtype),
          r.triu().slice(-2, 0, kept).to(dtype)};
}

// Gauss's elimination with the greatest pivot of each column.
std::tuple<Tensor, Tensor> EliminatedDeterminant(const In& in) {
  const Tensor work = in[0].to(at::kDouble).contiguous().clone();
  std::vector<int64_t> sizes = in[0].sizes().vec();
  sizes.resize(sizes.size() - 2);
  std::vector<double> signs, logs;
  ForEachMatrix(work, {work}, [&](const Tensor&, const Tensors& into) {
    auto a = into[0].accessor<double, 2>();
    const int64_t n = into[0].size(0);
    double sign = 1, log = 0;
    for (int64_t k = 0; k < n; ++k) {
      int64_t pivot = k;
      for (int64_t i = k; i < n; ++i) {
        if (std::fabs(a[i][k]) > std::fabs(a[pivot][k])) pivot = i;
      }
      if (pivot != k) sign = -sign;
      for (int64_t j = 0; j < n; ++j) std::swap(a[k][j], a[pivot][j]);
      if (a[k][k] == 0) {
        sign = 0;
        log = -INFINITY;
        break;
      }
      sign = a[k][k] < 0 ? -sign : sign;
      log += std::log(std::fabs(a[k][k]));
      for (int64_t i = k + 1; i < n; ++i) {
        const double factor = a[i][k] / a[k][k];
        for (int64_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      }
    }
    signs.push_back(sign);
    logs.push_back(log);
  });
  const at::ScalarType dtype = in[0].scalar_type();
  return {at::tensor(signs, at::kDouble).view(sizes).to(dtype),
          at::tensor(logs, at::kDouble).view(sizes).to(dtype)};
}

// (self, A, upper, transpose, unitriangular): row by row, from the side on which one unknown is
// left
std::tuple<Tensor, Tensor> SolvedByRows(const In& in) {
  const bool upper = in.flag(2), transpose = in.flag(3), unit = in.flag(4);
  const int64_t n = in[1].size(-1), columns = in[0].size(-1);
  std::vector<int64_t> batch = at::infer_size(in[0].sizes().slice(0, in[0].dim() - 2),
                                              in[1].sizes().slice(0, in[1].dim() - 2));
  std::vector<int64_t> of_x = batch, of_a = batch;
  of_x.insert(of_x.end(), {n, columns});
  of_a.insert(of_a.end(), {n, n});
  const Tensor copy = in[1].expand(of_a).contiguous();
  const Tensor a = copy.to(at::kDouble);
  const Tensor x = in[0].to(at::kDouble).expand(of_x).contiguous().clone();
  ForEachMatrix(a, {x}, [&](const Tensor& matrix, const Tensors& into) {
    const Tensor used = transpose ? matrix.t() : matrix;
    const bool from_below = upper != transpose;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t row = from_below ? n - 1 - k : k;
      const Tensor unknown = into[0][row];
      for (int64_t known = 0; known < k; ++known) {
        const int64_t other = from_below ? n - 1 - known : known;
        unknown.sub_(into[0][other] * used[row][other]);
      }
      if (!unit) unknown.div_(used[row][row]);
    }
  });
  return {x.to(in[0].scalar_type()), copy};
}

// Random matrices whose diagonal is far from 0.
Tensor Sturdy(Source& source, at::IntArrayRef sizes, at::ScalarType dtype) {
  return source.Random(sizes, dtype) + 6 * at::eye(sizes.back(), dtype);
}

}  // namespace

Rows LinalgRows() {
  const Dtypes wide = {at::kFloat, at::kDouble};
  Rows rows = {
      {"aclnnLinalgQr",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t mode : {0, 1, 2}) {
           inputs.push_back({source.Random({6, 4}, dtype), mode});
           inputs.push_back({source.Random({5, 3}, dtype).t(), mode});
           inputs.push_back({source.Random({2, 3, 4, 4}, dtype), mode});
         }
         inputs.push_back({source.Random({1, 1}, dtype), int64_t{0}});
         return inputs;
       },
       wide, ReflectedQr, kEliminated},
      {"aclnnSlogdet",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({4, 4}, dtype)},
                                  {source.Random({2, 3, 5, 5}, dtype).transpose(0, 1)},
                                  {source.Random({3, 3}, dtype).t()},
                                  {source.Random({1, 1}, dtype)},
                                  {at::ones({3, 3}, dtype)}};
       },
       wide, EliminatedDeterminant, kEliminated},
      {"aclnnLogdet",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({4, 4}, dtype)},
                                  {source.Random({2, 3, 5, 5}, dtype).transpose(0, 1)},
                                  {source.Random({3, 3}, dtype).t()},
                                  {source.Random({0, 2, 2}, dtype)},
                                  {at::ones({3, 3}, dtype)}};
       },
       wide,
       [](const In& in) {
         const auto [sign, log] = EliminatedDeterminant(in);
         return at::where(sign < 0, at::full_like(log, NAN), log);
       },
       kEliminated},
      {"aclnnTriangularSolve",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (bool upper : {false, true}) {
           for (bool transpose : {false, true}) {
             for (bool unit : {false, true}) {
               inputs.push_back({source.Random({4, 3}, dtype), Sturdy(source, {4, 4}, dtype), upper,
                                 transpose, unit});
               inputs.push_back({source.Random({2, 2, 5}, dtype).transpose(1, 2),
                                 Sturdy(source, {5, 5}, dtype), upper, transpose, unit});
             }
           }
         }
         return inputs;
       },
       wide, SolvedByRows, kEliminated},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
