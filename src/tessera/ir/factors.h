#pragma once
/// Factor rules: one line that says all of an op's parallelism.
///
///   "b m k, k n -> b m n"                 matmul: k is missing from the result, so it is summed
///   "b s d, d -> b s d | joint 0 1"       add: operands may be partial together
///   "b s d -> b s d | d:stat"             softmax: ranks exchange statistics of each row
///   "(h e) -> h e"                        a compound dim, major factor first
///   "t, t k, e k n -> t n | rows e 1"     grouped_matmul: of operand 1 a rank reads its groups' rows
///   "... k, n k -> ... n"                 leading dims, as many as the operand has
///
/// A factor carries the same meaning wherever it occurs. One that is missing from a result is
/// reduced over: sharding it leaves that result partial (sum, unless said otherwise), except for
/// stat and whole.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tensor/sharding.h"
#include "tessera/tensor/type.h"

namespace tessera {

enum class FactorKind : std::uint8_t {
  Pass,  // sharding it shards the results that have it; partial where one has not
  Max,
  Min,    // as Pass, but the reduction is max or min
  One,    // as Pass, but each element of what is partial is on one rank, zeros on the others
  Stat,   // may be sharded through the op's expansion: small all-reduces of statistics per row
  Whole,  // must not be sharded
};

/// Which operands may arrive partial, the result being partial then.
enum class Linear : std::uint8_t {
  None,
  Joint,  // together: add
  Each,   // exactly one of them, the others replicated: mul, matmul
};

struct Factor {
  std::string name;
  std::int64_t size = 0;
  FactorKind kind = FactorKind::Pass;
};

struct Factors {
  using Dims = std::vector<std::vector<int>>;  // per dim the factors, major first; empty: of size
                                               // 1, nothing to shard

  std::vector<Factor> list;
  std::vector<Dims> ins, outs;
  Linear linear = Linear::None;
  std::vector<int> linear_operands;
  /// Operands of which a rank reads what belongs to its part of `rows_factor` alone: along the axes
  /// that shard it they may lie as Monoid::One. -1: there is none.
  std::vector<int> rows_operands;
  int rows_factor = -1;

  /// Reads a rule; `ndims` are the numbers of dims of all operands, then all results, for "...".
  static Factors parse(std::string_view rule, const std::vector<int>& ndims);

  int find(std::string_view name) const;
  bool is_linear(int operand) const;
  bool reads_rows(int operand, int factor) const;
  bool has(const Dims& dims, int factor) const;
  /// True where sharding `factor` leaves this result partial.
  bool reduces(int factor, int result) const;
  Monoid monoid(int factor) const;
};

/// The rule as text, in a form that parse reads.
std::string to_text(const Factors& factors);

}  // namespace tessera
