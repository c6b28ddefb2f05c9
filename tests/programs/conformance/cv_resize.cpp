// An image is enlarged, by repeating and by mixing, and sampled on a grid.
#include "acl/acl.h"
#include "aclnnop/aclnn_grid_sampler2d.h"
#include "aclnnop/aclnn_upsample_bilinear_2d.h"
#include "aclnnop/aclnn_upsample_nearest_2d.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    const std::vector<float> x = Numbers(12);
    Tensor image({1, 1, 3, 4}, x), repeated({1, 1, 6, 8}), mixed({1, 1, 5, 7}),
        sampled({1, 1, 3, 4});
    RUN_OP(stream, aclnnUpsampleNearest2d, image, Ints({6, 8}), repeated);
    RUN_OP(stream, aclnnUpsampleBilinear2d, image, Ints({5, 7}), true, 0.0, 0.0, mixed);
    // The grid that lies on the pixels gives the image again.
    std::vector<float> grid;
    for (int i = 0; i < 12; ++i) {
      grid.push_back(static_cast<float>(i % 4) / 3 * 2 - 1);
      grid.push_back(static_cast<float>(i / 4) / 2 * 2 - 1);
    }
    Tensor places({1, 3, 4, 2}, grid);
    RUN_OP(stream, aclnnGridSampler2D, image, places, 0, 0, true, sampled);
    std::vector<double> twice, between, same(x.begin(), x.end());
    for (int i = 0; i < 48; ++i) twice.push_back(x[i / 8 / 2 * 4 + i % 8 / 2]);
    for (int i = 0; i < 35; ++i) {
      const double row = i / 7 * 0.5, column = i % 7 * 0.5;
      const int r = std::min(static_cast<int>(row), 1), c = std::min(static_cast<int>(column), 2);
      const double down = row - r, right = column - c;
      between.push_back((1 - down) * ((1 - right) * x[r * 4 + c] + right * x[r * 4 + c + 1]) +
                        down * ((1 - right) * x[r * 4 + 4 + c] + right * x[r * 4 + 5 + c]));
    }
    CheckNear(repeated.Read(stream), twice, 0);
    CheckNear(mixed.Read(stream), between, 1e-6);
    CheckNear(sampled.Read(stream), same, 1e-5);
  }
  FreeWorkspaces();
  return EndSession(stream);
}
