#include <algorithm>

#include "tessera/base/round_up.h"
#include "tessera/device/cpu/vector_convert.h"
#include "tessera/device/cpu/vector_program.h"

namespace tessera::cpu {

namespace {

/// `to` and the following `count` elements from `from` at a stride.
template <typename T>
void copy_run(std::byte* to, const std::byte* from, std::int64_t count, std::int64_t stride) {
  T* y = reinterpret_cast<T*>(to);
  const T* x = reinterpret_cast<const T*>(from);
  if (stride == 0) {
    std::fill_n(y, count, *x);
  } else if (stride == 1) {
    std::copy_n(x, count, y);
  } else {
    for (std::int64_t i = 0; i < count; ++i) y[i] = x[i * stride];
  }
}

void copy_run(int size, std::byte* to, const std::byte* from, std::int64_t count,
              std::int64_t stride) {
  switch (size) {
    case 1: return copy_run<std::uint8_t>(to, from, count, stride);
    case 2: return copy_run<std::uint16_t>(to, from, count, stride);
    case 4: return copy_run<std::uint32_t>(to, from, count, stride);
    default: return copy_run<std::uint64_t>(to, from, count, stride);
  }
}

}  // namespace

void Program::run(const KernelArgs& args, Pool& pool) const {
  parts_ == 1 ? run_part(args, 0) : pool.run(parts_, [&](int part) { run_part(args, part); });
  add_up(args);
}

/// Sums over rows: those of the chunks, in order.
void Program::add_up(const KernelArgs& args) const {
  for (std::size_t j = 0; j < results_.size(); ++j) {
    const auto [result, dtype] = results_[j];
    const Register& reg = at(result);
    if (reg.sum < 0) continue;
    const bool narrows = is_16_bit(dtype);
    float* to = narrows ? reinterpret_cast<float*>(sums_of(args, 0) + reg.sum)
                        : static_cast<float*>(args.outs[j]);
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      const float* from = reinterpret_cast<const float*>(sums_of(args, chunk) + reg.sum);
      for (std::int64_t i = 0; i < whole_row_; ++i) to[i] = chunk == 0 ? from[i] : to[i] + from[i];
    }
    if (narrows) narrow(dtype, to, args.outs[j], whole_row_);
  }
}

Program::Window Program::window(std::int64_t tile) const {
  const std::int64_t row = tile / pieces_ * rows_per_tile_, column = tile % pieces_ * tile_;
  const std::int64_t n =
      pieces_ > 1 ? std::min(tile_, row_ - column) : std::min(rows_per_tile_, rows_ - row) * row_;
  return {row * row_ + column, n, row, column};
}

template <typename Visit>
void Program::each_window(int chunk, const Visit& visit) const {
  if (!by_rows_) {
    for (std::int64_t t = tiles_ * chunk / chunks_; t < tiles_ * (chunk + 1) / chunks_; ++t)
      visit(window(t));
    return;
  }
  const std::int64_t unit = whole_row_ / row_, units = rows_ / unit;
  const std::int64_t end = units * (chunk + 1) / chunks_ * unit;
  for (std::int64_t row = units * chunk / chunks_ * unit; row < end; row += rows_per_tile_)
    visit(Window{row * row_, std::min(rows_per_tile_, end - row) * row_, row, 0});
}

void Program::run_part(const KernelArgs& args, int part) const {
  const int begin = chunks_ * part / parts_, end = chunks_ * (part + 1) / parts_;
  std::byte* const work = static_cast<std::byte*>(args.workspace) + part * part_bytes_;
  std::byte** values = reinterpret_cast<std::byte**>(work);
  const Window whole{0, tile_, 0, 0};
  const auto base = [&](const Register& reg) {
    return static_cast<std::byte*>(const_cast<void*>(args.ins[reg.operand]));  // only read
  };
  for (std::size_t r = 0; r < registers_.size(); ++r) {
    const Register& reg = registers_[r];
    if (reg.from == From::Constant) {
      values[r] = const_cast<std::byte*>(constants_.data() + reg.constant);  // only read
    } else if (reg.from == From::Pointer) {
      values[r] = base(reg);
    } else if (reg.slot >= 0) {
      values[r] = work + slots_begin_ + reg.slot * slot_bytes_;
      if (reg.from == From::Operand && reg.read == Read::Once && numel_ > 0)
        expand(reg, args, whole, values[r]);
    }
  }
  if (numel_ > 0) {
    for (const Step& step : once_) run_step(step, args, whole, values);
  }
  const Shape dense = dims_.strides();
  for (int chunk = begin; chunk < end; ++chunk) {
    std::byte* const sums = sums_of(args, chunk);
    std::fill_n(sums, sum_bytes_, std::byte{0});
    for (std::size_t r = 0; r < registers_.size(); ++r) {
      if (registers_[r].sum >= 0) values[r] = sums + registers_[r].sum;
    }
    each_window(chunk, [&](const Window& at) {
      for (std::size_t r = 0; r < registers_.size(); ++r) {
        const Register& reg = registers_[r];
        const int size = size_of(reg.dtype);
        if (reg.from == From::Pointer && reg.each == Each::Row) {
          values[r] = base(reg) + at.first / whole_row_ * size;
        } else if (reg.from == From::Operand && reg.read == Read::Direct) {
          const std::int64_t offset =
              reg.strides == dense ? at.first : row_offset(reg, at.row) + at.column;
          values[r] = base(reg) + offset * size;
        }
      }
      for (const Step& step : steps_) run_step(step, args, at, values);
    });
  }
}

void Program::run_step(const Step& step, const KernelArgs& args, const Window& at,
                       std::byte** values) const {
  std::byte* to[TileCall::kMaxOut] = {};
  for (int i = 0; i < step.num_out; ++i) {
    const Register& reg = this->at(step.out[i]);
    to[i] = values[step.out[i]];
    if (step.result[i] < 0 || reg.each == Each::Whole) continue;
    const std::int64_t first = reg.each == Each::Row ? at.first / whole_row_ : at.first;
    to[i] = static_cast<std::byte*>(args.outs[step.result[i]]) + first * size_of(reg.dtype);
  }
  const Register& reg = this->at(step.out[0]);
  if (step.kind == Kind::Expand) return expand(reg, args, at, to[0]);
  if (step.kind == Kind::Copy) {
    const std::int64_t count = reg.each == Each::Row ? at.n / whole_row_ : at.n;
    std::copy_n(values[step.out[0]], count * size_of(reg.dtype), to[0]);
    return;
  }
  TileCall call;
  for (int i = 0; i < step.num_in; ++i) {
    const Register& in = this->at(step.in[i]);
    call.in[i] = values[step.in[i]];
    const bool elements = in.from == From::Operand || in.from == From::Step;
    if (elements && in.slot < 0) call.in_memory |= 1u << i;  // an operand, or a result
  }
  call.out = to[0];
  for (int i = 1; i < step.num_out; ++i) call.more[i - 1] = to[i];
  call.n = at.n;
  call.row = whole_row_;
  call.first = at.first;
  call.microbatch = args.microbatch;
  call.extra = step.extra.get();
  step.function(call);
  for (int i = 0; i < step.num_out; ++i) values[step.out[i]] = to[i];
}

std::int64_t Program::row_offset(const Register& reg, std::int64_t row) const {
  std::int64_t offset = 0;
  for (int d = dims_.ndim() - 2; d >= 0; --d) {
    offset += row % dims_[d] * reg.strides[d];
    row /= dims_[d];
  }
  return offset;
}

void Program::expand(const Register& reg, const KernelArgs& args, const Window& at,
                     std::byte* to) const {
  const int size = size_of(reg.dtype);
  const std::byte* base = static_cast<const std::byte*>(args.ins[reg.operand]);
  const std::int64_t stride = dims_.empty() ? 0 : reg.strides.back();
  if (pieces_ > 1) {
    const std::int64_t offset = row_offset(reg, at.row) + at.column * stride;
    return copy_run(size, to, base + offset * size, at.n, stride);
  }
  for (std::int64_t row = at.row, end = at.row + at.n / row_; row < end; ++row, to += row_ * size) {
    copy_run(size, to, base + row_offset(reg, row) * size, row_, stride);
  }
}

}  // namespace tessera::cpu
