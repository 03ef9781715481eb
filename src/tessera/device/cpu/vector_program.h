#pragma once
/// A program of tile functions: elementwise work done tile by tile, so that what lies between stays
/// in the first cache.
///
/// One iteration space, the shape of the results; operands broadcast to it by their strides. Values
/// that do not depend on the tile (scalars, and vectors that repeat within a tile) are computed
/// once per thread and run.

#include <cstddef>
#include <vector>

#include "tessera/device/cpu/kernels.h"
#include "tessera/device/cpu/vector_tiles.h"

namespace tessera::cpu {

class Program {
 public:
  using Reg = int;
  explicit Program(const Shape& shape) : shape_(shape) {}

  // Building, in the order of computation.
  /// Operand `index` of the call, aligned at the last dim; strides in elements.
  Reg operand(int index, const TensorType& type, const Shape& strides);
  Reg constant(double value, DType dtype);
  /// `extra` must live as long as the program.
  Reg apply(TileFunction function, const std::vector<Reg>& ins, DType dtype,
            const void* extra = nullptr);
  /// Says that the next result of the call is this value. Result 0 may lie in an operand's buffer,
  /// others may not.
  void result(Reg reg) { results_.push_back(reg); }

  /// Decides on tiles and memory; nothing is added afterwards.
  void finish(int threads);

  std::int64_t workspace_bytes() const { return parts_ * part_bytes_; }
  void run(const KernelArgs& args, Pool& pool) const;

 private:
  enum class From : std::uint8_t { Operand, Constant, Step };
  enum class Read : std::uint8_t {
    Direct,  // contiguous in the operand wherever the tile lies
    Expand,  // copied into a tile of its own
    Once,    // the same for every tile
  };
  struct Register {
    From from = From::Step;
    DType dtype = DType::F32;
    int operand = -1;
    double value = 0;  // of a constant
    Shape strides;     // of an operand, over dims_
    Read read = Read::Expand;
    int slot = -1;               // its tile in the workspace
    std::int64_t constant = -1;  // offset in constants_
    int last_use = -1;
  };
  enum class Kind : std::uint8_t { Apply, Expand, Copy };
  struct Step {
    Kind kind = Kind::Apply;
    TileFunction function = nullptr;
    Reg in[TileCall::kMaxIn] = {-1, -1, -1};
    int num_in = 0;
    Reg out = -1;
    int result = -1;  // >= 0: written there, not to a slot
    const void* extra = nullptr;
  };
  /// Where a tile lies.
  struct Window {
    std::int64_t first, n;     // row-major
    std::int64_t row, column;  // of the first element; a row is the last of dims_
  };

  Reg add(Register reg);
  void collapse();
  void choose_tiles(int threads);
  void classify();
  std::vector<Step> schedule(const std::vector<Step>& steps);
  bool reads_later(const std::vector<Step>& steps, std::size_t after) const;
  void assign_slots();
  void fill_constants();

  Window window(std::int64_t tile) const;
  std::int64_t row_offset(const Register& reg, std::int64_t row) const;
  void run_tiles(const KernelArgs& args, std::byte* work, std::int64_t begin,
                 std::int64_t end) const;
  void run_step(const Step& step, const KernelArgs& args, const Window& at,
                std::byte** values) const;
  void expand(const Register& reg, const KernelArgs& args, const Window& at, std::byte* to) const;

  Shape shape_;
  std::vector<Register> registers_;
  std::vector<Step> steps_, once_;  // per tile; once per thread and run
  std::vector<Reg> results_;
  std::vector<std::byte> constants_;

  Shape dims_;  // shape_ with dims joined that every operand walks as one
  std::int64_t numel_ = 0, row_ = 1, rows_ = 1;  // row_: the last of dims_
  std::int64_t tile_ = 1, pieces_ = 1, rows_per_tile_ = 1, tiles_ = 0;
  int parts_ = 1, slots_ = 0;
  std::int64_t slot_bytes_ = 64, part_bytes_ = 0;
};

}  // namespace tessera::cpu
