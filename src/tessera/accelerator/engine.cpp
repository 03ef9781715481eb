#include "tessera/accelerator/engine.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

AcceleratorEngine::AcceleratorEngine(std::shared_ptr<LoadedPrograms> programs, Plan plan,
                                     Communicator* world)
    : programs_(std::move(programs)), plan_(std::move(plan)), world_(world) {
  const std::vector<const LoadedProgram*> loaded = programs_->load(plan_, world_);
  for (std::size_t i = 0; i < plan_.programs.size(); ++i) {
    const ProgramPlan& program = plan_.programs[i];
    auto runnable =
        std::make_unique<Runnable>(Runnable{&program, loaded[i], BatchInputs(program.name), {}});
    for (const NamedTensor& input : program.batch) {
      HostTensor& host = runnable->batch[input.name] = HostTensor(input.type);
      runnable->inputs.add(input.name, input.type, host.bytes().data(), input.range);
    }
    runnables_.push_back(std::move(runnable));
  }
}

const pjrt::Device& AcceleratorEngine::device() const {
  return programs_->client().local_devices()[static_cast<std::size_t>(plan_.rank)];
}

pjrt::Buffer AcceleratorEngine::upload(const TensorType& type, std::span<const std::byte> bytes,
                                       Memory memory) const {
  return pjrt::to_device(programs_->client(), bytes, type.dtype, type.shape, device(),
                         programs_->memory_kind(memory));
}

/// Zeros for states that a program reads before anything has written them.
void AcceleratorEngine::make_states(const LoadedProgram& program) {
  const LoadedStage& stage = program.stages[static_cast<std::size_t>(plan_.stage())];
  for (const LoadedPiece& piece : stage.pieces) {
    for (const hlo::Port& port : piece.loaded.module.arguments) {
      if (port.kind != hlo::Port::Kind::State || states_.contains(port.name)) continue;
      const StatePlan& its = state(port.name);
      const std::vector<std::byte> zeros(static_cast<std::size_t>(its.type.bytes()));
      states_[port.name] = upload(its.type, zeros, its.place.memory);
    }
  }
}

AcceleratorEngine::Runnable& AcceleratorEngine::runnable(std::string_view name) {
  for (const auto& program : runnables_) {
    if (program->plan->name == name) return *program;
  }
  throw Broken(text("the plan has no program '", name, "'"));
}

BatchInputs& AcceleratorEngine::begin(std::string_view name, const RunOptions&) {
  Runnable& program = runnable(name);
  last_ = nullptr;
  host_bytes_ = 0;
  program.inputs.begin();
  return program.inputs;
}

void AcceleratorEngine::finish(std::string_view name, const RunOptions&) {
  Runnable& program = runnable(name);
  program.inputs.require_filled();
  make_states(*program.loaded);
  Buffers batch;
  for (const auto& [input, host] : program.batch) {
    batch[input] = upload(host.type(), host.bytes());
    host_bytes_ += host.type().bytes();
  }
  metrics_.clear();
  programs_->run(*program.loaded, {&states_, &batch, &metrics_}, world_);
  last_ = program.plan;
}

HostTensor AcceleratorEngine::metric(std::string_view program, std::string_view name) const {
  const NamedTensor& metric = find_metric(plan_, last_, program, name);
  HostTensor out(metric.type);
  metrics_.find(name)->second.read(out.bytes());
  host_bytes_ += metric.type.bytes();
  return out;
}

double AcceleratorEngine::scalar(std::string_view program, std::string_view name) const {
  return metric(program, name).at(0);
}

const StatePlan& AcceleratorEngine::state(std::string_view path) const {
  const StatePlan* state = plan_.find_state(path);
  check(state != nullptr, "the plan has no state '", path, "'");
  return *state;
}

StateBytes AcceleratorEngine::read_state(std::string_view path) const {
  const auto copy =
      std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(state(path).type.bytes()));
  // Until then it is zero.
  if (const auto found = states_.find(path); found != states_.end()) found->second.read(*copy);
  return {*copy, copy};
}

std::span<std::byte> AcceleratorEngine::begin_write(std::string_view path) {
  written_.resize(static_cast<std::size_t>(state(path).type.bytes()));
  return written_;
}

void AcceleratorEngine::end_write(std::string_view path) {
  const StatePlan& its = state(path);
  states_[std::string(path)] = upload(its.type, written_, its.place.memory);
}

}  // namespace tessera
