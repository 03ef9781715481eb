/// The well-known ways to spread a model, as strategies; what is refused, with what is legal.

#include "tessera/models/parallel.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/context_parallel.h"
#include "tessera/models/family.h"
#include "tessera/schedule/schedule.h"

namespace tessera {
namespace {

ModelConfig model() {
  ModelConfig out;
  out.heads = 8;
  out.kv_heads = 4;
  out.context = 16;
  return out;
}

TEST(Parallel, ProblemsSayWhatIsLegal) {
  struct Case {
    ParallelConfig config;
    std::vector<std::string> problems;
  };
  std::vector<std::string_view> of_one_chunk;
  for (const ScheduleDef& def : schedules())
    if (def.least_chunks == 1) of_one_chunk.push_back(def.name);
  const Case cases[] = {
      {{.devices = 8, .tensor = 4, .context = 2}, {}},
      {{.devices = 0}, {"devices is 0; it must be at least 1"}},
      {{.devices = 2, .tensor = 4},
       {"devices 2 is not a multiple of tensor-model-parallel-size 4 x context-parallel-size 1; "
        "nearest: devices 4"}},
      {{.devices = 7, .tensor = 3},
       {"devices 7 is not a multiple of tensor-model-parallel-size 3 x context-parallel-size 1; "
        "nearest: devices 6 or 9",
        "tensor-model-parallel-size 3 does not divide the model's 8 heads; it can be 1, 2, 4, 8"}},
      {{.devices = 8, .tensor = 8},
       {"tensor-model-parallel-size 8 does not divide the model's 4 key-value heads; it can be 1, "
        "2, 4"}},
      {{.recompute_layers = "0-1"},
       {"recompute-layers 0-1 does nothing with recompute-granularity none; give elementwise, "
        "selective or full, or recompute-layers all"}},
      {{.recompute = Recompute::Full, .recompute_layers = "0-99"},
       {"recompute-layers is '0-99', but the layers are 0 to 3; give some of these"}},
      {{.recompute = Recompute::Full, .recompute_layers = "1,0-"},
       {"recompute-layers is '1,0-', in which '0-' is neither a layer nor a range; give all, or "
        "numbers from 0, as 0-5,8"}},
      {{.recompute = Recompute::Selective, .recompute_layers = "1,0-1,0"}, {}},
      {{.devices = 32, .context = 32},
       {"context-parallel-size 32 is above the context of 16 tokens; lower it"}},
      {{.devices = 16, .pipeline = 4, .tensor = 2}, {}},
      {{.devices = 2, .pipeline = 2, .schedule = "zb-v"}, {}},
      {{.devices = 2, .pipeline = 2, .virtual_stages = 3, .schedule = "interleaved"}, {}},
      {{.devices = 2, .pipeline = 0, .virtual_stages = -1},
       {"pipeline-model-parallel-size is 0; it must be at least 1",
        "virtual-pipeline-stages is -1; it must be at least 1, or 0 for the fewest of the "
        "schedule"}},
      {{.devices = 6, .pipeline = 2, .tensor = 2},
       {"devices 6 is not a multiple of pipeline-model-parallel-size 2 x "
        "tensor-model-parallel-size 2 x context-parallel-size 1; nearest: devices 4 or 8"}},
      {{.devices = 2, .pipeline = 2, .schedule = "1f2b"},
       {text("pipeline-schedule is '1f2b'; it can be ", join(schedule_names()))}},
      {{.devices = 2, .pipeline = 2, .virtual_stages = 2},
       {"virtual-pipeline-stages 2 does not go with pipeline-schedule 1f1b, which has 1 virtual "
        "stage per stage; give 0, which is what the schedule needs, or another pipeline-schedule: "
        "interleaved, zb-v"}},
      {{.devices = 2, .pipeline = 2, .virtual_stages = 1, .schedule = "interleaved"},
       {text("virtual-pipeline-stages 1 does not go with pipeline-schedule interleaved, which has "
             "at least 2 virtual stages per stage; give 0, which is what the schedule needs, or "
             "another pipeline-schedule: ",
             join(of_one_chunk))}},
      {{.devices = 8, .pipeline = 8},
       {"pipeline-model-parallel-size 8 with pipeline-schedule 1f1b cuts the model into 8 chunks, "
        "but its 4 layers, embedding and head are 6 parts; lower pipeline-model-parallel-size, or "
        "raise layers to 6"}},
      {{.devices = 2, .pipeline = 2, .virtual_stages = 4, .schedule = "interleaved"},
       {"pipeline-model-parallel-size 2 x virtual-pipeline-stages 4 cuts the model into 8 chunks, "
        "but its 4 layers, embedding and head are 6 parts; lower one of the two, or raise "
        "layers to 6"}},
      {{.devices = 2, .pipeline = 2, .layout = "1,3"}, {}},
      {{.devices = 2, .pipeline = 2, .layout = "0,4"}, {}},
      {{.devices = 2, .pipeline = 2, .layout = "1,x"},
       {"pipeline-layout is '1,x', in which 'x' is not a number of layers; give one for each "
        "chunk, "
        "as 3,4,4,3"}},
      {{.devices = 2, .pipeline = 2, .layout = "1,2,1"},
       {"pipeline-layout 1,2,1 has 3 chunks, but pipeline-model-parallel-size 2 "
        "with pipeline-schedule 1f1b makes 2; give a number for each"}},
      {{.devices = 2,
        .pipeline = 2,
        .layout = "9223372036854775807,9223372036854775807"},  // whose sum is no number
       {"pipeline-layout 9223372036854775807,9223372036854775807 gives chunk 0 9223372036854775807 "
        "layers, but the model has 4; give numbers that add up to that"}},
      {{.devices = 3, .pipeline = 3, .layout = "2,0,1"},
       {"pipeline-layout 2,0,1 has 3 layers, but the model has 4; give numbers that add up "
        "to that",
        "pipeline-layout 2,0,1 leaves chunk 1 without layers; only the first and the last may have "
        "none, as they have the embedding and the head"}},
      {{.devices = 2, .layout = "4"},
       {"pipeline-layout 4 does nothing with pipeline-model-parallel-size 1; raise that, or leave "
        "pipeline-layout out"}},
      {{.devices = 2, .virtual_stages = 2, .schedule = "zb-v"},
       {"pipeline-schedule zb-v does nothing with pipeline-model-parallel-size 1; raise that, or "
        "give pipeline-schedule 1f1b",
        "virtual-pipeline-stages 2 does nothing with pipeline-model-parallel-size 1; raise that, "
        "or give virtual-pipeline-stages 0"}},
  };
  for (const Case& c : cases) EXPECT_EQ(problems(c.config, model()).texts(), c.problems);
}

TEST(Parallel, ALayoutSaysHowManyLayersEachChunkHas) {
  const Strategy s = strategy_of({.devices = 3, .pipeline = 3, .layout = "1,3,0"}, {}, model());
  std::string out;
  for (const ChunkPin& pin : s.pipeline.pins) out += text(pin.blocks, "=", pin.chunk, " ");
  EXPECT_EQ(out, "layers.0=0 layers.1=1 layers.2=1 layers.3=1 ");
}

TEST(Parallel, ShardingOfStatesIsChecked) {
  struct Case {
    ParallelConfig config;
    std::vector<std::string> problems;
  };
  const Case cases[] = {
      {{.devices = 8, .tensor = 2, .shard_optimizer = true, .shard_size = 2}, {}},
      {{.devices = 8, .shard_parameters = true, .shard_threshold = 1024}, {}},
      {{.devices = 8, .tensor = 2, .shard_optimizer = true, .shard_size = 3},
       {"optimizer-shard-size 3 does not divide the 4 data parallel devices; it can be 1, 2, 4"}},
      {{.devices = 2, .shard_optimizer = true, .shard_size = -1, .shard_threshold = -2},
       {"optimizer-shard-size is -1; it must be at least 1, or 0 for all data parallel devices",
        "optimizer-shard-threshold is -2; it must be a number of bytes, or 0 for no threshold"}},
      {{.devices = 2, .shard_size = 2, .shard_threshold = 7},
       {"optimizer-shard-size 2 does nothing without ZeRO; give zero-stage 1, 2 or 3, or "
        "optimizer-shard-size 0",
        "optimizer-shard-threshold 7 does nothing without ZeRO; give zero-stage 1, 2 or 3, or "
        "optimizer-shard-threshold 0"}}};
  for (const Case& c : cases) EXPECT_EQ(problems(c.config, model()).texts(), c.problems);
}

/// As many hosts as there are, of so many ranks each.
Machine hosts_of(std::int64_t ranks) {
  Machine out;
  out.core.units = ranks, out.socket.units = 1;
  return out;
}

/// Groups of neighbours: ranks 0 and 2 (of dp, beside tp) share out states, so do 4 and 6.
TEST(Parallel, StatesInGroupsCutTheDataAxisInTwo) {
  ParallelConfig c{.devices = 8,
                   .tensor = 2,
                   .sequence = true,
                   .shard_parameters = true,
                   .shard_size = 2,
                   .shard_threshold = 64,
                   .unsharded = {"embed.*"},
                   .micro_batches = 3,
                   .machine = hosts_of(4)};
  const Strategy s = strategy_of(c);
  EXPECT_EQ(to_text(s.mesh), "dpo=2@host dp=2 tp=2 mb=3@time") << "a group is on one host";
  EXPECT_EQ(s.mesh.stride("dp"), 2);
  EXPECT_EQ(s.mesh.stride("dpo"), 4);
  EXPECT_EQ(s.batch[0], (std::vector<std::string>{"dpo", "dp", "mb"}));
  EXPECT_EQ(s.shard_parameters, std::vector<std::string>{"dp"});
  EXPECT_EQ(s.shard_threshold, 64);
  EXPECT_EQ(s.unsharded, c.unsharded);
  c.shard_size = 4;
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4@host tp=2 mb=3@time") << "one group is no group";
}

/// As MindSpore's lambda_func numbers them: six layers in four groups are six.
TEST(Parallel, GradientsOfLayersAreGrouped) {
  const auto groups = [](std::int64_t layers, std::int64_t groups) {
    ModelConfig of = model();
    of.layers = layers;
    const Strategy s = strategy_of({.bucket_mb = 25, .gradient_groups = groups}, {}, of);
    EXPECT_EQ(s.buckets.bytes, 25 << 20);
    std::string out;
    for (const BucketPin& pin : s.buckets.pins)
      out += text(out.empty() ? "" : " ", pin.parameters, "=", pin.group);
    return out;
  };
  EXPECT_EQ(groups(4, 0), "");
  EXPECT_EQ(groups(4, 2), "layers.0.*=1 layers.1.*=1 layers.2.*=2 layers.3.*=2");
  EXPECT_EQ(groups(5, 2), "layers.0.*=1 layers.1.*=1 layers.2.*=2 layers.3.*=2 layers.4.*=3");
  EXPECT_EQ(groups(3, 4), "layers.0.*=1 layers.1.*=2 layers.2.*=3");
  EXPECT_EQ(problems({.bucket_mb = -1}, model()).texts(),
            std::vector<std::string>{"bucket-mb is -1; it must be a number of MiB, or 0 to sum "
                                     "gradients one by one"});
}

TEST(Parallel, OneLayerIsNumberZero) {
  EXPECT_EQ(parse_layers("0", 1), std::vector<std::int64_t>{0});
  try {
    parse_layers("1", 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "recompute-layers is '1', but the only layer is 0; give that");
  }
}

TEST(Parallel, SplitsTheHeadsOfAGeneratorToo) {
  ModelConfig model = published("electra");
  model.heads = 4, model.width = 64;
  const ParallelConfig two{.devices = 2, .tensor = 2};
  EXPECT_EQ(problems(two, model).texts(),
            std::vector<std::string>{"tensor-model-parallel-size 2 does not divide the model's 1 "
                                     "heads of the generator, which "
                                     "is 16 wide; it can be 1, or give a larger generator-width"});
  ParallelConfig context{.devices = 2, .context = 2};
  EXPECT_EQ(key_exchange_of(context, model), KeyExchange::Ring);
  context.keys = KeyExchange::Heads;
  EXPECT_EQ(problems(context, model).texts(),
            std::vector<std::string>{"cp-comm-type a2a gives each device some of the heads, but "
                                     "context-parallel-size 2 does not divide the model's 1 heads "
                                     "of the generator; give p2p"});
  model.generator_width = 32;
  EXPECT_TRUE(problems(context, model).empty());
  EXPECT_TRUE(problems(two, model).empty());
  model.generator_width = 0, model.task = kMaskedLm;
  EXPECT_TRUE(problems(two, model).empty()) << "it has no generator";
}

TEST(Parallel, StrategiesArePins) {
  const Strategy s = strategy_of({.devices = 8,
                                  .tensor = 2,
                                  .context = 2,
                                  .sequence = true,
                                  .shard_optimizer = true,
                                  .micro_batches = 3});
  EXPECT_EQ(to_text(s.mesh), "dp=2 cp=2 tp=2 mb=3@time");
  const auto pinned = [&](std::string_view path) {
    std::string out = "none";
    for (const Pin& pin : s.pins) {
      if (matches(pin.values, path)) out = to_text(pin.sharding);
    }
    return out;
  };
  EXPECT_EQ(pinned("layers.3.attn.qkv.weight"), "[tp,-]");
  EXPECT_EQ(pinned("layers.3.attn.proj.weight"), "[-,tp]");
  EXPECT_EQ(pinned("layers.3.attn.proj.bias"), "none");
  EXPECT_EQ(pinned("layers.11.mlp.down.weight"), "[-,tp]");
  EXPECT_EQ(pinned("embed.token.weight"), "[tp,-]");
  EXPECT_EQ(pinned("layers.0.residual"), "[dp.mb,cp.tp,-]");
  EXPECT_EQ(s.shard_moments, std::vector<std::string>{"dp"});
  EXPECT_TRUE(s.shard_gradients.empty());
}

/// vocab_emb_dp: of all that tensor parallelism splits, tables of embeddings alone.
TEST(Parallel, TablesOfEmbeddingsCanStayWhole) {
  ModelConfig model;
  model.family = "transformer";
  for (const bool whole : {true, false}) {
    const Strategy s =
        strategy_of({.devices = 2, .tensor = 2, .whole_embeddings = whole}, BatchSplit::Cut, model);
    const auto last_pin = [&](std::string_view path) {
      std::string out = "none";
      for (const Pin& pin : s.pins) {
        if (matches(pin.values, path)) out = to_text(pin.sharding);
      }
      return out;
    };
    for (const char* table : {"embed.token.weight", "embed_target.token.weight"})
      EXPECT_EQ(last_pin(table), whole ? "[-,-]" : "[tp,-]") << table;
    EXPECT_EQ(last_pin("head.weight"), "[tp,-]");
  }
}

TEST(Strategy, PatternsMatch) {
  struct Case {
    const char *pattern, *path;
    bool matches;
  };
  const Case cases[] = {
      {"", "", true},           {"*", "", true},          {"a", "a", true},
      {"a", "ab", false},       {"*.b", "x.y.b", true},   {"*.b", "x.y.b.c", false},
      {"a*c*e", "abcde", true}, {"a*c*e", "abcd", false}, {"layers.*.up", "layers.12.mlp.up", true},
      {"**", "anything", true}, {"a*a", "a", false},
  };
  for (const Case& c : cases)
    EXPECT_EQ(matches(c.pattern, c.path), c.matches) << c.pattern << " on " << c.path;
}

TEST(Parallel, AxesKnowWhichLinkTheyCross) {
  ParallelConfig c{.devices = 16, .tensor = 2, .context = 2};
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4 cp=2 tp=2");
  c.machine = hosts_of(4);
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4@host cp=2 tp=2");
  c.machine = hosts_of(2);
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4@host cp=2@host tp=2");
  c.machine = hosts_of(1);
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4@host cp=2@host tp=2@host");
  c.machine = hosts_of(16);
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=4 cp=2 tp=2");
  c.pipeline = 4;  // with four stages of four ranks, all of a stage are on one host
  EXPECT_EQ(to_text(strategy_of(c).mesh), "cp=2 tp=2");
  c.machine = hosts_of(4);
  EXPECT_EQ(to_text(strategy_of(c).mesh), "cp=2 tp=2");
  c.pipeline = 2;
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=2@host cp=2 tp=2");
}

TEST(Parallel, RanksAreOrderedAsTold) {
  ParallelConfig c{.devices = 16,
                   .tensor = 2,
                   .context = 2,
                   .shard_optimizer = true,
                   .shard_size = 2,
                   .machine = hosts_of(4),
                   .rank_order = "tp,cp,dp"};
  EXPECT_EQ(to_text(strategy_of(c).mesh), "tp=2@host cp=2@host dpo=2 dp=2");
  EXPECT_EQ(strategy_of(c).major, strategy_of(ParallelConfig{.devices = 16}).major);
  c.rank_order = "cp,dp,tp";
  EXPECT_EQ(to_text(strategy_of(c).mesh), "cp=2@host dpo=2@host dp=2 tp=2");
  for (const char* order : {"", "dp", "dp,tp", "dp,tp,tp", "dp,cp,tp,pp", "dp cp tp"}) {
    c.rank_order = order;
    EXPECT_EQ(problems(c, model()).texts(),
              std::vector<std::string>{text("rank-order is '", order, "'; give each of dp, cp, tp ",
                                            "once, outermost first, as dp,cp,tp")});
    EXPECT_THROW(strategy_of(c), Error) << order;
  }
}

TEST(Parallel, MachinesHaveSoManyDevices) {
  ParallelConfig c{.devices = 32, .machine = hosts_of(4)};
  c.machine.name = "lab";
  c.machine.host.units = 4, c.machine.rack.units = 2;
  EXPECT_TRUE(problems(c, model()).empty());
  c.devices = 33;
  EXPECT_EQ(problems(c, model()).texts(),
            std::vector<std::string>{"devices 33 are more than the 32 of machine lab; lower "
                                     "devices, or name a larger machine"});
}

TEST(Parallel, StagesShareTheDevicesOut) {
  ParallelConfig c{.devices = 16, .tensor = 2};
  EXPECT_EQ(strategy_of(c).pipeline, PipelineStrategy());
  EXPECT_EQ(c.data(), 8);
  c.pipeline = 4;
  EXPECT_EQ(c.data(), 2);
  EXPECT_EQ(to_text(strategy_of(c).mesh), "dp=2 tp=2");
  EXPECT_EQ(strategy_of(c).pipeline, (PipelineStrategy{4, 1, "1f1b"}));
  EXPECT_EQ(mesh_text(strategy_of(c)), "pp=4 dp=2 tp=2");
  EXPECT_EQ(mesh_text(strategy_of({.devices = 2, .pipeline = 2})), "pp=2");
  EXPECT_EQ(mesh_text(strategy_of({.devices = 2})), "dp=2");
  c.schedule = "zb-v";
  EXPECT_EQ(strategy_of(c).pipeline, (PipelineStrategy{4, 2, "zb-v"}));
  c.schedule = "interleaved";
  c.virtual_stages = 3;
  c.chunks = {{"layers.1", 0}};
  EXPECT_EQ(strategy_of(c).pipeline, (PipelineStrategy{4, 3, "interleaved", {{"layers.1", 0}}}));
}

TEST(Parallel, LayersOfEncoderAndDecoderAreOneRow) {
  ModelConfig model;
  model.family = "transformer", model.layers = 2, model.decoder_layers = 2;
  EXPECT_EQ(chunks_by_layer(model, [](std::int64_t layer) { return layer < 3 ? 0 : 1; }),
            (std::vector<ChunkPin>{{"encoder.layers.0", 0},
                                   {"encoder.layers.1", 0},
                                   {"decoder.layers.0", 0},
                                   {"decoder.layers.1", 1}}));
  ParallelConfig c{.recompute = Recompute::Full};
  EXPECT_EQ(strategy_of(c, BatchSplit::Cut, model).recompute,
            (std::vector<RecomputePin>{{"encoder.layers.*", Recompute::Full},
                                       {"decoder.layers.*", Recompute::Full}}));
  c.recompute_layers = "1-2";
  EXPECT_EQ(strategy_of(c, BatchSplit::Cut, model).recompute,
            (std::vector<RecomputePin>{{"encoder.layers.*", Recompute::Elementwise},
                                       {"decoder.layers.*", Recompute::Elementwise},
                                       {"encoder.layers.1", Recompute::Full},
                                       {"decoder.layers.0", Recompute::Full}}));
  c.recompute = Recompute::Elementwise;
  EXPECT_EQ(strategy_of(c, BatchSplit::Cut, model).recompute,
            (std::vector<RecomputePin>{{"encoder.layers.1", Recompute::Elementwise},
                                       {"decoder.layers.0", Recompute::Elementwise}}));
  c.recompute = Recompute::Full;
  c.recompute_layers = "4";
  EXPECT_EQ(problems(c, model).texts(),
            std::vector<std::string>{"recompute-layers is '4', but the layers "
                                     "are 0 to 3; give some of these"});
  model.source_context = 8;
  EXPECT_EQ(problems({.devices = 16, .context = 16}, model).texts(),
            std::vector<std::string>{
                "context-parallel-size 16 is above the source-context of 8 tokens; lower it"});
}

TEST(Parallel, LayersArePutOnChunksByTheirNumber) {
  ModelConfig model;
  model.layers = 3;
  EXPECT_EQ(chunks_by_layer(model, [](std::int64_t layer) { return layer < 2 ? 0 : 1; }),
            (std::vector<ChunkPin>{{"layers.0", 0}, {"layers.1", 0}, {"layers.2", 1}}));
  const auto refused = [](const std::function<int(std::int64_t)>& chunk_of) -> std::string {
    try {
      chunks_by_layer(ModelConfig(), chunk_of);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused([](std::int64_t layer) { return static_cast<int>(layer) - 1; }),
            "layer 0 is put on chunk -1, and the first is 0; chunks must ascend from layer to "
            "layer, from 0");
  EXPECT_EQ(refused([](std::int64_t layer) { return static_cast<int>(layer % 3); }),
            "layer 3 is put on chunk 0, layer 2 before it on chunk 2; chunks must ascend from "
            "layer to layer, from 0");
}

}  // namespace
}  // namespace tessera
