// The pixels around a place between them, as samples of feature maps read them: each counts by its
// nearness, and pixels outside of the map count nothing.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace acltape::opapi {

// One of the four pixels: its index among those of the map, its part, and how the part changes with
// the place.
struct PixelCorner {
  int64_t pixel;
  float part, by_x, by_y;
};

struct PixelCorners {
  std::array<PixelCorner, 4> corners;
  int count = 0;

  const PixelCorner* begin() const { return corners.data(); }
  const PixelCorner* end() const { return corners.data() + count; }
};

// A place that is a pixel or more outside of the map has none, nor has one that is no number. The
// pixel on the right of a place that is a whole number has no part, but the part's change counts.
inline PixelCorners CornersAround(float x, float y, int64_t width, int64_t height) {
  PixelCorners around;
  const bool near =
      x > -1 && y > -1 && x < static_cast<float>(width) && y < static_cast<float>(height);
  if (!near) return around;
  const float left = std::floor(x), top = std::floor(y);
  const float dx = x - left, dy = y - top;
  for (int corner = 0; corner < 4; ++corner) {
    const bool right = corner % 2 == 1, lower = corner >= 2;
    const int64_t column = static_cast<int64_t>(left) + (right ? 1 : 0);
    const int64_t line = static_cast<int64_t>(top) + (lower ? 1 : 0);
    if (column < 0 || line < 0 || column >= width || line >= height) continue;
    const float in_x = right ? dx : 1 - dx, in_y = lower ? dy : 1 - dy;
    around.corners[around.count++] = {line * width + column, in_x * in_y, right ? in_y : -in_y,
                                      lower ? in_x : -in_x};
  }
  return around;
}

}  // namespace acltape::opapi
