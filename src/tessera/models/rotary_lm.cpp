#include "tessera/models/rotary_lm.h"

namespace tessera {

void publish_rotary(ModelConfig& config) { config.bias = config.tied_head = false; }

void complete_rotary(ModelConfig& config) {
  if (config.ffn_width == 0 && config.width > 0 && config.width <= kMaxFieldSize)
    config.ffn_width = (8 * config.width + 11) / 12 * 4;
}

void find_rotary_problems(const ModelConfig& c, FieldProblems& problems) {
  if (c.head_width > 0 && c.head_width % 2 != 0)
    problems.add({"head-width"}, text("rotary positions need an even head width; head-width ",
                                      "is ", c.head_width));
  if (c.head_width == 0 && c.width % c.heads == 0 && c.head_dim() % 2 != 0)
    problems.add({"width", "heads"},
                 text("rotary positions need an even head width; width ", c.width, " over ",
                      c.heads, " heads gives ", c.head_dim()));
}

}  // namespace tessera
