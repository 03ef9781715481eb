#pragma once
/// `--check`: interprets a program before and after each pass, and compares the numbers.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/ops/interpret.h"
#include "tessera/passes/program.h"

namespace tessera {

/// Most operations of one interpretation of a program: some seconds of one core.
inline constexpr double kMostChecked = 4e9;

/// Operations of interpreting a graph on so many ranks.
double interpreted_operations(const Graph& graph, std::int64_t ranks);

/// Follows the passes of a plan's programs, one program after another, on random states and batches
/// in f64, with reference kernels and the padding of shards poisoned. Metrics and next values of
/// states must be those before the pass, to 1e-6 of the largest number of a tensor: simplify()
/// folds constants in f32.
class PassCheck {
 public:
  /// Errors: Fault::Usage: too large to interpret; the message has the size and the limit.
  static void require_small(const std::string& program, const Graph& source, std::int64_t ranks);

  /// A program as written. Its pipeline has so many stages; random ops take `seed`.
  void begin(const Graph& source, int stages, std::uint64_t seed);
  /// What a pass left: a graph over whole values, or the program of one stage, which is run when
  /// those of all stages are there.
  /// Errors: Fault::Numerics: other numbers than before the pass. Names the output, its node, both
  /// values, and the first node whose value no node had before.
  void after(const std::string& pass, const Graph& graph);
  void after(const std::string& pass, const Program& program);

  int programs() const { return programs_; }
  int passes() const { return passes_; }

 private:
  /// The value of a node, by rank, and the node as text.
  struct Seen {
    std::string node;
    std::vector<HostTensor> by_rank;
  };
  struct Numbers {
    std::map<std::string, HostTensor> outputs;  // "loss", "next wte.weight"
    std::map<std::string, std::string> nodes;   // that compute them
    std::vector<Seen> seen;
  };
  static Numbers numbers_of(const Graph& graph, const Bindings& inputs, Interpretation how);
  static Numbers numbers_of(const std::vector<Program>& stages, const Bindings& inputs,
                            const Interpretation& how);
  void compare(Numbers after);

  Bindings inputs_;
  Interpretation how_;
  std::size_t stages_ = 1;
  Numbers before_;
  std::map<std::string, std::vector<Program>> of_stages_;  // by pass
  int programs_ = 0, passes_ = 0;
};

}  // namespace tessera
