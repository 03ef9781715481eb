#include "tessera/device/cpu/vector_program.h"

#include <algorithm>

#include "tessera/base/round_up.h"
#include "tessera/device/cpu/vector_convert.h"
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

constexpr std::int64_t kSmallTile = 512, kMiddleTile = 1024, kLargeTile = 2048;
constexpr std::int64_t kRowsOfAChunk = 32,
                       kMostChunks = 32;  // where rows are summed; fewer long ones
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

Program::Reg Program::widened(Reg reg) {
  if (!is_16_bit(at(reg).dtype)) return reg;
  if (at(reg).widened < 0) {
    const Reg wide = apply(widen_tile(at(reg).dtype), {reg}, DType::F32);
    at(reg).widened = wide;
  }
  return at(reg).widened;
}

Program::Reg Program::narrowed(Reg reg, DType dtype) {
  if (!is_16_bit(dtype) || at(reg).dtype == dtype) return reg;
  return apply(narrow_tile(dtype), {reg}, dtype);
}

void Program::result(Reg reg, DType dtype) { results_.push_back({reg, dtype}); }

Program::Reg Program::constant(double value, DType dtype) {
  Register reg;
  reg.from = From::Constant;
  reg.dtype = dtype;
  reg.value = value;
  reg.read = Read::Once;
  return add(reg);
}

Program::Reg Program::pointer(int index, DType dtype, Each each) {
  Register reg;
  reg.from = From::Pointer;
  reg.each = each;
  reg.dtype = dtype;
  reg.operand = index;
  return add(reg);
}

Program::Reg Program::apply(TileFunction function, const std::vector<Reg>& ins, DType dtype) {
  const Reg out = apply(Tiling{function}, ins, {{Each::Element, dtype}})[0];
  steps_.back().every_tile = false;
  return out;
}

std::vector<Program::Reg> Program::apply(const Tiling& tiling, const std::vector<Reg>& ins,
                                         const std::vector<Made>& outs) {
  check(ins.size() <= TileCall::kMaxIn && outs.size() <= TileCall::kMaxOut, "a tile function of ",
        ins.size(), " operands and ", outs.size(), " results");
  Step step;
  step.function = tiling.function;
  step.extra = tiling.extra;
  step.every_tile = true;
  step.num_in = static_cast<int>(ins.size());
  step.num_out = static_cast<int>(outs.size());
  std::copy(ins.begin(), ins.end(), step.in);
  std::vector<Reg> made;
  for (const Made& out : outs) {
    Register reg;
    reg.each = out.each;
    reg.dtype = out.dtype;
    made.push_back(add(reg));
  }
  std::copy(made.begin(), made.end(), step.out);
  steps_.push_back(std::move(step));
  return made;
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
/// Rows stay apart: the last dim is theirs, also where each has one element.
void Program::collapse() {
  Shape dims;
  std::vector<Shape> strides(registers_.size());
  const int in_row = shape_.ndim() - row_dims_;
  for (int d = 0, last = 0; d < shape_.ndim(); ++d) {
    if (d >= in_row) whole_row_ *= shape_[d];
    if (shape_[d] == 1) continue;
    bool joined = !dims.empty() && (last < in_row) == (d < in_row);
    last = d;
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
  if (row_dims_ > 0 && whole_row_ == 1) {
    dims.push_back(1);
    for (Shape& own : strides) own.push_back(1);
  }
  dims_ = dims;
  for (std::size_t r = 0; r < registers_.size(); ++r) registers_[r].strides = strides[r];
}

void Program::choose_tiles(int threads) {
  row_ = dims_.empty() ? 1 : dims_.back();
  rows_ = row_ == 0 ? 0 : numel_ / row_;
  // What is read where it lies takes no room of its own.
  const Shape dense = dims_.strides();
  const auto in_tiles = std::ranges::count_if(registers_, [&](const Register& reg) {
    return reg.from != From::Pointer && !(reg.from == From::Operand && reg.strides == dense);
  });
  const std::size_t live = results_.size() + static_cast<std::size_t>(in_tiles);
  const std::int64_t most = live <= 4 ? kLargeTile : live <= 8 ? kMiddleTile : kSmallTile;
  by_rows_ = row_dims_ > 0 && numel_ > 0;
  if (by_rows_) {
    const std::int64_t unit = whole_row_ / row_, units = rows_ / unit;  // in rows of dims_
    rows_per_tile_ = std::clamp<std::int64_t>(most / whole_row_, 1, units) * unit;
    tile_ = rows_per_tile_ * row_;
  } else if (row_ > most) {
    pieces_ = (row_ + most - 1) / most;
    tile_ = round_up((row_ + pieces_ - 1) / pieces_, 64);
    pieces_ = (row_ + tile_ - 1) / tile_;
    tiles_ = rows_ * pieces_;
  } else if (numel_ > 0) {
    rows_per_tile_ = std::clamp<std::int64_t>(most / row_, 1, rows_);
    tile_ = rows_per_tile_ * row_;
    tiles_ = (rows_ + rows_per_tile_ - 1) / rows_per_tile_;
  }
  const std::int64_t pieces = by_rows_ ? numel_ / whole_row_ : tiles_;
  const std::int64_t most_parts =
      std::max<std::int64_t>(1, std::min(pieces, numel_ / kWorthAThread));
  parts_ = static_cast<int>(std::min(std::int64_t{threads}, most_parts));
  const bool sums = std::any_of(registers_.begin(), registers_.end(),
                                [](const Register& reg) { return is_sum(reg); });
  chunks_ = parts_;
  if (sums) {
    const std::int64_t rows =
        std::clamp<std::int64_t>(kWorthAThread / whole_row_, 1, kRowsOfAChunk);
    chunks_ = static_cast<int>(std::clamp<std::int64_t>(pieces / rows, 1, kMostChunks));
    parts_ = std::min(parts_, chunks_);
  }
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
    bool once = !step.every_tile;
    for (int i = 0; i < step.num_in; ++i) once = once && at(step.in[i]).read == Read::Once;
    for (int i = 0; i < step.num_out; ++i) at(step.out[i]).read = once ? Read::Once : Read::Expand;
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
      expansion.out[0] = step.in[i];
      expansion.num_out = 1;
      out.push_back(expansion);
    }
    out.push_back(step);
  }
  // Result 0 comes last: writing it may destroy an operand that something else still reads.
  for (std::size_t j = results_.size(); j-- > 0;) {
    if (store_where_made(out, j)) continue;
    const Reg result = results_[j].reg;
    const Register& source = at(result);
    const bool straight = source.from == From::Operand && source.read == Read::Expand;
    Step store;
    store.kind = straight ? Kind::Expand : Kind::Copy;
    store.in[0] = result;
    store.num_in = straight ? 0 : 1;
    store.out[0] = result;
    store.num_out = 1;
    store.result[0] = static_cast<int>(j);
    out.push_back(std::move(store));
  }
  return out;
}

/// Has the step that makes the result write it to its place, where that destroys nothing.
bool Program::store_where_made(std::vector<Step>& steps, std::size_t result) const {
  for (std::size_t s = 0; s < steps.size(); ++s) {
    Step& step = steps[s];
    for (int i = 0; step.kind == Kind::Apply && i < step.num_out; ++i) {
      if (step.out[i] != results_[result].reg || step.result[i] >= 0) continue;
      if (result == 0 && !may_be_overwritten(steps, s, at(step.out[i]).each)) return false;
      step.result[i] = static_cast<int>(result);
      return true;
    }
  }
  return false;
}

/// True where no operand of result 0's shape is read after the step. Sums lie elsewhere until the
/// end.
bool Program::may_be_overwritten(const std::vector<Step>& steps, std::size_t after,
                                 Each each) const {
  if (each == Each::Whole) return true;
  for (std::size_t s = after + 1; s < steps.size(); ++s) {
    if (each == Each::Row) return false;
    for (int i = 0; i < steps[s].num_in; ++i) {
      const Register& reg = at(steps[s].in[i]);
      if (reg.from == From::Operand && reg.read == Read::Direct) return false;
    }
  }
  return true;
}

/// Tiles in the workspace: one for each value that lasts a run, shared ones for those that last
/// some steps.
void Program::assign_slots() {
  int widest = 1;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    for (int i = 0; i < steps_[s].num_in; ++i) at(steps_[s].in[i]).last_use = static_cast<int>(s);
  }
  for (Register& reg : registers_) {
    if (reg.from != From::Pointer) widest = std::max(widest, size_of(reg.dtype));
    if (reg.read == Read::Once && reg.from != From::Constant) reg.slot = slots_++;
    if (!is_sum(reg)) continue;
    reg.sum = sum_bytes_;
    sum_bytes_ += round_up(whole_row_ * std::int64_t{sizeof(float)}, 64);
  }
  std::vector<int> free;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const int size = size_of(at(step.out[0]).dtype);
    std::vector<int> ended;
    for (int i = 0; i < step.num_in; ++i) {
      Register& in = at(step.in[i]);
      if (in.slot < 0 || in.read == Read::Once || in.last_use != static_cast<int>(s)) continue;
      // A result over an operand of the same width is written after that was read; over another
      // width it is not, nor are further results.
      (size_of(in.dtype) == size && step.num_out == 1 ? free : ended).push_back(in.slot);
      in.last_use = -1;
    }
    for (int i = 0; i < step.num_out; ++i) {
      Register& out = at(step.out[i]);
      if (step.result[i] >= 0 || out.sum >= 0) continue;
      if (free.empty()) free.push_back(slots_++);
      out.slot = free.back();
      free.pop_back();
    }
    free.insert(free.end(), ended.begin(), ended.end());
  }
  slot_bytes_ = round_up(tile_ * widest, 64);
  slots_begin_ = round_up(static_cast<std::int64_t>(registers_.size() * sizeof(void*)), 64);
  part_bytes_ = slots_begin_ + slots_ * slot_bytes_;
  sums_begin_ = parts_ * part_bytes_;
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

}  // namespace tessera::cpu
