#include "tessera/accelerator/engine.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

AcceleratorEngine::AcceleratorEngine(LoadedPrograms& devices, Plan plan, Communicator* world)
    : plan_(std::make_shared<const Plan>(std::move(plan))),
      world_(world),
      session_(devices.open(plan_, world)) {
  for (std::size_t i = 0; i < plan_->programs.size(); ++i) {
    const ProgramPlan& program = plan_->programs[i];
    auto runnable =
        std::make_unique<Runnable>(Runnable{&program, i, BatchInputs(program.name), {}});
    for (const NamedTensor& input : program.batch) {
      HostTensor& host = runnable->batch[input.name] = HostTensor(input.type);
      runnable->inputs.add(input.name, input.type, host.bytes().data(), input.range);
    }
    for (const LoadedModule& piece : pieces(session_->program(i))) {
      for (const hlo::Port& port : piece.module.arguments)
        if (port.kind == hlo::Port::Kind::Batch) runnable->read.insert(port.name);
    }
    runnables_.push_back(std::move(runnable));
  }
}

template <typename Work>
auto AcceleratorEngine::on_device(const Work& work) const {
  try {
    return work();
  } catch (...) {
    session_->give_up();
    throw;
  }
}

pjrt::Buffer AcceleratorEngine::upload(const TensorType& type, std::span<const std::byte> bytes,
                                       Memory memory) const {
  const LoadedPrograms& devices = session_->devices();
  return pjrt::to_device(devices.client(), bytes, type.dtype, type.shape,
                         devices.device(plan_->rank), devices.memory_kind(memory));
}

const std::vector<LoadedModule>& AcceleratorEngine::pieces(const LoadedProgram& program) const {
  return program.stages[static_cast<std::size_t>(plan_->stage())];
}

/// Zeros for states that a program reads before anything has written them.
void AcceleratorEngine::make_states(const LoadedProgram& program, Buffers& states) {
  for (const LoadedModule& piece : pieces(program)) {
    for (const hlo::Port& port : piece.module.arguments) {
      if (port.kind != hlo::Port::Kind::State || states.contains(port.name)) continue;
      const StatePlan& its = state(port.name);
      const std::vector<std::byte> zeros(static_cast<std::size_t>(its.type.bytes()));
      states[port.name] = upload(its.type, zeros, its.place.memory);
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
  RankBuffers& mine = session_->buffers(plan_->rank);
  mine.batch.clear();
  mine.metrics.clear();
  on_device([&] {
    session_->naming_memory(program.number, [&] {
      make_states(session_->program(program.number), mine.states);
      for (const std::string& input : program.read) {
        const HostTensor& host = program.batch.at(input);
        mine.batch[input] = upload(host.type(), host.bytes());
        host_bytes_ += host.type().bytes();
      }
    });
  });
  session_->run(program.number, plan_->rank, world_);
  last_ = program.plan;
  for (const auto& [name, value] : mine.metrics) host_bytes_ += value.type().bytes();
}

HostTensor AcceleratorEngine::metric(std::string_view program, std::string_view name) const {
  find_metric(*plan_, last_, program, name);
  return session_->buffers(plan_->rank).metrics.find(name)->second.clone();
}

double AcceleratorEngine::scalar(std::string_view program, std::string_view name) const {
  return metric(program, name).at(0);
}

const StatePlan& AcceleratorEngine::state(std::string_view path) const {
  const StatePlan* state = plan_->find_state(path);
  check(state != nullptr, "the plan has no state '", path, "'");
  return *state;
}

StateBytes AcceleratorEngine::read_state(std::string_view path) const {
  const auto copy =
      std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(state(path).type.bytes()));
  const Buffers& states = session_->buffers(plan_->rank).states;
  const auto found = states.find(path);
  if (found == states.end()) return {*copy, copy};  // zero until something has written it
  on_device([&] {
    if (found->second.deleted())
      fail(Fault::Resource, session_->devices().client().plugin().file(), ": state '", path,
           "' was lost with a run that failed; resume from the last checkpoint");
    found->second.read(*copy);
  });
  return {*copy, copy};
}

std::span<std::byte> AcceleratorEngine::begin_write(std::string_view path) {
  written_.resize(static_cast<std::size_t>(state(path).type.bytes()));
  return written_;
}

void AcceleratorEngine::end_write(std::string_view path) {
  const StatePlan& its = state(path);
  pjrt::Buffer& to = session_->buffers(plan_->rank).states[std::string(path)];
  on_device([&] { to = upload(its.type, written_, its.place.memory); });
}

}  // namespace tessera
