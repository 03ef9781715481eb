#pragma once
/// A program of tile functions: work done tile by tile, so that what lies between stays in the
/// first cache.
///
/// One iteration space, the shape of the results; operands broadcast to it by their strides. Values
/// that do not depend on the tile (scalars, and vectors that repeat within a tile) are computed
/// once per thread and run. Where functions work row by row, tiles are whole rows. Sums over rows
/// are added up row by row in chunks, and those of the chunks in order: chunks follow from the
/// shape alone, so bits depend neither on the number of threads nor on what else the program does.
/// 16-bit floats are of 16 bits in tiles too: functions widen them when they read them, and round
/// each result once. For a function that knows f32 only they are converted tile by tile.

#include <cstddef>
#include <memory>
#include <vector>

#include "tessera/device/cpu/kernels.h"
#include "tessera/device/cpu/vector_tiles.h"
#include "tessera/ops/fused.h"

namespace tessera::cpu {

class Program {
 public:
  using Reg = int;
  /// `row_dims`: how many last dims are a row to its functions; 0: none works row by row.
  explicit Program(const Shape& shape, int row_dims = 0) : shape_(shape), row_dims_(row_dims) {}

  // Building, in the order of computation.
  /// Operand `index` of the call, aligned at the last dim; strides in elements.
  Reg operand(int index, const TensorType& type, const Shape& strides);
  Reg constant(double value, DType dtype);
  using Each = BodySpace::Each;
  /// An operand that a function reads as it lies, dense.
  Reg pointer(int index, DType dtype, Each each);
  Reg apply(TileFunction function, const std::vector<Reg>& ins, DType dtype);
  /// A function that needs more than a tile: where it lies, its rows. Of results for Each::Whole
  /// each call adds to what is there.
  struct Made {
    Each each;
    DType dtype;
  };
  std::vector<Reg> apply(const Tiling& tiling, const std::vector<Reg>& ins,
                         const std::vector<Made>& outs);
  /// A 16-bit float as f32; others stay.
  Reg widened(Reg reg);
  /// An f32 rounded to `dtype`, where that has 16 bits and the value has not.
  Reg narrowed(Reg reg, DType dtype);
  /// Says that the next result of the call is this value; a sum may be an f32 that is rounded to a
  /// `dtype` of 16 bits when all of it is there. Result 0 may lie in an operand's buffer; others
  /// only where the step that makes them alone reads that operand. Each value for Each::Whole must
  /// be one.
  void result(Reg reg, DType dtype);

  /// Decides on tiles and memory; nothing is added afterwards.
  void finish(int threads);

  std::int64_t workspace_bytes() const { return sums_begin_ + chunks_ * sum_bytes_; }
  void run(const KernelArgs& args, Pool& pool) const;

 private:
  enum class From : std::uint8_t { Operand, Pointer, Constant, Step };
  enum class Read : std::uint8_t {
    Direct,  // contiguous in the operand wherever the tile lies
    Expand,  // copied into a tile of its own
    Once,    // the same for every tile
  };
  struct Register {
    From from = From::Step;
    Each each = Each::Element;
    DType dtype = DType::F32;
    int operand = -1;
    double value = 0;  // of a constant
    Shape strides;     // of an operand, over dims_
    Read read = Read::Expand;
    int slot = -1;               // its tile in the workspace
    std::int64_t constant = -1;  // offset in constants_
    std::int64_t sum = -1;       // of a sum over rows: its place among those of a chunk
    int last_use = -1;
    Reg widened = -1;  // the same value in f32, where that is needed
  };
  enum class Kind : std::uint8_t { Apply, Expand, Copy };
  struct Step {
    Kind kind = Kind::Apply;
    TileFunction function = nullptr;
    Reg in[TileCall::kMaxIn] = {};
    int num_in = 0;
    Reg out[TileCall::kMaxOut] = {};
    int result[TileCall::kMaxOut] = {-1, -1, -1};  // >= 0: written there, not to a slot
    int num_out = 0;
    bool every_tile = false;  // also where no operand depends on the tile
    std::shared_ptr<const void> extra;
  };
  struct Result {
    Reg reg;
    DType dtype;  // of a sum: as it is stored
  };
  /// Where a tile lies.
  struct Window {
    std::int64_t first, n;     // row-major
    std::int64_t row, column;  // of the first element; a row is the last of dims_
  };

  static bool is_sum(const Register& reg) {
    return reg.from == From::Step && reg.each == Each::Whole;
  }
  Reg add(Register reg);
  Register& at(Reg reg) { return registers_[static_cast<std::size_t>(reg)]; }
  const Register& at(Reg reg) const { return registers_[static_cast<std::size_t>(reg)]; }
  void collapse();
  void choose_tiles(int threads);
  void classify();
  std::vector<Step> schedule(const std::vector<Step>& steps);
  bool store_where_made(std::vector<Step>& steps, std::size_t result) const;
  bool may_be_overwritten(const std::vector<Step>& steps, std::size_t after, Each each) const;
  void assign_slots();
  void fill_constants();

  Window window(std::int64_t tile) const;
  template <typename Visit>
  void each_window(int chunk, const Visit& visit) const;
  std::int64_t row_offset(const Register& reg, std::int64_t row) const;
  std::byte* sums_of(const KernelArgs& args, int chunk) const {
    return static_cast<std::byte*>(args.workspace) + sums_begin_ + chunk * sum_bytes_;
  }
  void add_up(const KernelArgs& args) const;
  void run_part(const KernelArgs& args, int part) const;
  void run_step(const Step& step, const KernelArgs& args, const Window& at,
                std::byte** values) const;
  void expand(const Register& reg, const KernelArgs& args, const Window& at, std::byte* to) const;

  Shape shape_;
  int row_dims_;
  std::vector<Register> registers_;
  std::vector<Step> steps_, once_;  // per tile; once per thread and run
  std::vector<Result> results_;
  std::vector<std::byte> constants_;

  Shape dims_;  // shape_ with dims joined that every operand walks as one
  std::int64_t numel_ = 0, row_ = 1, rows_ = 1;  // row_: the last of dims_
  std::int64_t whole_row_ = 1;                   // elements of the last row_dims_ of shape_
  std::int64_t tile_ = 1, pieces_ = 1, rows_per_tile_ = 1, tiles_ = 0;
  bool by_rows_ = false;  // tiles are whole rows
  int parts_ = 1;         // threads
  int chunks_ = 1;        // of tiles, at least one for each part
  int slots_ = 0;
  std::int64_t slot_bytes_ = 64, slots_begin_ = 0, part_bytes_ = 0;
  std::int64_t sums_begin_ = 0, sum_bytes_ = 0;  // of a chunk
};

}  // namespace tessera::cpu
