#pragma once
/// The rows that every op is tested by: one use of an op each, walked by all tests of this folder.

#include <functional>
#include <string>
#include <vector>

#include "tessera/ir/op_def.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera::test {

/// How an operand is made. Numbers depend on the row's name and the operand's place only.
struct Operand {
  using Make = std::function<HostTensor(const std::vector<HostTensor>& earlier)>;
  enum class Fill { Normal, Positive, Ids, Bits, Exactly, Made };
  TensorType type;
  Fill fill = Fill::Normal;
  double low = 0, high = 0;
  Make make = {};
};

/// Standard normal.
Operand normal(Shape shape);
/// Between 0.5 and 2: for logarithms, denominators, bases of powers.
Operand positive(Shape shape);
/// Integers in [low, high); a range beyond the table's tries ids that name nothing.
Operand ids(Shape shape, int low, int high, DType dtype = DType::I32);
Operand bits(Shape shape);
/// One number everywhere.
Operand exactly(double value, DType dtype = DType::F32, Shape shape = {});
/// Computed from the operands before it, in f64: statistics that must fit their operand.
Operand made(Shape shape, Operand::Make make);

struct Case {
  const OpDef* op;
  std::string name;  // what is special about it; empty: nothing
  std::vector<Operand> ins;
  Attrs attrs = {};
  /// Results through which a gradient flows; empty: all that are floats.
  std::vector<int> cotangents = {};
  /// Operands that get no gradient though they are floats, with `cotangents` as above.
  std::vector<int> constants = {};
  /// Of the expansion, against the op; f64 rounding, unless the row says why it is more.
  double expand_tolerance = 1e-10;
};

std::vector<Case> elementwise_cases();
std::vector<Case> basic_cases();  // reductions, shape, index, random ops, matmul
std::vector<Case> model_cases();  // normalisation, softmax, attention, loss, updates

/// All rows of all families.
const std::vector<Case>& all_cases();

/// "matmul: a transposed operand"
std::string title(const Case& c);

}  // namespace tessera::test
