// True boxes for the boxes of a grid by the operator's name, beside a formula that goes from box to
// box.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct Grid {
  Tensor assigned, overlaps, flags, best, best_truth, truth_best, truth_box;
  int count;
  float positive, least;
  bool all;
};

// A grid as a detector has it: the extremes are those of the overlaps.
Grid RandomGrid(int64_t k, int64_t n, bool all, at::ScalarType type) {
  const Tensor overlaps = (at::randint(0, 16, {k, n}).to(at::kFloat) / 16).to(type);
  const Tensor wide = overlaps.to(at::kFloat);
  return {(at::randint(-1, 1, {n}).to(type)),
          overlaps,
          at::randint(0, 2, {n}).to(at::kByte),
          std::get<0>(wide.max(0)).to(type),
          std::get<1>(wide.max(0)).to(at::kInt),
          std::get<0>(wide.max(1)).to(type),
          std::get<1>(wide.max(1)).to(at::kInt),
          static_cast<int>(k),
          0.7f,
          0.3f,
          all};
}

Tensor AssignedByFormula(const Grid& grid) {
  Tensor result = grid.assigned.clone();
  const auto number = [](const Tensor& of, int64_t i) { return of[i].item<float>(); };
  const float positive = at::tensor(grid.positive).to(grid.best.scalar_type()).item<float>();
  const float least = at::tensor(grid.least).to(grid.best.scalar_type()).item<float>();
  const int64_t k = grid.overlaps.size(0), n = grid.overlaps.size(1);
  for (int64_t i = 0; i < n; ++i) {
    if (number(grid.best, i) > positive && number(grid.flags, i) != 0) {
      result[i] = number(grid.best_truth, i) + 1;
    }
  }
  for (int64_t truth = 0; truth < std::min<int64_t>(k, grid.count); ++truth) {
    if (!(number(grid.truth_best, truth) > least)) continue;
    if (!grid.all) {
      const auto box = static_cast<int64_t>(number(grid.truth_box, truth));
      if (number(grid.flags, box) == 1) result[box] = truth + 1;
      continue;
    }
    for (int64_t i = 0; i < n; ++i) {
      const bool same = grid.overlaps[truth][i].item<float>() == number(grid.truth_best, truth);
      if (same && number(grid.flags, i) != 0) result[i] = truth + 1;
    }
  }
  return result;
}

void FillGrid(NamedCall& call, const Grid& grid, const Tensor& out) {
  call.In(grid.assigned).In(grid.overlaps).In(grid.flags).In(grid.best).In(grid.best_truth);
  call.In(grid.truth_best).In(grid.truth_box).In(at::scalar_tensor(grid.count, at::kInt));
  call.Out(out).Set("pos_iou_thr", grid.positive).Set("min_pos_iou", grid.least);
  call.Set("gt_max_assign_all", grid.all);
}

void ExpectAssigned(const Grid& grid) {
  const Tensor out = at::full_like(grid.assigned, 77);
  NamedCall call("GridAssignPositive");
  FillGrid(call, grid, out);
  ASSERT_EQ(call.RunOlder(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::equal(out, AssignedByFormula(grid))) << out << AssignedByFormula(grid);
}

TEST(AssignmentsByName, BoxesOfAGridGetTheirTrueBoxes) {
  at::manual_seed(14);
  for (bool all : {false, true}) {
    for (at::ScalarType type : {at::kFloat, at::kHalf}) {
      ExpectAssigned(RandomGrid(5, 60, all, type));
      ExpectAssigned(RandomGrid(255, 7, all, type));
      Grid few = RandomGrid(6, 40, all, type);
      few.count = 3;  // the others do not count
      ExpectAssigned(few);
      few.count = 900;
      few.least = 0.8f;
      ExpectAssigned(few);
      Grid flags = RandomGrid(4, 30, all, type);
      flags.flags.fill_(2);  // counts where all boxes are taken, and not where one is
      ExpectAssigned(flags);
      ExpectAssigned(RandomGrid(1, 1, all, type));
    }
    Grid none{at::ones({3}),
              at::zeros({0, 3}),
              at::ones({3}, at::kByte),
              at::ones({3}),
              at::zeros({3}, at::kInt),
              at::zeros({0}),
              at::zeros({0}, at::kInt),
              0,
              2,
              0,
              all};
    ExpectAssigned(none);
  }
}

TEST(AssignmentsByName, GridsThatAreRefused) {
  const auto said = [](const Grid& grid, const Tensor& out) {
    NamedCall call("GridAssignPositive");
    FillGrid(call, grid, out);
    TakeMessage();
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    return TakeMessage();
  };
  const Grid good = RandomGrid(3, 8, true, at::kFloat);
  const Tensor out = at::zeros({8});
  Grid flags = good, shape = good, type = good;
  flags.flags = flags.flags.to(at::kInt);
  EXPECT_NE(said(flags, out).find("input 2 has the type 3"), std::string::npos);
  shape.truth_best = at::zeros({4});
  EXPECT_NE(said(shape, out).find("input 5 has the type 0 and the shape [4]"), std::string::npos);
  type.best_truth = type.best_truth.to(at::kLong);
  EXPECT_NE(said(type, out).find("input 4 has the type 9"), std::string::npos);
  EXPECT_NE(said(good, at::zeros({7})).find("output 0 has the shape [7]"), std::string::npos);
  EXPECT_NE(said(good, out.to(at::kHalf)).find("one type for the overlaps"), std::string::npos);
  EXPECT_NE(said(RandomGrid(256, 8, true, at::kFloat), out).find("less than 256 true boxes"),
            std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
