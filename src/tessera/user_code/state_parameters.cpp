#include "tessera/user_code/state_parameters.h"

#include <algorithm>
#include <span>

#include "tessera/tensor/convert_floats.h"

namespace tessera {

ParameterReader parameters_among(const std::vector<CheckpointTensor>& states) {
  const auto find = [&states](std::string_view name) -> const CheckpointTensor* {
    const auto found = std::ranges::find_if(states, [&](const CheckpointTensor& state) {
      return state.name == name && state.role == Role::Parameter;
    });
    return found == states.end() ? nullptr : &*found;
  };
  return {[find](std::string_view name) {
            const CheckpointTensor* const state = find(name);
            return state == nullptr ? nullptr : &state->type.shape;
          },
          [find](std::string_view name, std::span<float> out) {
            const CheckpointTensor& state = *find(name);
            convert_floats(state.type.dtype, state.bytes, DType::F32, std::as_writable_bytes(out));
          }};
}

}  // namespace tessera
