#include "tessera/models/context_parallel.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/models/family.h"
#include "tessera/models/layer.h"
#include "tessera/models/replaced_tokens.h"

namespace tessera {

namespace {

/// The heads of queries, or of keys, that these ranks do not divide; 0: they divide all.
std::int64_t undivided_heads(const ParallelConfig& c, const ModelConfig& model) {
  for (const std::int64_t heads :
       {model.heads, model.groups(), model.heads_of_decoder(), generator_heads(model)}) {
    if (heads % (c.tensor * c.context) != 0) return heads;
  }
  return 0;
}

/// Of a layer, blocks of tokens that a rank sends in a step. `keys`: numbers in keys of a token, where
/// those of queries are 1.
double sent_by_ring(const ParallelConfig& c, const ModelConfig& model, double keys, bool window) {
  const std::int64_t block = std::max<std::int64_t>(1, model.context / c.context);
  const std::int64_t reach = (std::max<std::int64_t>(model.window, 1) - 1 + block - 1) / block;
  const bool causal = kind_of(*model.family) == FamilyKind::Decoder;
  const std::int64_t turns =
      window ? std::min(c.context - 1, causal ? reach : 2 * reach) : c.context - 1;
  // Keys and values twice, and their gradients, which return.
  const double turned = static_cast<double>(6 * turns + 2) * keys;
  const bool halves = causal && !window && block >= 2 * kLeastHalfBlock;
  return turned + (halves ? 6 * (1 + keys) : 0);
}

double sent_by_heads(const ParallelConfig& c, double keys) {
  const double share = static_cast<double>(c.context - 1) / static_cast<double>(c.context);
  const double joined = c.recompute == Recompute::None ? 2 : 3,  // q, k and v, and their gradients
      along_cp = share * (joined * (1 + 2 * keys) + 3);
  // Parts of a sequence that tp splits, too, are exchanged along both.
  return c.sequence && c.tensor > 1 ? 2 * along_cp : along_cp;
}

bool heads_send_less(const ParallelConfig& c, const ModelConfig& model) {
  const double keys = static_cast<double>(model.groups()) / static_cast<double>(model.heads);
  double ring = 0, heads = 0;
  for (const LayerStack& stack : model.family->stacks(model)) {
    for (std::int64_t i = 0; i < std::min(stack.layers, kMaxLayers); ++i) {
      ring += sent_by_ring(c, model, keys, has_window(model, i));
      heads += sent_by_heads(c, keys);
    }
  }
  return heads < ring;
}

}  // namespace

KeyExchange key_exchange_of(const ParallelConfig& c, const ModelConfig& model) {
  if (c.keys) return *c.keys;
  const bool divided = c.context > 1 && model.heads > 0 && undivided_heads(c, model) == 0;
  return divided && heads_send_less(c, model) ? KeyExchange::Heads : KeyExchange::Ring;
}

void pin_texts(Strategy& strategy, const std::vector<std::string>& rows) {
  strategy.pins.push_back({"*of_texts", {{rows, {}}, {}}, /*optional=*/true});
}

void pin_heads(Strategy& strategy, const std::vector<std::string>& rows) {
  const std::string cp(kContextAxis), tp(kTensorAxis);
  std::vector<std::string> heads;
  for (const std::string& axis : strategy.major) {
    if (axis == cp || axis == tp) heads.push_back(axis);
  }
  strategy.pins.push_back({"*_heads", {{rows, {}, heads, {}, {}}, {}}, /*optional=*/true});
  strategy.pins.push_back({"*.of_heads", {{rows, {cp}, {tp}}, {}}, /*optional=*/true});
}

void find_exchange_problems(const ParallelConfig& c, const ModelConfig& model,
                            FieldProblems& problems) {
  if (c.keys != KeyExchange::Heads || c.context == 1 || model.heads < 1 || model.groups() < 1)
    return;
  const std::int64_t heads = undivided_heads(c, model);
  if (heads == 0) return;
  problems.add({"cp-comm-type", "context-parallel-size", "tensor-model-parallel-size", "heads",
                "kv-heads", "decoder-heads"},
               text("cp-comm-type ", to_text(KeyExchange::Heads),
                    " gives each device some of the heads, but ",
                    c.tensor > 1 ? text("tensor-model-parallel-size ", c.tensor, " x ") : "",
                    "context-parallel-size ", c.context, " does not divide the model's ", heads,
                    heads == model.heads                ? " heads"
                    : heads == model.groups()           ? " key-value heads"
                    : heads == model.heads_of_decoder() ? " decoder-heads"
                                                        : " heads of the generator",
                    "; give ", to_text(KeyExchange::Ring)));
}

}  // namespace tessera
