#include "tessera/nn/parallel.h"

#include <algorithm>

#include "tessera/base/divisors.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// What the tensor axis cuts, by the names that nn/layers.cpp gives: first products by their
/// results, second ones by what they sum over; embedding and head by the vocabulary.
struct Cut {
  const char* values;
  int dim, ndim;
};
constexpr Cut kTensorCuts[] = {
    {"*.attn.qkv.weight", 0, 2}, {"*.attn.qkv.bias", 0, 1},   {"*.attn.proj.weight", 1, 2},
    {"*.mlp.up.weight", 0, 2},   {"*.mlp.up.bias", 0, 1},     {"*.mlp.gate.weight", 0, 2},
    {"*.mlp.gate.bias", 0, 1},   {"*.mlp.down.weight", 1, 2}, {"embed.token.weight", 0, 2},
    {"head.weight", 0, 2},
};

}  // namespace

std::vector<std::string> problems(const ParallelConfig& c, const ModelConfig& model) {
  std::vector<std::string> out;
  if (c.devices < 1) out.push_back(text("devices is ", c.devices, "; it must be at least 1"));
  if (c.tensor < 1)
    out.push_back(text("tensor-model-parallel-size is ", c.tensor, "; it must be at least 1"));
  if (c.context < 1)
    out.push_back(text("context-parallel-size is ", c.context, "; it must be at least 1"));
  if (!out.empty()) return out;
  const std::int64_t share = c.tensor * c.context, times = c.devices / share;
  if (c.devices % share != 0)
    out.push_back(text("devices ", c.devices, " is not a multiple of tensor-model-parallel-size ",
                       c.tensor, " x context-parallel-size ", c.context, "; nearest: devices ",
                       times > 0 ? text(times * share, " or ") : "", (times + 1) * share));
  const auto divides = [&](std::int64_t size, const char* what) {
    if (size % c.tensor != 0)
      out.push_back(text("tensor-model-parallel-size ", c.tensor, " does not divide the model's ",
                         size, " ", what, "; it can be ", divisors(size)));
  };
  divides(model.heads, "heads");
  if (model.heads % c.tensor == 0 && model.groups() != model.heads)
    divides(model.groups(), "key-value heads");
  if (c.context > model.context)
    out.push_back(text("context-parallel-size ", c.context, " is above the context of ",
                       model.context, " tokens; lower it"));
  return out;
}

Strategy strategy_of(const ParallelConfig& c, BatchSplit batch) {
  require(
      c.tensor >= 1 && c.context >= 1 && c.devices >= 1 && c.devices % (c.tensor * c.context) == 0,
      c.devices, " devices do not divide into tensor parallel ", c.tensor, " x context parallel ",
      c.context, "; choose a number that they divide");
  const std::string dp(kDataAxis), cp(kContextAxis), tp(kTensorAxis), mb(kMicrobatchAxis);
  Strategy out;
  // Ranks number the coordinates row by row: those of an axis and the axes inside it are
  // neighbours.
  const auto level = [&](std::int64_t neighbours) {
    return c.ranks_per_host == 0 || c.ranks_per_host % neighbours == 0 ? Level::Core : Level::Host;
  };
  out.mesh = Mesh({{dp, c.data(), level(c.devices)},
                   {cp, c.context, level(c.context * c.tensor)},
                   {tp, c.tensor, level(c.tensor)},
                   {mb, c.micro_batches, Level::Time}});
  out.major = {cp, tp, dp, mb};
  out.batch.clear();
  if (batch == BatchSplit::Cut) out.batch = {{dp, mb}, {cp}};
  for (const Cut& cut : kTensorCuts) {
    Sharding sharding = Sharding::replicated(cut.ndim);
    out.pins.push_back({cut.values, sharding.with(tp, cut.dim)});
  }
  Sharding residual{{{dp, mb}, {cp}, {}}, {}};
  if (c.sequence) residual = residual.with(tp, 1);
  if (batch == BatchSplit::Cut) out.pins.push_back({"*.residual", residual});
  if (c.shard_optimizer) out.shard_moments = {dp};
  if (c.shard_gradients) out.shard_gradients = {dp};
  if (c.shard_parameters) out.shard_parameters = {dp};
  return out;
}

}  // namespace tessera
