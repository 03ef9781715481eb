#include "tessera/models/parallel.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/counted.h"
#include "tessera/base/divisors.h"
#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/models/context_parallel.h"
#include "tessera/models/expert_parallel.h"
#include "tessera/models/family.h"
#include "tessera/models/replaced_tokens.h"
#include "tessera/schedule/schedule.h"

namespace tessera {

namespace {

std::int64_t chunks_per_stage(const ParallelConfig& c) {
  return c.virtual_stages > 0 ? c.virtual_stages : find_schedule(c.schedule).least_chunks;
}

/// "pipeline-model-parallel-size 2 x virtual-pipeline-stages 3", as it was told
std::string chunks_text(const ParallelConfig& c) {
  return text("pipeline-model-parallel-size ", c.pipeline,
              c.virtual_stages > 0 ? text(" x virtual-pipeline-stages ", c.virtual_stages)
                                   : text(" with pipeline-schedule ", c.schedule));
}

std::string number_of_chunks(const ScheduleDef& schedule) {
  return text(schedule.most_chunks == 0 ? "at least " : "",
              counted(schedule.least_chunks, "virtual stage"));
}

/// Of a pipeline of `chunks` chunks.
void find_layout_problems(const ParallelConfig& c, std::int64_t layers, std::int64_t chunks,
                          FieldProblems& out) {
  std::vector<std::int64_t> counts;
  try {
    counts = parse_layout(c.layout);
  } catch (const Error& error) {
    return out.add({"pipeline-layout"}, error.what());
  }
  if (std::ssize(counts) != chunks)
    return out.add({"pipeline-layout", "pipeline-model-parallel-size", "virtual-pipeline-stages"},
                   text("pipeline-layout ", c.layout, " has ", counted(std::ssize(counts), "chunk"),
                        ", but ", chunks_text(c), " makes ", chunks, "; give a number for each"));
  const auto above =
      std::ranges::find_if(counts, [&](std::int64_t count) { return count > layers; });
  if (above != counts.end())  // a sum of such counts may be no number
    return out.add({"pipeline-layout", "layers", "decoder-layers"},
                   text("pipeline-layout ", c.layout, " gives chunk ", above - counts.begin(), " ",
                        counted(*above, "layer"), ", but the model has ", layers,
                        "; give numbers that add up to that"));
  const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (sum != layers)
    out.add({"pipeline-layout", "layers", "decoder-layers"},
            text("pipeline-layout ", c.layout, " has ", counted(sum, "layer"),
                 ", but the model has ", layers, "; give numbers that add up to that"));
  const auto inner =
      counts.size() < 3 ? counts.end() : std::find(counts.begin() + 1, counts.end() - 1, 0);
  if (inner != counts.end() && inner != counts.end() - 1)
    out.add({"pipeline-layout"},
            text("pipeline-layout ", c.layout, " leaves chunk ", inner - counts.begin(),
                 " without layers; only the first and the last may have none, as they have the ",
                 "embedding and the head"));
}

void find_pipeline_problems(const ParallelConfig& c, const ModelConfig& model, FieldProblems& out) {
  const std::vector<std::string> names = schedule_names();
  if (std::find(names.begin(), names.end(), c.schedule) == names.end())
    return out.add({"pipeline-schedule"},
                   text("pipeline-schedule is '", c.schedule, "'; it can be ", join(names)));
  const std::string standard = ParallelConfig().schedule;
  if (c.pipeline == 1) {
    const auto alone = [&](const char* flag, const auto& value, const auto& instead) {
      out.add({flag, "pipeline-model-parallel-size"},
              text(flag, " ", value, " does nothing with pipeline-model-parallel-size 1; ",
                   "raise that, or give ", flag, " ", instead));
    };
    if (c.schedule != standard) alone("pipeline-schedule", c.schedule, standard);
    if (c.virtual_stages > 0) alone("virtual-pipeline-stages", c.virtual_stages, 0);
    if (!c.layout.empty())
      out.add({"pipeline-layout", "pipeline-model-parallel-size"},
              text("pipeline-layout ", c.layout,
                   " does nothing with pipeline-model-parallel-size 1; raise that, or leave ",
                   "pipeline-layout out"));
    return;
  }
  const ScheduleDef& schedule = find_schedule(c.schedule);
  const std::int64_t v = chunks_per_stage(c), chunks = c.pipeline * v;
  if (v < schedule.least_chunks || (schedule.most_chunks > 0 && v > schedule.most_chunks)) {
    std::string others;
    for (const std::string& name : names) {
      const ScheduleDef& other = find_schedule(name);
      if (v >= other.least_chunks && (other.most_chunks == 0 || v <= other.most_chunks))
        others += text(others.empty() ? "" : ", ", name);
    }
    return out.add(
        {"virtual-pipeline-stages", "pipeline-schedule"},
        text("virtual-pipeline-stages ", v, " does not go with pipeline-schedule ", c.schedule,
             ", which has ", number_of_chunks(schedule),
             " per stage; give 0, which is what the schedule needs, or another pipeline-schedule: ",
             others));
  }
  const std::int64_t layers = layer_count(model), parts = layers + 2;
  if (layers < 1) return;
  if (chunks > parts)
    out.add({"layers", "pipeline-model-parallel-size", "virtual-pipeline-stages"},
            text(chunks_text(c), " cuts the model into ", chunks, " chunks, but its ",
                 counted(layers, "layer"), ", embedding and head are ", parts, " parts; lower ",
                 c.virtual_stages > 0 ? "one of the two" : "pipeline-model-parallel-size",
                 ", or raise layers to ", chunks - 2));
  if (!c.layout.empty()) find_layout_problems(c, layers, chunks, out);
}

/// Where the layers of a layout are.
std::vector<ChunkPin> chunks_of(const std::string& layout, const ModelConfig& model) {
  std::vector<int> chunk;  // by layer
  for (int next = 0; const std::int64_t count : parse_layout(layout))
    chunk.insert(chunk.end(), static_cast<std::size_t>(count), next++);
  return chunks_by_layer(model, [&](std::int64_t layer) { return chunk.at(at(layer)); });
}

/// Of a configuration whose sizes multiply.
void find_sharding_problems(const ParallelConfig& c, FieldProblems& out) {
  if (c.shard_size < 0)
    out.add({"optimizer-shard-size"},
            text("optimizer-shard-size is ", c.shard_size,
                 "; it must be at least 1, or 0 for all data parallel devices"));
  if (c.shard_threshold < 0)
    out.add({"optimizer-shard-threshold"},
            text("optimizer-shard-threshold is ", c.shard_threshold,
                 "; it must be a number of bytes, or 0 for no threshold"));
  if (c.shard_size > 0 && c.data() % c.shard_size != 0)
    out.add({"optimizer-shard-size", "devices", "tensor-model-parallel-size",
             "context-parallel-size", "pipeline-model-parallel-size"},
            text("optimizer-shard-size ", c.shard_size, " does not divide the ", c.data(),
                 " data parallel devices; it can be ", divisors(c.data())));
  const auto needs_zero = [&](const char* flag, std::int64_t value) {
    if (value > 0 && !c.shards_states())
      out.add({flag, "zero-stage"},
              text(flag, " ", value, " does nothing without ZeRO; give zero-stage 1, 2 or 3, or ",
                   flag, " 0"));
  };
  needs_zero("optimizer-shard-size", c.shard_size);
  needs_zero("optimizer-shard-threshold", c.shard_threshold);
}

}  // namespace

FieldProblems problems(const ParallelConfig& c, const ModelConfig& model) {
  FieldProblems out;
  if (c.recompute_layers != "all" && c.recompute == Recompute::None) {
    out.add({"recompute-layers", "recompute-granularity"},
            text("recompute-layers ", c.recompute_layers,
                 " does nothing with recompute-granularity none; give elementwise, selective or ",
                 "full, or recompute-layers all"));
  } else if (c.recompute_layers != "all" && layer_count(model) > 0) {
    try {
      parse_layers(c.recompute_layers, layer_count(model));
    } catch (const Error& error) {
      out.add({"recompute-layers", "layers", "decoder-layers"}, error.what());
    }
  }
  try {
    parse_rank_order(c.rank_order);
  } catch (const Error& error) {
    out.add({"rank-order"}, error.what());
  }
  if (c.devices < 1)
    out.add({"devices"}, text("devices is ", c.devices, "; it must be at least 1"));
  if (const std::int64_t most = c.machine.devices(); most > 0 && c.devices > most)
    out.add({"devices", "machine"},
            text("devices ", c.devices, " are more than the ", most, " of machine ", c.machine.name,
                 "; lower devices, or name a larger machine"));
  if (c.tensor < 1)
    out.add({"tensor-model-parallel-size"},
            text("tensor-model-parallel-size is ", c.tensor, "; it must be at least 1"));
  if (c.context < 1)
    out.add({"context-parallel-size"},
            text("context-parallel-size is ", c.context, "; it must be at least 1"));
  if (c.pipeline < 1)
    out.add({"pipeline-model-parallel-size"},
            text("pipeline-model-parallel-size is ", c.pipeline, "; it must be at least 1"));
  if (c.virtual_stages < 0)
    out.add({"virtual-pipeline-stages"},
            text("virtual-pipeline-stages is ", c.virtual_stages,
                 "; it must be at least 1, or 0 for the fewest of the schedule"));
  if (c.bucket_mb < 0)
    out.add({"bucket-mb"}, text("bucket-mb is ", c.bucket_mb,
                                "; it must be a number of MiB, or 0 to sum gradients one by one"));
  if (!out.empty()) return out;
  const std::int64_t share = c.pipeline * c.tensor * c.context, times = c.devices / share;
  if (c.devices % share != 0)
    out.add({"devices", "pipeline-model-parallel-size", "tensor-model-parallel-size",
             "context-parallel-size"},
            text("devices ", c.devices, " is not a multiple of ",
                 c.pipeline > 1 ? text("pipeline-model-parallel-size ", c.pipeline, " x ") : "",
                 "tensor-model-parallel-size ", c.tensor, " x context-parallel-size ", c.context,
                 "; nearest: devices ", times > 0 ? text(times * share, " or ") : "",
                 (times + 1) * share));
  const auto divides = [&](std::int64_t size, const char* what) {
    if (size % c.tensor != 0)
      out.add({"tensor-model-parallel-size", "heads", "kv-heads"},
              text("tensor-model-parallel-size ", c.tensor, " does not divide the model's ", size,
                   " ", what, "; it can be ", divisors(size)));
  };
  // A size of the model that is wrong by itself is no second problem here.
  const bool heads = model.heads > 0 && model.width > 0 && model.has_whole_heads();
  if (heads) divides(model.heads, "heads");
  if (heads && model.heads_of_decoder() != model.heads)
    divides(model.heads_of_decoder(), "decoder-heads");
  if (heads && model.groups() > 0 && model.heads % model.groups() == 0 &&
      model.heads % c.tensor == 0 && model.groups() != model.heads)
    divides(model.groups(), "key-value heads");
  const std::int64_t generated = generator_heads(model);
  if (heads && generated != model.heads && generated % c.tensor != 0)
    out.add({"tensor-model-parallel-size", "generator-width", "heads", "width"},
            text("tensor-model-parallel-size ", c.tensor, " does not divide the model's ",
                 generated, " heads of the generator, which is ", model.generator(),
                 " wide; it can be ", divisors(generated), ", or give a larger generator-width"));
  const std::int64_t shortest = std::min(model.context, model.source());
  if (shortest > 0 && c.context > shortest)
    out.add({"context-parallel-size", "context", "source-context"},
            text("context-parallel-size ", c.context, " is above the ",
                 shortest < model.context ? "source-context" : "context", " of ", shortest,
                 " tokens; lower it"));
  find_exchange_problems(c, model, out);
  find_expert_problems(c, model, out);
  if (c.devices % share == 0) find_sharding_problems(c, out);
  find_pipeline_problems(c, model, out);
  return out;
}

namespace {

/// Ranks number the coordinates row by row: those of an axis and the axes inside it are neighbours,
/// all of them those of one stage. dp and ep have `group` ranks, and dpo those that are left.
Mesh mesh_of_stage(const ParallelConfig& c, std::int64_t group) {
  std::vector<Axis> axes;
  for (const std::string& name : parse_rank_order(c.rank_order)) {
    if (name != kDataAxis) {
      axes.push_back({name, name == kContextAxis ? c.context : c.tensor});
      continue;
    }
    axes.push_back({std::string(kDataOuterAxis), c.data() / group});
    axes.push_back({name, group / c.experts});
    axes.push_back({std::string(kExpertAxis), c.experts});
  }
  axes.push_back({std::string(kRepeatAxis), c.repeat});
  std::int64_t neighbours = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    axis->level = c.machine.level_of(neighbours *= axis->size, c.devices);
  axes.push_back({std::string(kMicrobatchAxis), c.micro_batches, Level::Time});
  return Mesh(std::move(axes));
}

}  // namespace

Strategy strategy_of(const ParallelConfig& c, BatchSplit batch, const ModelConfig& model) {
  require(c.pipeline >= 1 && c.tensor >= 1 && c.context >= 1 && c.repeat >= 1 && c.devices >= 1 &&
              c.devices % (c.pipeline * c.tensor * c.context * c.repeat) == 0,
          c.devices, " devices do not divide into pipeline parallel ", c.pipeline,
          " x tensor parallel ", c.tensor, " x context parallel ", c.context,
          c.repeat > 1 ? text(" x repeated ", c.repeat) : "",
          "; choose a number that these sizes divide");
  const std::int64_t group = c.shard_size > 0 ? c.shard_size : c.data();
  require(c.data() % group == 0, "states are sharded over ", group, " ranks, which do not divide ",
          "the ", c.data(), " data parallel ones; choose a number that does");
  require(c.experts >= 1 && group % c.experts == 0, "experts are sharded over ", c.experts,
          " ranks, which do not divide the ", group,
          " data parallel ones that share out states; choose a number that does");
  const std::string dpo(kDataOuterAxis), dp(kDataAxis), ep(kExpertAxis), cp(kContextAxis),
      tp(kTensorAxis), mb(kMicrobatchAxis);
  Strategy out;
  out.mesh = mesh_of_stage(c, group);
  // Sequence parallelism splits the parts of cp by tp; else cp may split heads, which tp splits.
  out.major = {c.sequence ? cp : tp, c.sequence ? tp : cp, dpo, dp, mb, ep};
  std::vector<std::string> rows = {dp, mb};
  if (out.mesh.has(dpo)) rows.insert(rows.begin(), dpo);
  // Experts gather the tokens of a micro-batch along ep: it cuts what time has cut.
  if (out.mesh.has(ep)) rows.push_back(ep);
  using Split = std::vector<std::vector<std::string>>;
  out.batch = batch == BatchSplit::Whole    ? Split{}
              : reads_field(model, "texts") ? Split{rows, {}, {cp}}  // [batch, texts, tokens]
                                            : Split{rows, {cp}};
  const ModelFamily& family = *model.family;
  for (const std::span<const TensorCut> all : {transformer_cuts(), family.cuts}) {
    for (const TensorCut& cut : all) {
      const Sharding whole = Sharding::replicated(cut.ndim);
      const bool is_whole = cut.dim < 0 || (cut.table && c.whole_embeddings);
      Sharding parts = is_whole ? whole : whole.with(tp, cut.dim);
      if (cut.of_experts) parts = parts.with(ep, 0);
      out.pins.push_back({std::string(cut.paths), std::move(parts), /*optional=*/true});
    }
  }
  Sharding residual{{rows, {cp}, {}}, {}};
  if (c.sequence) residual = residual.with(tp, 1);
  if (batch == BatchSplit::Cut) out.pins.push_back({"*.residual", residual, /*optional=*/true});
  if (batch == BatchSplit::Cut) pin_texts(out, rows);
  if (c.context > 1) out.keys = key_exchange_of(c, model);
  if (batch == BatchSplit::Cut && out.keys == KeyExchange::Heads) pin_heads(out, rows);
  out.offload = c.offload;
  out.gather = c.gather;
  out.buckets = {c.bucket_mb << 20, {}};
  if (c.gradient_groups > 0) {
    const std::vector<std::string> blocks = layer_blocks(model);
    const std::int64_t of_group = std::max<std::int64_t>(std::ssize(blocks) / c.gradient_groups, 1);
    for (std::size_t layer = 0; layer < blocks.size(); ++layer)
      out.buckets.pins.push_back(
          {blocks[layer] + ".*", 1 + static_cast<int>(layer) / static_cast<int>(of_group)});
  }
  out.shard_threshold = c.shard_threshold;
  out.unsharded = c.unsharded;
  std::vector<std::string> sharing = {dp};  // states
  if (out.mesh.has(ep)) sharing.push_back(ep);
  if (c.shard_optimizer) out.shard_moments = sharing;
  if (c.shard_gradients) out.shard_gradients = sharing;
  if (c.shard_parameters) out.shard_parameters = sharing;
  if (c.pipeline > 1)
    out.pipeline = {static_cast<int>(c.pipeline), static_cast<int>(chunks_per_stage(c)), c.schedule,
                    c.layout.empty() ? c.chunks : chunks_of(c.layout, model)};
  const bool some_layers = c.recompute != Recompute::None && c.recompute_layers != "all";
  // What costs next to nothing is computed again in the layers that nobody names, too.
  const Recompute in_all = !some_layers                           ? c.recompute
                           : c.recompute > Recompute::Elementwise ? Recompute::Elementwise
                                                                  : Recompute::None;
  if (in_all != Recompute::None) {
    for (const LayerStack& stack : family.stacks(model))
      out.recompute.push_back({text(stack.block, ".*"), in_all});
  }
  if (some_layers) {
    const std::vector<std::string> blocks = layer_blocks(model);
    for (const std::int64_t layer : parse_layers(c.recompute_layers, std::ssize(blocks)))
      out.recompute.push_back({blocks[static_cast<std::size_t>(layer)], c.recompute});
  }
  return out;
}

std::string mesh_text(const Strategy& strategy) {
  const std::string of_stage = to_text(strategy.mesh);
  if (strategy.pipeline.stages == 1) return of_stage;
  return text(kPipelineAxis, "=", strategy.pipeline.stages, of_stage.empty() ? "" : " ", of_stage);
}

std::vector<ChunkPin> chunks_by_layer(const ModelConfig& model,
                                      const std::function<int(std::int64_t layer)>& chunk_of) {
  std::vector<ChunkPin> out;
  for (std::int64_t layer = 0; const std::string& block : layer_blocks(model)) {
    const int chunk = chunk_of(layer), before = out.empty() ? 0 : out.back().chunk;
    require(chunk >= before, "layer ", layer, " is put on chunk ", chunk,
            out.empty() ? ", and the first is 0"
                        : text(", layer ", layer - 1, " before it on chunk ", before),
            "; chunks must ascend from layer to layer, from 0");
    out.push_back({block, chunk});
    ++layer;
  }
  return out;
}

}  // namespace tessera
