#include "tessera/device/cpu/widened.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tessera/device/cpu/blocks.h"
#include "tessera/device/cpu/in_f32.h"
#include "tessera/device/cpu/kernels.h"
#include "tessera/device/cpu/vector_convert.h"

namespace tessera::cpu {

namespace {

constexpr std::int64_t kWidenedGrain = 4096;  // elements that are worth a thread

/// Where rows of neighbours begin, of a tensor that lies at strides.
struct Rows {
  std::int64_t count = 1, length = 1;
  Shape outer, strides;

  Rows(const Shape& shape, const Shape& at) {
    // The last dims that lie dense make up one row.
    int d = shape.ndim();
    while (d > 0 && (at[d - 1] == length || shape[d - 1] == 1)) length *= shape[--d];
    for (int i = 0; i < d; ++i) {
      outer.push_back(shape[i]);
      strides.push_back(at[i]);
      count *= shape[i];
    }
  }

  std::int64_t begin(std::int64_t row) const {
    std::int64_t out = 0;
    for (int d = outer.ndim(); d-- > 0;) {
      out += row % outer[d] * strides[d];
      row /= outer[d];
    }
    return out;
  }

  /// Calls f(first element, place in a dense tensor, elements), by all threads.
  template <typename F>
  void each(Pool& pool, const F& f) const {
    if (count == 1) {
      pool.split(length, kWidenedGrain,
                 [&](std::int64_t from, std::int64_t to) { f(from, from, to - from); });
      return;
    }
    const std::int64_t grain =
        std::max<std::int64_t>(1, kWidenedGrain / std::max<std::int64_t>(1, length));
    pool.split(count, grain, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t row = from; row < to; ++row) f(begin(row), row * length, length);
    });
  }
};

/// Rows that lie anywhere, in f32 where they have 16 bits, as a dense tensor; and back.
void gather_rows(Pool& pool, DType dtype, const Rows& rows, const void* from, void* to) {
  const std::int64_t size = size_of(dtype);
  const auto* bytes = static_cast<const std::byte*>(from);
  rows.each(pool, [&](std::int64_t at, std::int64_t dense, std::int64_t n) {
    if (is_16_bit(dtype))
      return widen(dtype, bytes + at * size, static_cast<float*>(to) + dense, n);
    std::memcpy(static_cast<std::byte*>(to) + dense * size, bytes + at * size,
                static_cast<std::size_t>(n * size));
  });
}

void scatter_rows(Pool& pool, DType dtype, const Rows& rows, const void* from, void* to) {
  const std::int64_t size = size_of(dtype);
  auto* bytes = static_cast<std::byte*>(to);
  rows.each(pool, [&](std::int64_t at, std::int64_t dense, std::int64_t n) {
    if (is_16_bit(dtype))
      return narrow(dtype, static_cast<const float*>(from) + dense, bytes + at * size, n);
    std::memcpy(bytes + at * size, static_cast<const std::byte*>(from) + dense * size,
                static_cast<std::size_t>(n * size));
  });
}

/// Converts the operands of a block to f32, runs the kernel of f32 on them, converts the results.
class WidenedKernel final : public Kernel {
 public:
  WidenedKernel(const KernelRequest& request, Pool& pool, const MakeKernel& make,
                std::int64_t block_bytes)
      : pool_(&pool), blocks_(blocks_of(request, block_bytes)) {
    const OpCall& call = request.call;
    for (int i = 0; i < call.num_in(); ++i) {
      const int dim = blocks_.ins[static_cast<std::size_t>(i)];
      ins_.push_back(part_of(call.in(i), strides_of(request, i), dim));
    }
    for (int i = 0; i < call.num_out(); ++i) {
      const int dim = blocks_.outs[static_cast<std::size_t>(i)];
      outs_.push_back(part_of(call.out(i), call.out(i).shape.strides(), dim));
      if (sums(outs_.back())) outs_.back().block = room_for(call.out(i));
    }
    const std::int64_t last = blocks_.size - (blocks_.count() - 1) * blocks_.length;
    kernel_ = make_block(request, make, blocks_.length);
    if (last != blocks_.length) last_ = make_block(request, make, last);
    name_ = text("widened ", kernel_->name());
    in_data_.resize(ins_.size());
    out_data_.resize(outs_.size());
  }

  std::string_view name() const override { return name_; }
  std::int64_t workspace_bytes() const override {
    return bytes_ + std::max(kernel_->workspace_bytes(), last_ ? last_->workspace_bytes() : 0);
  }

  void run(const KernelArgs& args) const override {
    for (std::size_t i = 0; i < ins_.size(); ++i) {
      if (ins_[i].dim < 0) in_data_[i] = operand(args, ins_[i], args.ins[i], ins_[i].whole);
    }
    for (std::int64_t block = 0; block < blocks_.count(); ++block) run_block(args, block);
    for (std::size_t i = 0; i < outs_.size(); ++i) {
      if (sums(outs_[i]) && outs_[i].staged())
        scatter_rows(*pool_, outs_[i].dtype, outs_[i].whole, room(args, outs_[i].room),
                     args.outs[i]);
    }
  }

 private:
  /// An operand or result: where its elements lie, and where those of a block do in f32.
  struct Part {
    DType dtype;
    int dim;                  // that is cut; -1: none
    std::int64_t stride;      // of that dim, in elements
    Rows whole, last;         // of a block, and of the last one
    std::int64_t room = -1;   // of a dense copy in the workspace, in f32 where it has 16 bits
    std::int64_t block = -1;  // of a result that is a sum: that of a block
    bool staged() const { return room >= 0; }  // false: it is read and written where it lies
  };

  Part part_of(const TensorType& type, const Shape& strides, int dim) {
    const std::int64_t last = blocks_.size - (blocks_.count() - 1) * blocks_.length;
    const TensorType block = blocks_.of(type, dim, blocks_.length);
    Part out{type.dtype, dim, dim < 0 ? 0 : strides[dim], Rows(block.shape, strides),
             Rows(blocks_.of(type, dim, last).shape, strides)};
    if (is_16_bit(type.dtype) || !is_window(type, strides, dim)) out.room = room_for(block);
    return out;
  }

  /// The kernel of a block of `n`.
  std::unique_ptr<Kernel> make_block(const KernelRequest& request, const MakeKernel& make,
                                     std::int64_t n) const {
    const OpCall& call = request.call;
    std::vector<TensorType> types;
    types.reserve(ins_.size() + outs_.size());
    OpCall::Types ins, outs;
    std::vector<Shape> strides;
    for (int i = 0; i < call.num_in(); ++i) {
      const Part& part = ins_[static_cast<std::size_t>(i)];
      const TensorType& type = types.emplace_back(blocks_.of(in_f32(call.in(i)), part.dim, n));
      strides.push_back(part.staged() || part.dim >= 0 ? type.shape.strides()
                                                       : strides_of(request, i));
      ins.push_back(&type);
    }
    for (int i = 0; i < call.num_out(); ++i) {
      const Part& part = outs_[static_cast<std::size_t>(i)];
      outs.push_back(&types.emplace_back(blocks_.of(in_f32(call.out(i)), part.dim, n)));
    }
    const Attrs attrs = in_f32(call.attrs());
    return make({OpCall(call.op(), ins, attrs, outs), strides, request.ins, request.outs,
                 request.key, request.seed, request.coordinate});
  }

  bool sums(const Part& out) const { return out.dim < 0 && blocks_.count() > 1; }

  void run_block(const KernelArgs& args, std::int64_t block) const {
    const bool last = block + 1 == blocks_.count();
    const std::int64_t begin = block * blocks_.length;
    for (std::size_t i = 0; i < ins_.size(); ++i) {
      const Part& part = ins_[i];
      if (part.dim < 0) continue;
      in_data_[i] =
          operand(args, part, window(part, args.ins[i], begin), last ? part.last : part.whole);
    }
    for (std::size_t i = 0; i < outs_.size(); ++i) {
      const Part& part = outs_[i];
      if (sums(part) && block > 0) {
        out_data_[i] = room(args, part.block);
      } else {
        out_data_[i] = part.staged() ? room(args, part.room)
                                     : const_cast<void*>(window(part, args.outs[i], begin));
      }
    }
    const Kernel& kernel = last && last_ ? *last_ : *kernel_;
    kernel.run({in_data_.data(), out_data_.data(), static_cast<std::byte*>(args.workspace) + bytes_,
                args.microbatch});
    for (std::size_t i = 0; i < outs_.size(); ++i) {
      const Part& part = outs_[i];
      if (sums(part)) {
        if (block > 0) add_block(args, part, args.outs[i]);
      } else if (part.staged()) {
        scatter_rows(*pool_, part.dtype, last ? part.last : part.whole, room(args, part.room),
                     const_cast<void*>(window(part, args.outs[i], begin)));
      }
    }
  }

  void add_block(const KernelArgs& args, const Part& part, void* out) const {
    float* const sum = part.staged() ? room(args, part.room) : static_cast<float*>(out);
    const float* const more = room(args, part.block);
    pool_->split(part.whole.count * part.whole.length, kWidenedGrain,
                 [&](std::int64_t from, std::int64_t to) {
                   accumulate(more + from, sum + from, to - from);
                 });
  }

  /// Where the kernel finds an operand.
  const void* operand(const KernelArgs& args, const Part& part, const void* from,
                      const Rows& rows) const {
    if (!part.staged()) return from;
    void* const to = room(args, part.room);
    gather_rows(*pool_, part.dtype, rows, from, to);
    return to;
  }

  static const void* window(const Part& part, const void* data, std::int64_t begin) {
    return static_cast<const std::byte*>(data) + begin * part.stride * size_of(part.dtype);
  }

  std::int64_t room_for(const TensorType& type) {
    const std::int64_t out = bytes_;
    bytes_ += (type.numel() * size_of(computed_in(type.dtype)) + 63) / 64 * 64;
    return out;
  }

  static float* room(const KernelArgs& args, std::int64_t offset) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) + offset);
  }

  Pool* pool_;
  Blocks blocks_;
  std::vector<Part> ins_, outs_;
  std::unique_ptr<Kernel> kernel_, last_;  // of the last block, where that is shorter
  std::string name_;
  std::int64_t bytes_ = 0;
  // Set anew by every run: kept here so that a run allocates nothing. One thread at a time, says
  // Kernel.
  mutable std::vector<const void*> in_data_;
  mutable std::vector<void*> out_data_;
};

}  // namespace

std::unique_ptr<Kernel> make_widened(const KernelRequest& request, Pool& pool,
                                     const MakeKernel& make, std::int64_t block_bytes) {
  return std::make_unique<WidenedKernel>(request, pool, make, block_bytes);
}

}  // namespace tessera::cpu
