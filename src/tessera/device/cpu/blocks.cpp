#include "tessera/device/cpu/blocks.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tessera/device/cpu/kernels.h"
#include "tessera/ir/cut.h"
#include "tessera/ir/graph.h"

namespace tessera::cpu {

namespace {

struct Need {
  double always = 0, cut = 0;  // bytes of f32: of each block, and of all blocks together
};

class Cutting {
 public:
  explicit Cutting(const KernelRequest& request)
      : request_(request), call_(request.call), factors_(factors_of(request.call)) {}

  int factors() const { return static_cast<int>(factors_.list.size()); }

  /// Nothing where that factor cannot be cut.
  std::optional<Blocks> along(int factor) const {
    std::optional<CutDims> dims = cut_along(call_, factors_, factor);
    if (!dims) return std::nullopt;
    const std::int64_t size = at(factor).size;
    return Blocks{size, size, std::move(dims->ins), std::move(dims->outs)};
  }

  Need need(const Blocks& blocks) const {
    Need out;
    for (int i = 0; i < call_.num_in(); ++i) {
      const int dim = blocks.ins[static_cast<std::size_t>(i)];
      if (is_copied(call_.in(i), strides_of(request_, i), dim)) add(call_.in(i), dim, out);
    }
    for (int i = 0; i < call_.num_out(); ++i) {
      const TensorType& type = call_.out(i);
      const int dim = blocks.outs[static_cast<std::size_t>(i)];
      if (is_copied(type, type.shape.strides(), dim)) add(type, dim, out);
      if (dim == -1) add(type, dim, out);  // a block's, beside the sum
    }
    return out;
  }

 private:
  const Factor& at(int factor) const { return factors_.list[static_cast<std::size_t>(factor)]; }

  static bool is_copied(const TensorType& type, const Shape& strides, int dim) {
    return is_16_bit(type.dtype) || !is_window(type, strides, dim);
  }

  static void add(const TensorType& type, int dim, Need& need) {
    (dim < 0 ? need.always : need.cut) +=
        static_cast<double>(type.numel()) * static_cast<double>(size_of(computed_in(type.dtype)));
  }

  const KernelRequest& request_;
  const OpCall& call_;
  const Factors factors_;
};

Blocks one_block(const OpCall& call) {
  Blocks out;
  out.ins.assign(static_cast<std::size_t>(call.num_in()), -1);
  out.outs.assign(static_cast<std::size_t>(call.num_out()), -1);
  return out;
}

}  // namespace

bool is_window(const TensorType& type, const Shape& strides, int dim) {
  if (dim < 0) return true;
  for (int d = 0; d < dim; ++d) {
    if (type.shape[d] != 1) return false;
  }
  return strides == type.shape.strides();
}

Blocks blocks_of(const KernelRequest& request, std::int64_t bytes) {
  const OpCall& call = request.call;
  Blocks best = one_block(call);
  if (!may_be_cut(call.op())) return best;
  const Cutting cutting(request);
  const auto most = static_cast<double>(bytes);
  double least = 0;
  for (int i = 0; i < call.num_in(); ++i)
    least += is_16_bit(call.in(i).dtype) ? 2.0 * static_cast<double>(call.in(i).bytes()) : 0;
  for (int i = 0; i < call.num_out(); ++i)
    least += is_16_bit(call.out(i).dtype) ? 2.0 * static_cast<double>(call.out(i).bytes()) : 0;
  if (least <= most) return best;
  for (int factor = 0; factor < cutting.factors(); ++factor) {
    std::optional<Blocks> blocks = cutting.along(factor);
    if (!blocks) continue;
    const Need need = cutting.need(*blocks);
    const double parts = std::ceil(need.cut / most);
    blocks->length =
        std::max<std::int64_t>(1, blocks->size / static_cast<std::int64_t>(std::max(1.0, parts)));
    const double total = need.always + need.cut * static_cast<double>(blocks->length) /
                                           static_cast<double>(blocks->size);
    if (total >= least) continue;
    least = total;
    best = *std::move(blocks);
  }
  return best;
}

}  // namespace tessera::cpu
