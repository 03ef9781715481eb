#include "tessera/models/rotary_lm.h"

#include "tessera/models/rope_scaling.h"

namespace tessera {

void publish_rotary(ModelConfig& config) { config.bias = config.tied_head = false; }

void complete_rotary(ModelConfig& config) {
  if (config.ffn_width == 0 && config.width > 0 && config.width <= kMaxFieldSize)
    config.ffn_width = (8 * config.width + 11) / 12 * 4;
}

void find_rotary_problems(const ModelConfig& c, FieldProblems& problems) {
  const bool whole = c.has_whole_heads();
  const auto channels =
      static_cast<std::int64_t>(static_cast<double>(whole ? c.head_dim() : 2) * c.rotary_share);
  if (!(c.rotary_share > 0 && c.rotary_share <= 1) || channels % 2 != 0 || channels == 0) {
    problems.add({"head-width", "rotary-share", "width", "heads"},
                 text("rotary positions turn pairs of channels; of heads of ", c.head_dim(),
                      " channels (width ", c.width, ", heads ", c.heads, ", head-width ",
                      c.head_width, ") ", channels, " turn (rotary-share ", c.rotary_share,
                      ", partial_rotary_factor in rope_parameters of config.json",
                      "); it must be an even number above 0"));
  } else {
    try {
      rotary_rates(rotary_of(c), whole ? c.head_dim() : 2, c.context);
    } catch (const Error& error) {
      problems.add({"rope-scaling", "rope-base"}, text("rope-scaling: ", error.what()));
    }
  }
  if (c.window < 0 || c.global_every < 0 || c.global_every == 1)
    problems.add({"window", "global-every"},
                 text("window is ", c.window, " and global-every ", c.global_every,
                      "; a window is 0 (none) or more, global-every 0 (no layer) or 2 and more"));
}

}  // namespace tessera
