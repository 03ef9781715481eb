#pragma once
/// Rotary positions of a configuration, and the numbers of scaled ones as a text:
/// "rope_type=llama3,factor=8,original_max_position_embeddings=8192".

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/models/config.h"
#include "tessera/ops/rotary.h"

namespace tessera {

/// A number of RotaryScaling by the name that Hugging Face's config.json has for it.
struct RopeKey {
  std::string_view key;
  std::variant<double RotaryScaling::*, std::int64_t RotaryScaling::*, bool RotaryScaling::*,
               std::optional<double> RotaryScaling::*, std::vector<double> RotaryScaling::*>
      slot;
  std::string_view kinds;       // that read it, with blanks between
  std::string_view needs = {};  // kinds that need it
};
std::span<const RopeKey> rope_keys();
bool is_needed_by(const RopeKey& key, RotaryKind kind);
/// Beside these, the key of the kind.
inline constexpr std::string_view kRopeType = "rope_type";

/// The numbers of a text: KEY=VALUE with commas between, rope_type first; lists with colons:
/// short_factor=1:1.5:2. An empty text: positions are not scaled. Errors: Fault::Usage: another
/// kind, a key that the kind does not read or lacks, a value that is no number; the message begins with
/// the key.
RotaryScaling rotary_scaling_of(std::string_view text);
/// The text of all that is not as RotaryScaling begins.
std::string to_text(const RotaryScaling& scaling);

/// How a model's heads turn.
Rotary rotary_of(const ModelConfig& config);

}  // namespace tessera
