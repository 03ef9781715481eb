#include <algorithm>
#include <cstring>
#include <vector>

#include "tessera/device/cpu/vector_copy.h"
#include "tessera/device/cpu/vector_families.h"
#include "tessera/ops/collective.h"
#include "tessera/ops/shape_ops.h"

namespace tessera::cpu {

namespace {

const std::byte* in(const KernelArgs& args, int i) {
  return static_cast<const std::byte*>(args.ins[i]);
}
std::byte* out(const KernelArgs& args) { return static_cast<std::byte*>(args.outs[0]); }

/// Some windows of the operands copied to windows of the result; what pads a dim is cleared.
class CopyKernel final : public Kernel {
 public:
  struct Part {
    StridedCopy copy;
    std::int64_t from_bytes = 0, to_bytes = 0;  // where the windows start
  };
  /// The result as [outer, size, inner bytes]: x lies at `start` of size, `held` long; the rest is
  /// zero.
  struct Zeros {
    std::int64_t outer = 0, size = 0, held = 0, start = 0, inner_bytes = 0;
  };

  explicit CopyKernel(Pool& pool) : pool_(&pool) {}
  std::string_view name() const override { return "cpu:copy"; }

  void add(StridedCopy copy, std::int64_t from_bytes, std::int64_t to_bytes) {
    parts_.push_back({copy, from_bytes, to_bytes});
  }
  void pad(const Zeros& zeros) { zeros_ = zeros; }
  /// The window's start is operand 1, clamped to [0, most]; one step of it is `bytes` of the
  /// operand or of the result.
  void move_window(std::int64_t most, std::int64_t bytes, bool of_result) {
    moves_ = true, most_ = most, step_bytes_ = bytes, of_result_ = of_result;
  }

  void run(const KernelArgs& args) const override {
    if (args.outs[0] == args.ins[0]) return;  // a reshape in place
    const std::int64_t start =
        moves_ ? std::clamp<std::int64_t>(*reinterpret_cast<const std::int32_t*>(in(args, 1)), 0,
                                          most_)
               : zeros_.start;
    if (zeros_.outer > 0) clear(out(args), start);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const std::int64_t moved = moves_ ? start * step_bytes_ : 0;
      part.copy.run(in(args, static_cast<int>(i)) + part.from_bytes + (of_result_ ? 0 : moved),
                    out(args) + part.to_bytes + (of_result_ ? moved : 0), *pool_);
    }
  }

 private:
  void clear(std::byte* to, std::int64_t start) const {
    const std::int64_t row = zeros_.size * zeros_.inner_bytes, before = start * zeros_.inner_bytes;
    const std::int64_t after = before + zeros_.held * zeros_.inner_bytes;
    const std::int64_t grain =
        std::max<std::int64_t>(1, (64 << 10) / std::max<std::int64_t>(1, row));
    pool_->split(zeros_.outer, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) {
        std::memset(to + o * row, 0, static_cast<std::size_t>(before));
        std::memset(to + o * row + after, 0, static_cast<std::size_t>(row - after));
      }
    });
  }

  Pool* pool_;
  std::vector<Part> parts_;
  Zeros zeros_;
  bool moves_ = false, of_result_ = false;
  std::int64_t most_ = 0, step_bytes_ = 0;
};

/// The part of a rank, or of a micro-batch, of what is whole until then. Beyond the operand's end
/// the result is padding.
class ShardKernel final : public Kernel {
 public:
  explicit ShardKernel(const KernelRequest& request, Pool& pool)
      : pool_(&pool),
        held_(request.call.in(0).shape),
        part_(request.call.out(0).shape),
        strides_(strides_of(request, 0)),
        in_(in_shard(request, 0)),
        out_(out_shard(request, 0)),
        size_(size_of(request.call.out(0).dtype)) {}
  std::string_view name() const override { return "cpu:copy"; }

  void run(const KernelArgs& args) const override {
    const Shape first = offset_at(in_, args.microbatch), start = offset_at(out_, args.microbatch);
    Shape window = part_;
    std::int64_t skipped = 0;
    for (int d = 0; d < part_.ndim(); ++d) {
      const std::int64_t position = start[d] - first[d];
      window[d] = std::clamp(held_[d] - position, std::int64_t{0}, part_[d]);
      skipped += position * strides_[d];
    }
    if (window.numel() == 0) return;
    StridedCopy(window, strides_, part_.strides(), size_)
        .run(in(args, 0) + skipped * size_, out(args), *pool_);
  }

 private:
  Pool* pool_;
  Shape held_, part_, strides_;
  ShardInfo in_, out_;
  int size_;
};

CopyKernel::Zeros zeros_around(const OpCall& call, int dim, std::int64_t start) {
  const Shape& shape = call.out(0).shape;
  std::int64_t outer = 1;
  for (int d = 0; d < dim; ++d) outer *= shape[d];
  return {outer, shape[dim], call.in(0).shape[dim], start,
          shape.strides()[dim] * size_of(call.out(0).dtype)};
}

/// Strides of what is sliced, or padded into, from one element that is kept to the next.
Shape with_step(Shape strides, const OpCall& call) {
  strides[static_cast<int>(call.integer("dim"))] *= call.integer("step");
  return strides;
}

}  // namespace

std::unique_ptr<Kernel> make_copy(const KernelRequest& request, Pool& pool) {
  const OpCall& call = request.call;
  const OpDef* op = &call.op();
  if (op == &kShard) return std::make_unique<ShardKernel>(request, pool);
  const int size = size_of(call.out(0).dtype);
  const Shape shape = call.in(0).shape, result = call.out(0).shape;
  const Shape from = strides_of(request, 0), to = result.strides();
  auto kernel = std::make_unique<CopyKernel>(pool);
  if (op == &kReshape) {
    kernel->add({shape, from, shape.strides(), size}, 0, 0);
    return kernel;
  }
  if (op == &kTranspose) {
    Shape permuted;
    for (const std::int64_t d : call.integers("permutation"))
      permuted.push_back(from[static_cast<int>(d)]);
    kernel->add({result, permuted, to, size}, 0, 0);
    return kernel;
  }
  const int dim = static_cast<int>(call.integer("dim"));
  if (op == &kSlice) {
    kernel->add({result, with_step(from, call), to, size}, call.integer("start") * from[dim] * size,
                0);
  } else if (op == &kDynamicSlice) {
    kernel->add({result, from, to, size}, 0, 0);
    kernel->move_window(shape[dim] - result[dim], from[dim] * size, false);
  } else if (op == &kPad) {
    CopyKernel::Zeros zeros = zeros_around(call, dim, call.integer("start"));
    if (call.integer("step") != 1) zeros.held = 0;  // there are zeros between its elements
    kernel->pad(zeros);
    kernel->add({shape, from, with_step(to, call), size}, 0,
                call.integer("start") * to[dim] * size);
  } else if (op == &kDynamicPad) {
    kernel->pad(zeros_around(call, dim, 0));
    kernel->add({shape, from, to, size}, 0, 0);
    kernel->move_window(result[dim] - shape[dim], to[dim] * size, true);
  } else {
    check(op == &kConcat, "no copy makes a ", op->name);
    std::int64_t start = 0;
    for (int i = 0; i < call.num_in(); ++i) {
      kernel->add({call.in(i).shape, strides_of(request, i), to, size}, 0, start * to[dim] * size);
      start += call.in(i).shape[dim];
    }
  }
  return kernel;
}

}  // namespace tessera::cpu
