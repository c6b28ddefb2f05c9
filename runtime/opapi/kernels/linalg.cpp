// Decompositions and solutions of batches of matrices.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// A batch of matrices: the sizes in front of the last two dims, and those.
struct Matrices {
  std::vector<int64_t> batch;
  int64_t rows, columns;

  std::vector<int64_t> With(std::initializer_list<int64_t> last) const {
    std::vector<int64_t> sizes = batch;
    sizes.insert(sizes.end(), last);
    return sizes;
  }
};

Matrices ReadMatrices(const Call& call, int i, const Operand& operand, bool square) {
  ExpectFloats(call, i, operand.view());
  if (operand.dim() < 2) call.RejectArg(i, "has less than 2 dims");
  const at::IntArrayRef sizes = operand.sizes();
  const size_t leading = sizes.size() - 2;
  const Matrices result{sizes.slice(0, leading).vec(), sizes[leading], sizes[leading + 1]};
  if (square && result.rows != result.columns)
    call.RejectArg(i, "holds matrices that are not square");
  return result;
}

// (self, out)
std::unique_ptr<Kernel> BindInverse(const Call& call) {
  const Operand self = call.In(0);
  ReadMatrices(call, 0, self, true);
  return BindWhole(call, 1, self.sizes(), [=] { return at::inverse(self()); });
}

// (self, upper, out)
std::unique_ptr<Kernel> BindCholesky(const Call& call) {
  const Operand self = call.In(0);
  ReadMatrices(call, 0, self, true);
  const bool upper = call.Bool(1);
  return BindWhole(call, 2, self.sizes(), [=] { return at::linalg_cholesky(self(), upper); });
}

// (self, sign, log)
std::unique_ptr<Kernel> BindSlogdet(const Call& call) {
  const Operand self = call.In(0);
  const Matrices matrices = ReadMatrices(call, 0, self, true);
  const Tensor sign = call.Out(1), log = call.Out(2);
  for (int i : {1, 2}) call.ExpectSizes(i, call.View(i), matrices.batch);
  return MakeKernel([=] {
    const auto result = at::slogdet(self());
    sign.copy_(std::get<0>(result));
    log.copy_(std::get<1>(result));
  });
}

// (self, out)
std::unique_ptr<Kernel> BindLogdet(const Call& call) {
  const Operand self = call.In(0);
  const Matrices matrices = ReadMatrices(call, 0, self, true);
  return BindWhole(call, 1, matrices.batch, [=] { return at::logdet(self()); });
}

// (input, fullMatrices, computeUV, sigma, u, v): without vectors u and v stay unwritten.
std::unique_ptr<Kernel> BindSvd(const Call& call) {
  const Operand input = call.In(0);
  const Matrices matrices = ReadMatrices(call, 0, input, false);
  const bool full = call.Bool(1), vectors = call.Bool(2);
  const int64_t least = std::min(matrices.rows, matrices.columns);
  const Tensor sigma = call.Out(3), u = call.Out(4), v = call.Out(5);
  call.ExpectSizes(3, sigma, matrices.With({least}));
  if (vectors) {
    call.ExpectSizes(4, u, matrices.With({matrices.rows, full ? matrices.rows : least}));
    call.ExpectSizes(5, v, matrices.With({matrices.columns, full ? matrices.columns : least}));
  }
  return MakeKernel([=] {
    const auto result = at::svd(input(), !full, vectors);
    sigma.copy_(std::get<1>(result));
    if (!vectors) return;
    u.copy_(std::get<0>(result));
    v.copy_(std::get<2>(result));
  });
}

// Binds the QR decomposition in the library's mode, into outputs 2 and 3.
std::unique_ptr<Kernel> BindQrMode(const Call& call, const char* mode) {
  const Operand self = call.In(0);
  const Matrices matrices = ReadMatrices(call, 0, self, false);
  const bool complete = std::string(mode) == "complete", only_r = std::string(mode) == "r";
  const int64_t least = complete ? matrices.rows : std::min(matrices.rows, matrices.columns);
  const Tensor q = call.Out(2), r = call.Out(3);
  if (!only_r) call.ExpectSizes(2, q, matrices.With({matrices.rows, least}));
  call.ExpectSizes(3, r, matrices.With({least, matrices.columns}));
  return MakeKernel([=] {
    const auto result = at::linalg_qr(self(), mode);
    if (!only_r) q.copy_(std::get<0>(result));
    r.copy_(std::get<1>(result));
  });
}

// (self, some, Q, R)
std::unique_ptr<Kernel> BindQr(const Call& call) {
  return BindQrMode(call, call.Bool(1) ? "reduced" : "complete");
}

// (self, mode, Q, R)
std::unique_ptr<Kernel> BindLinalgQr(const Call& call) {
  static constexpr const char* kModes[] = {"reduced", "complete", "r"};
  const int64_t mode = call.Int(1);
  if (mode < 0 || mode > 2) call.RejectArg(1, "must be 0 (reduced), 1 (complete) or 2 (only R)");
  return BindQrMode(call, kModes[mode]);
}

// (self, A, upper, transpose, unitriangular, x, m): m is a copy of A.
std::unique_ptr<Kernel> BindTriangularSolve(const Call& call) {
  const Operand self = call.In(0), a = call.In(1);
  const Matrices right = ReadMatrices(call, 0, self, false);
  const Matrices matrices = ReadMatrices(call, 1, a, true);
  if (right.rows != matrices.rows) call.RejectArg(1, "has another number of rows than self");
  if (self.dtype() != a.dtype()) call.RejectArg(1, "has another dtype than self");
  const bool upper = call.Bool(2), transpose = call.Bool(3), unit = call.Bool(4);
  const std::vector<int64_t> batch = call.Broadcast({right.batch, matrices.batch});
  std::vector<int64_t> sizes = batch, of_a = batch;
  sizes.insert(sizes.end(), {right.rows, right.columns});
  of_a.insert(of_a.end(), {matrices.rows, matrices.columns});
  const Tensor x = call.Out(5), m = call.Out(6);
  call.ExpectSizes(5, x, sizes);
  call.ExpectSizes(6, m, of_a);
  return MakeKernel([=] {
    const Tensor matrix = a();
    const Tensor used = transpose ? matrix.transpose(-1, -2) : matrix;
    x.copy_(at::linalg_solve_triangular(used, self(), upper != transpose, /*left=*/true, unit));
    m.copy_(matrix.expand(of_a));
  });
}

}  // namespace

KernelRows LinalgRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnInverse", BindInverse, kBoth},   {"aclnnLinalgCholesky", BindCholesky, kBoth},
      {"aclnnSlogdet", BindSlogdet, kBoth},   {"aclnnLogdet", BindLogdet, kBoth},
      {"aclnnSvd", BindSvd, kBoth},           {"aclnnQr", BindQr, kBoth},
      {"aclnnLinalgQr", BindLinalgQr, kBoth}, {"aclnnTriangularSolve", BindTriangularSolve, kBoth},
  };
}

}  // namespace acltape::opapi
