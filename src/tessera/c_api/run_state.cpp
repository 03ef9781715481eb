#include "tessera/c_api/run_state.h"

namespace tessera {

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
