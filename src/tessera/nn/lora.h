#pragma once
/// Low-rank adapters (LoRA): a linear layer of weight W [out, in] becomes
/// x W^T + scale (dropout(x) A^T) B^T, where A [rank, in] and B [out, rank] are trained and W is
/// not. A begins uniform in +-1 / sqrt(in) and B with zeros, so that the model begins as it was.
/// Source: Hu et al. 2021, arXiv 2106.09685; first values and rsLoRA's scale as PEFT's.
///
/// With DoRA the rows of W + scale B A have a length of their own, m, which is trained: the layer is
/// m / ||W + scale B A|| (x W^T + scale (dropout(x) A^T) B^T), where the norms of rows are
/// constants to gradients. The parameter is m - ||W||, which begins with zeros: so the model begins
/// as it was, and 16 bits hold it as exactly as they hold anything.
/// Source: Liu et al. 2024, arXiv 2402.09353, section 4.3. PEFT drops also what W reads of x where
/// the row's length has changed; here it is not.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/field_problems.h"
#include "tessera/nn/layers.h"

namespace tessera {

struct LoraConfig {
  std::int64_t rank = 0;                  // 0: no adapters
  double alpha = 0;                       // scale is alpha / rank; 0: twice the rank
  bool rank_stabilized = false;           // scale is alpha / sqrt(rank): rsLoRA, arXiv 2312.03732
  bool decomposed = false;                // DoRA
  double dropout = 0;                     // of what adapters read
  std::vector<std::string> targets = {};  // of kLoraTargets; empty: kStandardLoraTargets
  friend bool operator==(const LoraConfig&, const LoraConfig&) = default;

  double scale() const;
  bool adapts(std::string_view target) const;
};

/// Linear layers of attention and feed-forward parts, by the last name of their block, and of qkv
/// and kv also the rows of queries, keys and values apart. all-linear: every one, rows apart.
inline constexpr std::string_view kAllLinear = "all-linear";
inline constexpr std::array<std::string_view, 14> kLoraTargets = {
    "q",    "k",    "v",    "qkv", "kv",   "q_a",  "q_b",
    "kv_a", "kv_b", "proj", "up",  "gate", "down", kAllLinear};
inline constexpr std::array<std::string_view, 2> kStandardLoraTargets = {"q", "v"};

/// The parameters of adapters, by their paths.
inline constexpr std::array<std::string_view, 3> kLoraPaths = {"*.lora_a", "*.lora_b",
                                                               "*.lora_magnitude"};

/// Ends the path of what DoRA trains of the lengths of rows.
inline constexpr std::string_view kLoraMagnitude = ".lora_magnitude";

bool is_of_adapter(std::string_view path);

FieldProblems problems(const LoraConfig& config);

/// Rows of a weight that belong together: rows are in groups, each of which has those of the first
/// part, then those of the second, ...
struct RowPart {
  std::string_view name;  // "q"
  std::int64_t rows = 0;  // of a group
};

/// The rows of a key-value head in the weight of the layer "qkv" or "kv": `queries` heads of width
/// `width`, a key, a value. Of other layers: none.
std::vector<RowPart> joined_rows(std::string_view layer, std::int64_t queries, std::int64_t width);

/// linear() with the adapters that `lora` gives it. `parts`: of its rows; empty: they are one.
/// `step`: Pass::step, for dropout. Parameters beside linear's: lora_a [rank, in] and lora_b [out,
/// rank], with DoRA lora_magnitude [out]; of a part that is a target, PART.lora_a [rank, in],
/// PART.lora_b [rows of the part, rank] and PART.lora_magnitude [rows of the part].
std::vector<Value> lora_linear(const std::vector<Value>& xs, std::string_view name,
                               std::int64_t out, const LinearOptions& options,
                               const LoraConfig& lora, const std::vector<RowPart>& parts,
                               Value step, Where where = Where::here());

}  // namespace tessera
