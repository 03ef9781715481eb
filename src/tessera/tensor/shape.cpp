#include "tessera/tensor/shape.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {

void Shape::push_back(std::int64_t dim) {
  require(ndim_ < kMaxDims, "a tensor has at most ", kMaxDims, " dims");
  dims_[static_cast<std::size_t>(ndim_++)] = dim;
}

void Shape::erase(int dim) {
  std::copy(begin() + dim + 1, end(), begin() + dim);
  --ndim_;
}

Shape Shape::strides() const {
  Shape out = Shape::of(ndim_, 1);
  for (int i = ndim_ - 2; i >= 0; --i) out[i] = out[i + 1] * (*this)[i + 1];
  return out;
}

std::string to_text(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.ndim(); ++i) out += text(i ? "," : "", shape[i]);
  return out + "]";
}

Shape broadcast(const Shape& a, const Shape& b) {
  const int ndim = std::max(a.ndim(), b.ndim());
  Shape out = Shape::of(ndim, 1);
  for (int i = 0; i < ndim; ++i) {
    const std::int64_t x = i < a.ndim() ? a.back(i) : 1, y = i < b.ndim() ? b.back(i) : 1;
    require(x == y || x == 1 || y == 1, "shapes ", a, " and ", b, " do not broadcast: sizes ", x,
            " and ", y, " meet; reshape one of them so that aligned sizes are equal or 1");
    out[ndim - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace tessera
