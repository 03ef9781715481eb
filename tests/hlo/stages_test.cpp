/// Pipelines as modules: levels of regions, and runs on XLA's plugin, each stage on devices of its
/// own, against executors.

#include "hlo/on_plugin.h"
#include "tessera/hlo/levels.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/interpret_ranks.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"
#include "tessera/passes/stage_partition.h"
#include "train/one_device.h"
#include "train/staged_run.h"
#include "worst.h"

namespace tessera::test {

namespace {

using hlo::Piece;

Result scalar_result() { return {{DType::F32, {}, {}}, Placement{}, {}}; }

/// Two stages that exchange messages both ways: a goes over, b comes back, c goes over.
Graph exchanging(int stage) {
  Builder builder(Form::Local);
  const auto send = [&](const char* name, Value value) {
    builder.output(Output::Kind::Send, name, value);
  };
  if (stage == 0) {
    const Value own = exp(builder.slot("x", scalar_result()));
    send("a", own);
    send("c", own + builder.receive("b", scalar_result()));
  } else {
    send("b", exp(builder.receive("a", scalar_result())));
    builder.output(Output::Kind::Metric, "end", exp(builder.receive("c", scalar_result())));
  }
  return builder.finish();
}

/// The programs of all stages.
std::vector<Program> programs_of_stages(const Graph& step, const Strategy& strategy) {
  const PipelineStrategy& p = strategy.pipeline;
  const Pipeline pipeline(
      make_schedule(p.schedule, {p.stages, p.chunks, strategy.mesh.size(kMicrobatchAxis)}));
  Graph graph = simplify(step);
  graph = place_chunks(graph, cut_into_chunks(graph, p));
  graph = propagate(add_uses(graph), strategy);
  StagePartition parts(graph, pipeline, {});
  std::vector<Program> out;
  for (int s = 0; s < p.stages; ++s) out.push_back(parts.stage(s));
  return out;
}

/// One stage: its pieces on its devices, and what it holds, by rank.
class PluginStage {
 public:
  using Shards = std::vector<pjrt::Buffer>;
  struct Mail {
    std::map<std::pair<std::string, std::int64_t>, Shards> messages;  // by name and micro-batch
  };

  PluginStage(int stage, Program program, const std::vector<Piece>& pieces, Mail& mail)
      : stage_(stage), program_(std::move(program)), mail_(mail) {
    for (const Piece& piece : pieces) {
      pieces_.push_back({piece.region, piece.chunk, piece.module,
                         std::make_unique<OnPlugin>(piece.module, first_device())});
    }
  }

  void begin(std::int64_t step) {
    step_ = step;
    at_ = piece_ = 0;
    slots_.clear(), sums_.clear(), next_.clear();
  }
  bool done() const { return at_ == program_.actions.size(); }

  /// Runs pieces until one needs a message that is not there; true where some ran.
  bool advance(std::map<std::string, HostTensor>& states, Outcome& out,
               const std::vector<TaskInput>& inputs) {
    bool ran = false;
    for (; !done(); ++at_, piece_ = 0) {
      const Action& action = program_.actions[at_];
      for (; piece_ < pieces_.size(); ++piece_) {
        const Ready& piece = pieces_[piece_];
        if (piece.region != action.region || piece.chunk != action.chunk) continue;
        if (!has_messages(piece.module, action.microbatch)) return ran;
        run(piece, action.microbatch, states, out, inputs);
        ran = true;
      }
    }
    for (auto& [path, shards] : next_) states_[path] = std::move(shards);
    next_.clear();
    return ran;
  }

  void read_states(std::map<std::string, HostTensor>& out) const {
    for (const auto& [path, shards] : states_) {
      std::vector<HostTensor> tensors;
      const hlo::Port& port = ports_.at(path);
      for (const pjrt::Buffer& shard : shards) {
        tensors.emplace_back(port.result.type);
        shard.read(tensors.back().bytes());
      }
      out[path] = joined(tensors, port.result, program_.mesh(), Replicas::First);
    }
  }

 private:
  struct Ready {
    RegionKind region;
    int chunk;
    hlo::Module module;
    std::unique_ptr<OnPlugin> program;
  };

  std::int64_t ranks() const { return program_.mesh().ranks(); }
  std::int64_t first_device() const { return stage_ * ranks(); }

  bool has_messages(const hlo::Module& module, std::int64_t k) const {
    return std::ranges::all_of(module.arguments, [&](const hlo::Port& port) {
      return port.kind != hlo::Port::Kind::Message || mail_.messages.contains(key(port, k));
    });
  }
  static std::pair<std::string, std::int64_t> key(const hlo::Port& port, std::int64_t k) {
    return {port.name, port.each_microbatch ? k : -1};
  }

  Shards put_all(const OnPlugin& program, const HostTensor& tensor) const {
    Shards out;
    for (std::int64_t r = 0; r < ranks(); ++r) out.push_back(program.put(tensor, r));
    return out;
  }

  Shards batch(const OnPlugin& program, const hlo::Port& port,
               const std::vector<TaskInput>& inputs) const {
    HostTensor found;
    BatchInputs filled("train");
    std::vector<HostTensor> all;
    for (const TaskInput& input : inputs) {  // all of them, as numbers are drawn in order
      Shape shape{12};
      for (const std::int64_t size : input.sample) shape.push_back(size);
      all.emplace_back(input.dtype, shape);
      filled.add(input.name, all.back().type(), all.back().bytes().data());
      if (input.name == port.name) found = all.back();
    }
    fill_inputs(filled, inputs, step_);
    Shards out;
    for (std::int64_t r = 0; r < ranks(); ++r) {
      out.push_back(program.put(shard_of(found, port.result, program_.mesh(),
                                         coordinates_of(program_.mesh(), r), Beyond::Zeros),
                                r));
    }
    return out;
  }

  void run(const Ready& piece, std::int64_t k, std::map<std::string, HostTensor>& first,
           Outcome& out, const std::vector<TaskInput>& inputs) {
    using Kind = hlo::Port::Kind;
    std::map<std::string, Shards> made;
    std::vector<const Shards*> arguments;
    for (const hlo::Port& port : piece.module.arguments) {
      const std::string name = to_text(port);
      switch (port.kind) {
        case Kind::State:
          ports_[port.name] = port;
          if (!states_.contains(port.name)) {
            Shards& shards = states_[port.name];
            for (std::int64_t r = 0; r < ranks(); ++r) {
              shards.push_back(
                  piece.program->put(shard_of(first.at(port.name), port.result, program_.mesh(),
                                              coordinates_of(program_.mesh(), r), Beyond::Zeros),
                                     r));
            }
          }
          arguments.push_back(&states_.at(port.name));
          break;
        case Kind::Batch:
          made[name] = batch(*piece.program, port, inputs);
          arguments.push_back(&made[name]);
          break;
        case Kind::Microbatch:
          made[name] = put_all(*piece.program, HostTensor::scalar<std::int64_t>(k));
          arguments.push_back(&made[name]);
          break;
        case Kind::Sum: arguments.push_back(&sums_.at(port.name)); break;
        case Kind::Message: arguments.push_back(&mail_.messages.at(key(port, k))); break;
        default: arguments.push_back(&slots_.at(key(port, k)));
      }
    }
    pjrt::Arguments by_rank(at(ranks()));
    for (const Shards* shards : arguments) {
      for (std::size_t r = 0; r < by_rank.size(); ++r) by_rank[r].push_back(&(*shards)[r]);
    }
    pjrt::Results results = piece.program->run(by_rank);
    for (std::size_t i = 0; i < piece.module.results.size(); ++i) {
      const hlo::Port& port = piece.module.results[i];
      Shards shards;
      for (auto& of_rank : results) shards.push_back(std::move(of_rank[i]));
      keep(port, k, std::move(shards), *piece.program, static_cast<int>(i), out);
    }
  }

  void keep(const hlo::Port& port, std::int64_t k, Shards shards, const OnPlugin& program,
            int index, Outcome& out) {
    using Kind = hlo::Port::Kind;
    if (port.kind == Kind::Message) {
      Shards moved;
      for (std::int64_t r = 0; r < ranks(); ++r) {
        moved.push_back(
            shards[at(r)].copy_to(cpu_plugin()->local_devices()[at(port.to * ranks() + r)]));
      }
      mail_.messages[key(port, k)] = std::move(moved);
    } else if (port.kind == Kind::State) {
      next_[port.name] = std::move(shards);
    } else if (port.kind == Kind::Sum) {
      sums_[port.name] = std::move(shards);
    } else if (port.kind == Kind::Slot) {
      slots_[key(port, k)] = std::move(shards);
    } else if (port.result.type.ndim() == 0) {
      std::vector<double>& values = out.metrics[port.name];
      values.resize(at(step_ + 1));
      values[at(step_)] = program.get(shards[0], index).at(0);
    }
  }

  int stage_;
  Program program_;
  Mail& mail_;
  std::vector<Ready> pieces_;
  std::size_t at_ = 0, piece_ = 0;
  std::int64_t step_ = 0;
  std::map<std::string, Shards> states_, next_, sums_;
  std::map<std::string, hlo::Port> ports_;
  std::map<std::pair<std::string, std::int64_t>, Shards> slots_;
};

struct StageCase {
  const char *name, *family;
  ParallelConfig parallel;
};
class Stages : public testing::TestWithParam<StageCase> {};

TEST_P(Stages, TrainAsExecutorsDo) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  const auto& [name, family, parallel] = GetParam();
  OptimizerConfig optimizer;
  optimizer.schedule.kind = ScheduleKind::Constant;
  optimizer.clip = 0.1;
  const Task task = task_of(tiny(family, 4));
  const Graph step = train_step(task, optimizer, 12);
  const Strategy strategy = strategy_of(parallel, BatchSplit::Cut, tiny(family, 4));
  StagedRun executors(step, strategy, task.inputs);
  executors.steps = 0;
  std::map<std::string, HostTensor> first = executors().states;
  executors.steps = 3;
  const Outcome want = executors();

  const std::vector<Program> programs = programs_of_stages(step, strategy);
  const std::vector<std::vector<Piece>> pieces = hlo::staged_modules("train", programs);
  PluginStage::Mail mail;
  std::vector<std::unique_ptr<PluginStage>> stages;
  for (std::size_t s = 0; s < programs.size(); ++s) {
    stages.push_back(
        std::make_unique<PluginStage>(static_cast<int>(s), programs[s], pieces[s], mail));
  }
  Outcome got;
  for (std::int64_t i = 0; i < executors.steps; ++i) {
    mail.messages.clear();
    for (const auto& stage : stages) stage->begin(i);
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& stage : stages) moved = stage->advance(first, got, task.inputs) || moved;
    }
    for (const auto& stage : stages) ASSERT_TRUE(stage->done()) << "stages wait for each other";
  }
  for (const auto& stage : stages) stage->read_states(got.states);
  expect_same_training(want, got);
  double worst = 0;
  for (std::size_t i = 0; i < want.metrics.at("loss").size(); ++i) {
    const double loss = want.metrics.at("loss")[i];
    worst = worse_of(worst, std::abs(got.metrics.at("loss")[i] - loss) / std::abs(loss));
  }
  std::size_t modules = 0;
  for (const auto& of_stage : pieces) modules += of_stage.size();
  std::cout << name << ": " << modules << " modules, losses within " << worst << "\n";
}

ParallelConfig staged(std::int64_t stages, std::int64_t tensor, std::int64_t micro_batches,
                      const char* schedule) {
  ParallelConfig out;
  out.devices = stages * tensor;
  out.pipeline = stages;
  out.tensor = tensor;
  out.micro_batches = micro_batches;
  out.schedule = schedule;
  return out;
}

INSTANTIATE_TEST_SUITE_P(Pipelines, Stages,
                         testing::Values(StageCase{"Two", "gpt2", staged(2, 1, 3, "1f1b")},
                                         StageCase{"TwoTp2ZbH1", "gpt2", staged(2, 2, 2, "zb-h1")},
                                         StageCase{"TwoInterleaved", "llama",
                                                   staged(2, 1, 2, "interleaved")}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

TEST(Levels, OfStagesThatExchangeBothWays) {
  const Graph first = exchanging(0), second = exchanging(1);
  EXPECT_EQ(hlo::levels_of({&first, &second}),
            (std::vector<std::vector<int>>{{0, 0, 2, 2}, {1, 1, 3, 3}}));
}

}  // namespace tessera::test
