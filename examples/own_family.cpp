/// A model family of one's own, in a program of one's own: trained on one device and on four, in
/// four ways, with the same losses. docs/guides/cpp-family.md explains it line by line.
///
///   example_own_family                                   trains it, and compares the losses
///   example_own_family train --family primer ...         the command `tessera`, with one more
///   family

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tessera/tessera.h"

using namespace tessera;

namespace {

// [layer]
/// down(relu(up(x))^2): x [b, s, d] -> [b, s, d]. Source: So et al. 2021 (Primer), arXiv
/// 2109.08668.
Value squared_relu(Value x, const TransformerLayer& layer) {
  const Scope scope(x.builder(), "ffn");
  const std::int64_t width = x.shape().back();
  const Value y = relu(linear(x, "up", layer.ffn_width, {.bias = false, .init = layer.init}));
  return linear(y * y, "down", width, {.bias = false, .init = layer.residual_init});
}
// [end]

// [model]
/// Token ids [b, s] -> logits [b, s, vocabulary].
Value primer(const ModelConfig& c, Value ids, const Pass& pass) {
  Builder& builder = ids.builder();
  TransformerLayer layer = layer_of(c);
  layer.norm = NormKind::Rms;
  layer.rotary = true;
  layer.bias = false;
  layer.residual_init = residual_init(layer.init, 2 * c.layers);

  EmbeddingResult tokens;
  Value x;
  {
    const Scope scope(builder, "embed");
    tokens = embedding(ids, "token", c.vocabulary, c.width, layer.init);
    x = tokens.rows;
    builder.set_name(x, "residual");
  }
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope scope(builder, text("layers.", i));
    x = x + self_attention(norm(x, "norm1", layer), layer, {.causal = true}, pass);
    builder.set_name(x, "residual");
    x = x + squared_relu(norm(x, "norm2", layer), layer);
    builder.set_name(x, "residual");
  }
  if (pass.wanted.valid()) x = dynamic_slice(x, 1, pass.wanted, 1);
  x = norm(x, "norm", layer);
  const Scope scope(builder, "head");
  return matmul(x, tokens.table, {.trans_b = true});
}
// [end]

// [family]
constexpr ReadField kReads[] = {{"layers"},   {"heads"},    {"kv-heads"},   {"width"},
                                {"context"},  {"dropout"},  {"vocab-size"}, {"ffn-width"},
                                {"norm-eps"}, {"init-std"}, {"rope-base"}};

constexpr TensorCut kCuts[] = {{"*.ffn.up.weight", 0, 2}, {"*.ffn.down.weight", 1, 2}};

constexpr FamilyTask kTasks[] = {
    {kCausalLm, [](const ModelConfig& config) { return causal_lm(config, primer); }}};

constexpr ModelFamily kPrimer = {
    .name = "primer",
    .doc = "RMS norm, rotary positions, squared ReLU",
    .reads = kReads,
    .tasks = kTasks,
    .find_problems =
        [](const ModelConfig& c, FieldProblems& problems) {
          if (c.width % c.heads == 0 && c.head_dim() % 2 != 0)
            problems.add({"width", "heads"},
                         text("rotary positions need an even head width; width ", c.width, " over ",
                              c.heads, " heads gives ", c.head_dim()));
        },
    .cuts = kCuts,
};
// [end]

/// Keeps the losses.
struct Losses : TrainCallback {
  void on_step(const StepRecord& record) override { values.push_back(record.loss); }
  std::vector<double> values;
};

/// Trains on the devices of `config`, each a thread; returns the loss of each step.
std::vector<double> train_on_threads(const RunConfig& config) {
  Problems problems;
  std::optional<PreparedRun> run = prepare_run(config, problems);
  problems.raise();  // all that is wrong, at once
  const RunConfig complete = run->config;
  Losses losses;
  run_ranks(static_cast<int>(complete.parallel.devices), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_cpu_device({.threads = 1});
    if (world.rank() > 0) return follow(complete, CpuBackend(*device), world);
    TrainOptions options;
    options.callbacks = {&losses};
    if (world.size() > 1) options.world = &world;
    train(std::move(*run), CpuBackend(*device), options);
  });
  return losses.values;
}

/// A folder that is removed again.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "own-family-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr, "no folder could be made at ", name);
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

RunConfig recipe(const std::string& folder) {
  RunConfig out;
  out.model = published(kPrimer);
  out.model.layers = 4, out.model.heads = 4, out.model.width = 32, out.model.context = 32;
  out.model.vocabulary = 0;  // that of the data
  out.optimizer.schedule = {.kind = ScheduleKind::Constant, .lr = 5e-3};
  out.data = {folder + "/text.txt"};
  out.global_batch_size = 8;
  out.steps = 30;
  out.eval_at_end = false;
  return out;
}

struct Mesh4 {
  const char* name;
  ParallelConfig parallel;
  std::int64_t zero_stage, micro_batch_size;
};

const Mesh4 kMeshes[] = {
    {"tensor parallel 4", {.devices = 4, .tensor = 4}, 0, 0},
    {"pipeline 2 x tensor 2, 4 micro-batches", {.devices = 4, .pipeline = 2, .tensor = 2}, 0, 2},
    {"ZeRO-3 over 4", {.devices = 4}, 3, 0},
    {"pipeline 2 x data 2, ZeRO-1", {.devices = 4, .pipeline = 2}, 1, 2},
};

/// Prints the losses of all; 0 where they agree.
int compare_meshes() {
  const Folder folder;
  std::ofstream file(folder.path + "/text.txt");
  for (int i = 0; i < 400; ++i) file << "line " << i * 7919 % 1000 << (i % 5 == 0 ? '\n' : ' ');
  file.close();

  RunConfig config = recipe(folder.path);
  config.output = folder.path + "/one";
  const std::vector<double> one = train_on_threads(config);
  std::printf("%-40s loss %.4f -> %.4f\n", "one device", one.front(), one.back());
  bool good = one.back() < one.front() - 0.5;
  for (const Mesh4& mesh : kMeshes) {
    config.parallel = mesh.parallel;
    config.zero_stage = mesh.zero_stage;
    config.micro_batch_size = mesh.micro_batch_size;
    config.output = folder.path + "/" + mesh.name;
    const std::vector<double> other = train_on_threads(config);
    double furthest = 0;
    for (std::size_t i = 0; i < 10; ++i)
      furthest = std::max(furthest, std::abs(one[i] - other[i]) / one[i]);
    std::printf("%-40s loss %.4f -> %.4f, first ten losses differ by %.1e\n", mesh.name,
                other.front(), other.back(), furthest);
    good = good && furthest < 1e-5;
  }
  return good ? 0 : 1;
}

}  // namespace

// [main]
int main(int count, char** values) try {
  if (count == 1) return compare_meshes();
  return main_of(count, values, {&kPrimer});
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
// [end]
