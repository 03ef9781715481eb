/// Runs of adapters whose checkpoints leave the weights in their folder.

#include "tessera/train/adapter_base.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tessera/config/recorded.h"
#include "tessera/files/safetensors.h"
#include "tessera/pretrained/save_pretrained.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"
#include "train/tiny_run.h"

namespace tessera {
namespace {

class AdapterRun : public TrainerTest {
 protected:
  AdapterRun() {
    run(whole("first"));
    write_folder("first", "base");
  }

  RunConfig whole(const std::string& output) const {
    RunConfig out = config(output);
    find_preset("llama-tiny").apply(out);
    out.model.layers = 2;
    out.model.width = 32;
    out.model.context = 32;
    out.model.vocabulary = 0;
    out.vocabulary = VocabularyKind::Bytes;
    out.global_batch_size = 4;
    out.steps = 6;
    return out;
  }

  RunConfig adapter(const std::string& output) const {
    RunConfig out = whole(output);
    out.init_from = folder_ + "/base";
    out.model.lora.rank = 4;
    out.save_every = 2;
    return out;
  }

  /// The weights of a run as a folder of Hugging Face's.
  void write_folder(const std::string& of_run, const std::string& name) const {
    const Checkpoint from = Checkpoint::open(folder_ + "/" + of_run);
    const ParameterReader reader = {[&](std::string_view path) {
                                      const TensorEntry* const entry = from.find(path);
                                      return entry == nullptr ? nullptr : &entry->type.shape;
                                    },
                                    [&](std::string_view path, std::span<float> out) {
                                      from.read(path, std::as_writable_bytes(out));
                                    }};
    save_pretrained(folder_ + "/" + name, recorded_run(from).config.model, reader, {});
  }

  std::int64_t parameter_bytes(const std::string& output) const {
    std::int64_t out = 0;
    const Checkpoint saved = Checkpoint::open(folder_ + "/" + output);
    for (const TensorEntry& entry : saved.tensors())
      out += entry.role == Role::Parameter ? entry.type.bytes() : 0;
    return out;
  }

  std::string digest_with_base(const std::string& output) const {
    return digest(open_with_base(folder_ + "/" + output));
  }

  void move_base(const std::string& to) const {
    std::filesystem::rename(folder_ + "/base", folder_ + "/" + to);
  }
};

TEST_F(AdapterRun, CheckpointsHoldTheAdapterAlone) {
  run(adapter("apart"));
  RunConfig all = adapter("all");
  all.save_base = true;
  run(all);
  const Checkpoint apart = Checkpoint::open(folder_ + "/apart");
  for (const TensorEntry& entry : apart.tensors()) {
    if (entry.role == Role::Parameter) {
      EXPECT_NE(entry.name.find(".lora_"), std::string::npos) << entry.name;
    }
  }
  EXPECT_LT(5 * parameter_bytes("apart"), parameter_bytes("all"));
  EXPECT_EQ(open_with_base(folder_ + "/all").base_path(), "");
  EXPECT_EQ(digest_with_base("apart"), digest_of("all"));
}

/// On whatever mesh the base is read again, to the bit where the mesh is the same.
TEST_F(AdapterRun, GoesOnFromAnAdapter) {
  for (const bool bf16 : {false, true}) {
    SCOPED_TRACE(bf16 ? "bf16" : "f32");
    const std::string name = bf16 ? "16" : "32";
    RunConfig whole = adapter("whole" + name), cut = adapter("cut" + name);
    whole.bf16 = cut.bf16 = bf16;
    run(whole);
    StopAfter stop(3);
    run(cut, {.callbacks = {&stop}, .stop = &stop.stop});
    cut.init_from = "";  // the checkpoint knows it
    run(cut);
    EXPECT_EQ(digest_of(cut.output.substr(folder_.size() + 1)), digest_of("whole" + name));
    EXPECT_EQ(losses("cut" + name), losses("whole" + name));
  }
}

TEST_F(AdapterRun, GoesOnOnAnotherMesh) {
  RunConfig whole = adapter("whole");
  whole.model.dropout = 0;
  RunConfig cut = whole;
  cut.output = folder_ + "/cut";
  run(whole);
  StopAfter stop(4);
  run(cut, {.callbacks = {&stop}, .stop = &stop.stop});
  move_base("moved");
  cut.init_from = folder_ + "/moved";  // every rank reads it there
  cut.parallel.devices = 4;
  cut.parallel.tensor = 2;
  run_on_ranks(cut);
  EXPECT_NEAR(last("cut", "train").at("loss"), last("whole", "train").at("loss"), 1e-5);
  EXPECT_EQ(open_with_base(folder_ + "/cut").base_path(), folder_ + "/moved");
}

/// The best weights were saved before the base was moved.
TEST_F(AdapterRun, TestsTheBestOfBeforeTheBaseWasMoved) {
  RunConfig cut = adapter("cut");
  cut.test_data = {folder_ + "/text.txt"};
  cut.keep_best = true;
  cut.eval_every = 1;
  cut.optimizer.schedule.lr = cut.optimizer.schedule.min_lr = 0;  // none is better than the first
  StopAfter stop(3);
  run(cut, {.callbacks = {&stop}, .stop = &stop.stop});
  move_base("moved");
  cut.init_from = folder_ + "/moved";
  run(cut);
  EXPECT_TRUE(last("cut", "test").contains("loss"));
}

TEST_F(AdapterRun, AnotherBaseIsRefused) {
  RunConfig cut = adapter("cut");
  StopAfter stop(2);
  run(cut, {.callbacks = {&stop}, .stop = &stop.stop});
  RunConfig longer = whole("first");
  longer.steps = 7;
  run(longer);
  write_folder("first", "other");

  RunConfig told = cut;
  told.init_from = folder_ + "/other";
  std::string said = refusal(told);
  EXPECT_NE(said.find("have other values than when it was trained"), std::string::npos) << said;
  EXPECT_NE(said.find(folder_ + "/other'"), std::string::npos) << said;
  EXPECT_NE(said.find(folder_ + "/base'"), std::string::npos) << said;

  move_base("was");
  said = refusal(cut);
  EXPECT_NE(said.find("holds an adapter alone, and its base, '" + folder_ + "/base', is not there"),
            std::string::npos)
      << said;
  std::filesystem::rename(folder_ + "/other", folder_ + "/base");
  EXPECT_NE(refusal(cut).find("other values"), std::string::npos) << refusal(cut);
}

/// One number of one weight is another base.
TEST_F(AdapterRun, OneOtherNumberIsAnotherBase) {
  RunConfig cut = adapter("cut");
  StopAfter stop(2);
  run(cut, {.callbacks = {&stop}, .stop = &stop.stop});
  const std::string path = folder_ + "/base/model.safetensors";
  std::map<std::string, HostTensor> tensors;
  std::vector<TensorSource> sources;
  {
    const SafetensorsFile file(path);
    for (const StoredTensor& stored : file.tensors())
      tensors.emplace(stored.name, file.load(stored.name));
  }
  HostTensor& norm = tensors.at("model.norm.weight");
  norm.set(0, norm.at(0) + 1e-6);
  for (const auto& [name, tensor] : tensors)
    sources.push_back(TensorSource::of(name, tensor.type(), tensor.bytes()));
  write_safetensors(path, std::move(sources), {{"format", "pt"}});
  const std::string said = refusal(cut);
  EXPECT_NE(said.find("1 of "), std::string::npos) << said;
  EXPECT_NE(said.find("norm"), std::string::npos) << said;
}

/// A checkpoint as a base may be removed by the run that made it; weights that began at random are
/// nowhere else.
TEST_F(AdapterRun, OtherBasesAreHeld) {
  RunConfig of_run = adapter("of_run"), alone = adapter("alone");
  of_run.init_from = folder_ + "/first";
  alone.init_from = "";
  for (const RunConfig& one : {of_run, alone}) {
    run(one);
    const Checkpoint saved = open_with_base(one.output);
    EXPECT_EQ(saved.base_path(), "");
    EXPECT_NE(saved.find("embed.token.weight"), nullptr);
  }
}

/// A run that began before checkpoints left anything out.
TEST_F(AdapterRun, OneThatHoldsAllGoesOnSo) {
  RunConfig cut = adapter("cut");
  cut.save_base = true;
  StopAfter stop(2);
  run(cut, {.callbacks = {&stop}, .stop = &stop.stop});
  std::filesystem::remove_all(folder_ + "/base");
  cut.save_base = false;
  cut.init_from = "";
  run(cut);
  EXPECT_NE(Checkpoint::open(cut.output).find("embed.token.weight"), nullptr);
}

/// Where each rank has a state, once the weights are there.
std::vector<const void*> places_of(const RunConfig& config, const std::string& state,
                                   std::vector<std::int64_t>& base_bytes) {
  Problems problems;
  const std::optional<PreparedRun> prepared = prepare_run(config, problems);
  problems.raise();
  const RunSetup setup(prepared->config, prepared->task);
  const int ranks = static_cast<int>(setup.config.parallel.devices);
  std::vector<const void*> out(static_cast<std::size_t>(ranks));
  base_bytes.assign(out.size(), 0);
  run_ranks(ranks, [&](Communicator& world) {
    const auto device = make_cpu_device({1, -1});
    const CpuBackend backend(*device);
    RankGroup group(compile_programs(setup, wanted_programs(setup), backend, world.rank()).plan,
                    backend, &world);
    const auto rank = static_cast<std::size_t>(world.rank());
    base_bytes[rank] = group.plan().base_bytes;
    if (group.plan().find_state(state) != nullptr)
      out[rank] = group.engine().read_state(state).bytes.data();
    if (rank > 0) return group.follow();
    group.run(kInitProgram);
    group.load_weights(*prepared->pretrained);
    group.stop();
  });
  return out;
}

TEST_F(AdapterRun, DevicesOfAProcessHoldTheBaseOnce) {
  RunConfig config = adapter("mesh");
  std::vector<std::int64_t> bytes;
  config.parallel.devices = 2;
  std::vector<const void*> at = places_of(config, "layers.0.attn.proj.weight", bytes);
  EXPECT_EQ(at[0], at[1]);
  EXPECT_GT(bytes[0], 0);
  at = places_of(config, "layers.0.attn.qkv.q.lora_a", bytes);
  EXPECT_NE(at[0], at[1]);

  config.parallel.devices = 4;
  config.parallel.tensor = 2;  // ranks 0 and 2 have one part of it, 1 and 3 the other
  at = places_of(config, "layers.0.attn.proj.weight", bytes);
  EXPECT_EQ(at[0], at[2]);
  EXPECT_EQ(at[1], at[3]);
  EXPECT_NE(at[0], at[1]);

  config.parallel.devices = 2;
  config.parallel.tensor = 1;
  config.parallel.pipeline = 2;  // each layer is on one stage
  places_of(config, "layers.0.attn.proj.weight", bytes);
  EXPECT_EQ(bytes[0], 0);

  config.parallel.pipeline = 1;
  config.init_from = "";  // what each rank makes itself
  const auto count = [&] {
    Problems problems;
    const std::optional<PreparedRun> prepared = prepare_run(config, problems);
    problems.raise();
    const RunSetup setup(prepared->config, prepared->task);
    return compile_programs(setup, wanted_programs(setup), *device_).plan.base_bytes;
  };
  EXPECT_EQ(count(), 0);
}

TEST_F(AdapterRun, MeshesLearnTheSame) {
  RunConfig one = adapter("one");
  one.model.dropout = 0;
  one.eval_every = 3;
  run(one);
  struct Case {
    const char* name;
    ParallelConfig parallel;
    std::int64_t zero_stage, micro_batch;
  };
  for (const Case& c : {Case{"dp4", {.devices = 4}, 0, 0}, Case{"dp2-mb", {.devices = 2}, 1, 1},
                        Case{"dp2-zero3", {.devices = 2}, 3, 0},
                        Case{"tp2-dp2", {.devices = 4, .tensor = 2, .sequence = true}, 0, 0},
                        Case{"pp2-dp2", {.devices = 4, .pipeline = 2}, 0, 1},
                        Case{"pp2-tp2-zero3", {.devices = 4, .pipeline = 2, .tensor = 2}, 3, 1}}) {
    SCOPED_TRACE(c.name);
    RunConfig mesh = one;
    mesh.output = folder_ + "/" + c.name;
    mesh.parallel = c.parallel;
    mesh.zero_stage = c.zero_stage;
    mesh.micro_batch_size = c.micro_batch;
    run_on_ranks(mesh);
    for (const char* const kind : {"train", "valid"})
      EXPECT_NEAR(last(c.name, kind).at("loss"), last("one", kind).at("loss"), 1e-5) << kind;
    EXPECT_EQ(Checkpoint::open(mesh.output).find("layers.0.attn.proj.weight"), nullptr);
  }
}

}  // namespace
}  // namespace tessera
