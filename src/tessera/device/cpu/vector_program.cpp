#include "tessera/device/cpu/vector_program.h"

#include <algorithm>

#include "tessera/base/round_up.h"
#include "tessera/ops/reference.h"

namespace tessera::cpu {

namespace {

/// Strides of an operand over `shape`, to which it broadcasts: 0 along dims that it repeats.
Shape broadcast_strides(const Shape& shape, const Shape& own, const Shape& strides) {
  Shape out = Shape::of(shape.ndim(), 0);
  for (int d = 0; d < own.ndim(); ++d) {
    if (own.back(d) != 1) out[shape.ndim() - 1 - d] = strides.back(d);
  }
  return out;
}

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

constexpr std::int64_t kSmallTile = 512, kMiddleTile = 1024, kLargeTile = 2048;
constexpr std::int64_t kWorthAThread =
    16384;  // elements: some microseconds, as long as waking another thread

}  // namespace

Program::Reg Program::add(Register reg) {
  registers_.push_back(reg);
  return static_cast<Reg>(registers_.size()) - 1;
}

Program::Reg Program::operand(int index, const TensorType& type, const Shape& strides) {
  Register reg;
  reg.from = From::Operand;
  reg.dtype = type.dtype;
  reg.operand = index;
  reg.strides = broadcast_strides(shape_, type.shape, strides);
  return add(reg);
}

Program::Reg Program::constant(double value, DType dtype) {
  Register reg;
  reg.from = From::Constant;
  reg.dtype = dtype;
  reg.value = value;
  reg.read = Read::Once;
  return add(reg);
}

Program::Reg Program::apply(TileFunction function, const std::vector<Reg>& ins, DType dtype,
                            const void* extra) {
  Register reg;
  reg.dtype = dtype;
  Step step;
  step.function = function;
  step.num_in = static_cast<int>(ins.size());
  std::copy(ins.begin(), ins.end(), step.in);
  step.out = add(reg);
  step.extra = extra;
  steps_.push_back(step);
  return step.out;
}

void Program::finish(int threads) {
  numel_ = shape_.numel();
  collapse();
  choose_tiles(threads);
  classify();
  steps_ = schedule(steps_);
  assign_slots();
  fill_constants();
}

/// Joins neighbouring dims that every operand walks with one stride, and drops those of size 1.
void Program::collapse() {
  Shape dims;
  std::vector<Shape> strides(registers_.size());
  for (int d = 0; d < shape_.ndim(); ++d) {
    if (shape_[d] == 1) continue;
    bool joined = !dims.empty();
    for (std::size_t r = 0; r < registers_.size() && joined; ++r) {
      if (registers_[r].from != From::Operand) continue;
      joined = strides[r].back() == registers_[r].strides[d] * shape_[d];
    }
    if (joined) {
      dims[dims.ndim() - 1] *= shape_[d];
    } else {
      dims.push_back(shape_[d]);
    }
    for (std::size_t r = 0; r < registers_.size(); ++r) {
      if (registers_[r].from != From::Operand) continue;
      if (!joined) strides[r].push_back(0);
      strides[r][dims.ndim() - 1] = registers_[r].strides[d];
    }
  }
  dims_ = dims;
  for (std::size_t r = 0; r < registers_.size(); ++r) registers_[r].strides = strides[r];
}

void Program::choose_tiles(int threads) {
  row_ = dims_.empty() ? 1 : dims_.back();
  rows_ = row_ == 0 ? 0 : numel_ / row_;
  const std::size_t live = results_.size() + registers_.size();
  const std::int64_t most = live <= 4 ? kLargeTile : live <= 8 ? kMiddleTile : kSmallTile;
  if (row_ > most) {
    pieces_ = (row_ + most - 1) / most;
    tile_ = round_up((row_ + pieces_ - 1) / pieces_, 64);
    pieces_ = (row_ + tile_ - 1) / tile_;
    tiles_ = rows_ * pieces_;
  } else if (numel_ > 0) {
    rows_per_tile_ = std::clamp<std::int64_t>(most / row_, 1, rows_);
    tile_ = rows_per_tile_ * row_;
    tiles_ = (rows_ + rows_per_tile_ - 1) / rows_per_tile_;
  }
  const std::int64_t most_parts = std::max<std::int64_t>(1, numel_ / kWorthAThread);
  parts_ = static_cast<int>(
      std::min({std::int64_t{threads}, most_parts, std::max<std::int64_t>(1, tiles_)}));
}

void Program::classify() {
  const Shape dense = dims_.strides();
  for (Register& reg : registers_) {
    if (reg.from != From::Operand) continue;
    const bool uniform =
        std::all_of(reg.strides.begin(), reg.strides.end(), [](auto s) { return s == 0; });
    bool per_row = pieces_ == 1;  // the same in every row, and tiles hold whole rows
    for (int d = 0; d + 1 < dims_.ndim(); ++d) per_row = per_row && reg.strides[d] == 0;
    if (numel_ <= 1 || reg.strides == dense || (pieces_ > 1 && reg.strides.back() == 1)) {
      reg.read = Read::Direct;
    } else {
      reg.read = uniform || per_row ? Read::Once : Read::Expand;
    }
  }
}

/// What each tile does, in order: operands are expanded before they are first needed, results are
/// stored.
std::vector<Program::Step> Program::schedule(const std::vector<Step>& applied) {
  std::vector<Step> out;
  std::vector<bool> expanded(registers_.size(), false);
  for (const Step& step : applied) {
    bool once = true;
    for (int i = 0; i < step.num_in; ++i) {
      once = once && registers_[static_cast<std::size_t>(step.in[i])].read == Read::Once;
    }
    registers_[static_cast<std::size_t>(step.out)].read = once ? Read::Once : Read::Expand;
    if (once) {
      once_.push_back(step);
      continue;
    }
    for (int i = 0; i < step.num_in; ++i) {
      const auto r = static_cast<std::size_t>(step.in[i]);
      if (registers_[r].from != From::Operand || registers_[r].read != Read::Expand || expanded[r])
        continue;
      expanded[r] = true;
      Step expansion;
      expansion.kind = Kind::Expand;
      expansion.out = step.in[i];
      out.push_back(expansion);
    }
    out.push_back(step);
  }
  // Result 0 comes last: writing it may destroy an operand that something else still reads.
  for (std::size_t j = results_.size(); j-- > 0;) {
    const Reg reg = results_[j];
    const auto made = std::find_if(out.begin(), out.end(), [&](const Step& s) {
      return s.kind == Kind::Apply && s.out == reg && s.result < 0;
    });
    if (made != out.end() &&
        (j > 0 || !reads_later(out, static_cast<std::size_t>(made - out.begin())))) {
      made->result = static_cast<int>(j);
      continue;
    }
    const Register& source = registers_[static_cast<std::size_t>(reg)];
    const bool straight = source.from == From::Operand && source.read == Read::Expand;
    Step store;
    store.kind = straight ? Kind::Expand : Kind::Copy;
    store.in[0] = reg;
    store.num_in = straight ? 0 : 1;
    store.out = reg;
    store.result = static_cast<int>(j);
    out.push_back(store);
  }
  return out;
}

bool Program::reads_later(const std::vector<Step>& steps, std::size_t after) const {
  for (std::size_t s = after + 1; s < steps.size(); ++s) {
    for (int i = 0; i < steps[s].num_in; ++i) {
      const Register& reg = registers_[static_cast<std::size_t>(steps[s].in[i])];
      if (reg.from == From::Operand && reg.read == Read::Direct) return true;
    }
  }
  return false;
}

/// Tiles in the workspace: one for each value that lasts a run, shared ones for those that last
/// some steps.
void Program::assign_slots() {
  int widest = 1;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    for (int i = 0; i < steps_[s].num_in; ++i) {
      registers_[static_cast<std::size_t>(steps_[s].in[i])].last_use = static_cast<int>(s);
    }
  }
  for (Register& reg : registers_) {
    widest = std::max(widest, size_of(reg.dtype));
    if (reg.read == Read::Once && reg.from != From::Constant) reg.slot = slots_++;
  }
  std::vector<int> free;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    Register& out = registers_[static_cast<std::size_t>(step.out)];
    std::vector<int> ended;
    for (int i = 0; i < step.num_in; ++i) {
      Register& in = registers_[static_cast<std::size_t>(step.in[i])];
      if (in.slot < 0 || in.read == Read::Once || in.last_use != static_cast<int>(s)) continue;
      // A result over an operand of the same width is written after that was read; over another
      // width it is not.
      (size_of(in.dtype) == size_of(out.dtype) ? free : ended).push_back(in.slot);
      in.last_use = -1;
    }
    if (step.result < 0) {
      if (free.empty()) free.push_back(slots_++);
      out.slot = free.back();
      free.pop_back();
    }
    free.insert(free.end(), ended.begin(), ended.end());
  }
  slot_bytes_ = round_up(tile_ * widest, 64);
  part_bytes_ = round_up(static_cast<std::int64_t>(registers_.size() * sizeof(void*)), 64) +
                slots_ * slot_bytes_;
}

void Program::fill_constants() {
  for (Register& reg : registers_) {
    if (reg.from != From::Constant) continue;
    reg.constant = static_cast<std::int64_t>(constants_.size());
    constants_.resize(constants_.size() +
                      static_cast<std::size_t>(round_up(tile_ * size_of(reg.dtype), 64)));
    with_element(reg.dtype, [&](auto zero) {
      using T = decltype(zero);
      std::fill_n(reinterpret_cast<T*>(constants_.data() + reg.constant), tile_,
                  static_cast<T>(reg.value));
    });
  }
}

// ---- running

void Program::run(const KernelArgs& args, Pool& pool) const {
  std::byte* work = static_cast<std::byte*>(args.workspace);
  if (parts_ == 1) return run_tiles(args, work, 0, tiles_);
  pool.run(parts_, [&](int part) {
    run_tiles(args, work + part * part_bytes_, tiles_ * part / parts_,
              tiles_ * (part + 1) / parts_);
  });
}

Program::Window Program::window(std::int64_t tile) const {
  const std::int64_t row = tile / pieces_ * rows_per_tile_, column = tile % pieces_ * tile_;
  const std::int64_t n =
      pieces_ > 1 ? std::min(tile_, row_ - column) : std::min(rows_per_tile_, rows_ - row) * row_;
  return {row * row_ + column, n, row, column};
}

void Program::run_tiles(const KernelArgs& args, std::byte* work, std::int64_t begin,
                        std::int64_t end) const {
  if (begin >= end) return;
  std::byte** values = reinterpret_cast<std::byte**>(work);
  std::byte* slots =
      work + round_up(static_cast<std::int64_t>(registers_.size() * sizeof(void*)), 64);
  const Window whole{0, tile_, 0, 0};
  for (std::size_t r = 0; r < registers_.size(); ++r) {
    const Register& reg = registers_[r];
    if (reg.from == From::Constant) {
      values[r] = const_cast<std::byte*>(constants_.data() + reg.constant);  // only read
    } else if (reg.slot >= 0) {
      values[r] = slots + reg.slot * slot_bytes_;
      if (reg.from == From::Operand && reg.read == Read::Once) expand(reg, args, whole, values[r]);
    }
  }
  for (const Step& step : once_) run_step(step, args, whole, values);
  const Shape dense = dims_.strides();
  for (std::int64_t t = begin; t < end; ++t) {
    const Window at = window(t);
    for (std::size_t r = 0; r < registers_.size(); ++r) {
      const Register& reg = registers_[r];
      if (reg.from != From::Operand || reg.read != Read::Direct) continue;
      const std::int64_t offset =
          reg.strides == dense ? at.first : row_offset(reg, at.row) + at.column;
      const void* base = args.ins[reg.operand];
      values[r] = static_cast<std::byte*>(const_cast<void*>(base)) +
                  offset * size_of(reg.dtype);  // only read
    }
    for (const Step& step : steps_) run_step(step, args, at, values);
  }
}

void Program::run_step(const Step& step, const KernelArgs& args, const Window& at,
                       std::byte** values) const {
  const auto out = static_cast<std::size_t>(step.out);
  const int size = size_of(registers_[out].dtype);
  std::byte* to = values[out];
  if (step.result >= 0) to = static_cast<std::byte*>(args.outs[step.result]) + at.first * size;
  switch (step.kind) {
    case Kind::Expand: return expand(registers_[out], args, at, to);
    case Kind::Copy: std::copy_n(values[out], at.n * size, to); return;
    case Kind::Apply: break;
  }
  TileCall call;
  for (int i = 0; i < step.num_in; ++i) call.in[i] = values[step.in[i]];
  call.out = to;
  call.n = at.n;
  call.first = at.first;
  call.microbatch = args.microbatch;
  call.extra = step.extra;
  step.function(call);
  values[out] = to;
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
