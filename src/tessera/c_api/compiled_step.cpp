#include "tessera/c_api/compiled_step.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/models/parallel.h"
#include "tessera/plan/traffic.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

constexpr std::string_view kSamplesPath = "data.samples";

std::vector<std::int64_t> sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

CallJson tensors_json(const std::vector<NamedTensor>& tensors) {
  CallJson out = CallJson::object();
  for (const NamedTensor& each : tensors)
    out[each.name] = {{"shape", sizes_of(each.logical)}, {"dtype", to_text(each.type.dtype)}};
  return out;
}

/// What a rank sends and receives in one run, in order.
CallJson sends_json(const ProgramPlan& program) {
  CallJson out = CallJson::array();
  for (const RegionPlan& region : program.regions) {
    for (const Call& call : region.calls) {
      if (!call.transfer) continue;
      const Collective& what = call.transfer->collective;
      out.push_back({{"kind", to_text(what.kind)},
                     {"shape", sizes_of(what.whole)},
                     {"along", join(call.transfer->axes, ".")}});
    }
  }
  return out;
}

CallJson memory_json(const MemoryUse& use) {
  return {{"parameters", use.parameters}, {"optimizer", use.optimizer},
          {"gradients", use.gradients},   {"activations", use.activations},
          {"packed", use.packed},         {"temporaries", use.temporaries},
          {"inputs", use.inputs},         {"caches", use.caches}};
}

CallJson search_json(const SearchReport& report) {
  return {{"step_seconds", report.step_seconds},
          {"bound", report.bound},
          {"gap", report.gap},
          {"bytes", report.bytes},
          {"seconds", report.seconds},
          {"ops", report.ops}};
}

TensorType given_type(const GivenArray& array) { return {array.dtype, array.shape, {}}; }

HostTensor copied(const TensorType& type, std::span<const std::byte> bytes) {
  HostTensor out(type);
  std::ranges::copy(bytes, out.bytes().begin());
  return out;
}

/// Returns when all ranks have done what they were asked for: files may go then.
void await_ranks(RankGroup& group) { group.most_used_bytes(); }

/// A folder that goes with this.
struct PassingFolder {
  std::filesystem::path path;
  PassingFolder() {
    std::string name = std::filesystem::temp_directory_path() / "tessera.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      fail(Fault::Resource, "cannot make a folder like ", name, "; free some space there");
    path = name;
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;
  ~PassingFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

CompiledStep::CompiledStep(StepRequest request)
    : request_(std::move(request)), nowhere_(nullptr), console_{nowhere_, nowhere_} {
  ranks_ = std::make_unique<LedRanks>(
      request_.config,
      [this](const Backend& backend, int rank) { return compile_rank(backend, rank); },
      [this](RankGroup& group) {
        make_report(group.plan());
        if (!group.plan().states.empty()) group.run(kInitProgram);
      },
      console_);
}

Plan CompiledStep::compile_rank(const Backend& backend, int rank) const {
  CompileOptions options = request_.options;
  options.rank = rank;
  options.keeps_local = backend.reads_programs();
  return compile(request_.sources, backend.device(), options);
}

void CompiledStep::make_report(const Plan& plan) {
  entries_ = entries_of(plan);
  const auto main = std::ranges::find_if(
      request_.sources, [](const ProgramSource& source) { return source.name != kInitProgram; });
  CallJson states = CallJson::object();
  for (const StatePlan& each : plan.states) {
    states[each.state.path] = {{"shape", sizes_of(each.logical)},
                               {"dtype", to_text(each.type.dtype)},
                               {"role", role_text(each.state.role)},
                               {"lies", to_text(each.state.home->sharding)}};
  }
  CallJson programs = CallJson::object();
  for (const ProgramPlan& program : plan.programs) {
    programs[program.name] = {{"inputs", tensors_json(program.batch)},
                              {"outputs", tensors_json(program.metrics)},
                              {"sends", sends_json(program)},
                              {"flops", program.flops}};
  }
  report_ = {{"devices", plan.ranks()},
             {"mesh", mesh_text(main->strategy)},
             {"peak_bytes", plan.peak_bytes()},
             {"memory", memory_json(plan.program(main->name).memory)},
             {"states", std::move(states)},
             {"programs", std::move(programs)},
             {"search", request_.search ? search_json(*request_.search) : CallJson()}};
}

void CompiledStep::lead(const std::function<void(RankGroup& group)>& work) {
  std::exception_ptr failure;
  ranks_->on_leader([&](RankGroup& group) {
    try {
      work(group);
    } catch (const Error& error) {
      if (error.fault() != Fault::Usage && error.fault() != Fault::Data) throw;
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void CompiledStep::run(const std::string& program, const std::vector<GivenArray>& inputs) {
  const CallJson& programs = report_.at("programs");
  const auto found = programs.find(program);
  const bool is_own = program == kInitProgram || program == kCopyProgram;
  if (found == programs.end() || is_own) {
    std::vector<std::string> names;
    for (const auto& [name, value] : programs.items()) {
      if (name != kInitProgram && name != kCopyProgram) names.push_back(name);
    }
    fail(Fault::Usage, "there is no program '", program, "'", near_names(program, names));
  }
  std::vector<std::string> wanted;
  for (const auto& [name, value] : found->at("inputs").items()) wanted.push_back(name);
  for (const GivenArray& each : inputs) {
    const auto type = found->at("inputs").find(each.name);
    require(type != found->at("inputs").end(), "there is no input '", each.name, "'",
            near_names(each.name, wanted));
    const TensorType want{parse_dtype(type->at("dtype").get<std::string>()),
                          Shape(type->at("shape").get<std::vector<std::int64_t>>()),
                          {}};
    require(given_type(each) == want, "input '", each.name, "' is ", given_type(each),
            ", and the step takes ", want, "; give it of that type");
    require(std::ranges::count(inputs, each.name, &GivenArray::name) == 1, "input '", each.name,
            "' is given twice; give it once");
  }
  for (const std::string& name : wanted)
    require(std::ranges::count(inputs, name, &GivenArray::name) == 1, "input '", name,
            "' is missing; give all of ", join(wanted));
  outputs_.clear();
  lead([&](RankGroup& group) {
    group.run(program, [&](BatchInputs& batch) {
      for (const GivenArray& each : inputs)
        std::ranges::copy(each.bytes(), batch.fill(each.name, each.dtype).begin());
    });
    for (const NamedTensor& each : group.plan().program(program).metrics)
      outputs_.emplace(each.name, group.engine().metric(program, each.name).clone());
  });
}

std::map<std::string, HostTensor> CompiledStep::states() {
  std::map<std::string, HostTensor> out;
  lead([&](RankGroup& group) {
    for (const CheckpointTensor& each : group.states())
      out.emplace(each.name, copied(each.type, each.bytes));
    group.forget_states();
  });
  return out;
}

void CompiledStep::set_parameters(const std::vector<GivenArray>& values) {
  std::vector<std::string> known;
  for (const auto& [path, state] : report_.at("states").items()) {
    if (state["role"] == role_text(Role::Parameter)) known.push_back(path);
  }
  std::vector<CheckpointTensor> tensors;
  for (const GivenArray& each : values) {
    require(std::ranges::find(known, each.name) != known.end(), "there is no parameter '",
            each.name, "'", near_names(each.name, known));
    const TensorType want{
        DType::F32,
        Shape(report_.at("states").at(each.name).at("shape").get<std::vector<std::int64_t>>()),
        {}};
    require(given_type(each) == want, "parameter '", each.name, "' is ", given_type(each),
            ", and the step has ", want, "; give it of that type");
    tensors.push_back({each.name, want, Role::Parameter, each.bytes()});
  }
  if (tensors.empty()) return;
  const PassingFolder folder;  // from which each rank takes its part
  save_checkpoint(folder.path, {}, tensors);
  lead([&](RankGroup& group) {
    group.load_weights(Checkpoint::open(folder.path));
    await_ranks(group);
  });
}

std::string CompiledStep::save(const std::string& folder) {
  const std::map<std::string, HostTensor> all = states();
  std::vector<CheckpointTensor> tensors;
  CheckpointRecord record;
  for (const TensorEntry& entry : entries_) {
    const HostTensor& tensor = all.at(entry.name);
    tensors.push_back({entry.name, entry.type, entry.role, tensor.bytes()});
    if (entry.name == kSamplesPath) record.samples = *tensor.data<std::int64_t>();
  }
  record.step = record.samples / request_.config.global_batch_size;
  SaveOptions options;
  options.keep_last = std::numeric_limits<int>::max();  // it is for the caller to remove others
  return save_checkpoint(folder, record, tensors, options);
}

void CompiledStep::load(const std::string& path) {
  const Checkpoint from = Checkpoint::open(path);
  const std::string mismatch = tensor_mismatch(entries_, from.tensors());
  if (!mismatch.empty())
    fail(Fault::Checkpoint, "checkpoint '", from.path(), "' is of another step: ", mismatch);
  require_intact(from);
  lead([&](RankGroup& group) {
    group.load(from);
    await_ranks(group);
  });
}

}  // namespace tessera
