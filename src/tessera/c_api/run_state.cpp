#include "tessera/c_api/run_state.h"

#include <nlohmann/json.hpp>

#include "tessera/launch/exit_code.h"

namespace tessera {

namespace {

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::Usage: return "Usage";
    case Fault::Data: return "Data";
    case Fault::Checkpoint: return "Checkpoint";
    case Fault::Resource: return "Resource";
    case Fault::Numerics: return "Numerics";
    case Fault::Peer: return "Peer";
    case Fault::Internal: return "Internal";
  }
  return "Internal";
}

}  // namespace

int kept(tessera_run& run, const std::function<int()>& work) noexcept {
  try {
    return work();
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    const int code = static_cast<int>(failure.fault);
    using Object = nlohmann::ordered_json;
    run.error =
        Object{{"kind", name_of(failure.fault)}, {"message", failure.message}, {"code", code}}.dump(
            -1, ' ', false, Object::error_handler_t::replace);
    return code;
  }
}

void keep_arrays(tessera_run& run, const std::map<std::string, HostTensor, std::less<>>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    run.names.push_back(name);
    run.tensors.push_back(tensor);
    run.shapes.emplace_back(tensor.shape().begin(), tensor.shape().end());
  }
  for (std::size_t i = 0; i < run.tensors.size(); ++i)
    run.arrays.push_back(
        {run.names[i].c_str(), run.tensors[i].dtype() == DType::F32 ? "f32" : "i32",
         std::ssize(run.shapes[i]), run.shapes[i].data(), run.tensors[i].bytes().data()});
}

}  // namespace tessera
