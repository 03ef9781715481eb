#include "tessera/tensor/batch_inputs.h"

#include <algorithm>

#include "tessera/base/text.h"

namespace tessera {

void BatchInputs::add(std::string name, const TensorType& type, std::byte* data, InputRange range) {
  check(range.values == 0 || type.dtype == DType::I32, "a range of batch input '", name, "', ",
        type);
  inputs_.push_back({std::move(name), type, data, std::move(range), false});
}

std::span<std::byte> BatchInputs::fill(std::string_view name, DType dtype) {
  const auto input = std::find_if(inputs_.begin(), inputs_.end(),
                                  [&](const Input& one) { return one.name == name; });
  if (input == inputs_.end())  // a step must not allocate even the message
    fail(Fault::Usage, "program '", program_, "' has no batch input '", name, "'; ",
         inputs_.empty() ? "it has none" : text("it has ", names()));
  require(input->type.dtype == dtype, "batch input '", name, "' of program '", program_, "' is ",
          input->type, " and is filled with ", dtype, "; fill it with ", input->type.dtype);
  input->filled = true;
  return {input->data, static_cast<std::size_t>(input->type.bytes())};
}

void BatchInputs::copy(std::string_view name, DType dtype, std::span<const std::byte> values) {
  const std::span<std::byte> to = fill(name, dtype);
  const auto size = static_cast<std::size_t>(size_of(dtype));
  require(values.size() == to.size(), "batch input '", name, "' of program '", program_, "' has ",
          to.size() / size, " elements and is filled with ", values.size() / size,
          "; give as many as it has");
  std::copy(values.begin(), values.end(), to.begin());
}

void BatchInputs::begin() {
  for (Input& input : inputs_) input.filled = false;
}

void BatchInputs::require_filled() const {
  for (const Input& input : inputs_) {
    require(input.filled, "program '", program_, "' is run without its batch input '", input.name,
            "'; its memory is used again during a run, so fill every input for each run: run(\"",
            program_, "\", [&](BatchInputs& batch) { batch.fill<T>(\"", input.name, "\") ... })");
    if (input.range.values > 0) require_in_range(input);
  }
}

void BatchInputs::require_in_range(const Input& input) const {
  const Shape& shape = input.type.shape;
  const InputRange& range = input.range;
  const std::span<const std::int32_t> numbers(reinterpret_cast<const std::int32_t*>(input.data),
                                              static_cast<std::size_t>(shape.numel()));
  const auto bad = std::ranges::find_if(numbers, [&](std::int32_t number) {
    return (number < 0 || number >= range.values) && !(range.ignored && number == *range.ignored);
  });
  if (bad == numbers.end()) return;
  const std::int64_t at = bad - numbers.begin(),
                     each = shape.ndim() == 0 ? 1 : shape.numel() / shape[0];
  fail(Fault::Data, "batch input '", input.name, "' of program '", program_, "' has ", *bad,
       " in row ", at / each, each == 1 ? "" : text(", at ", at % each), "; ", range.what,
       " are from 0 to ", range.values - 1,
       range.ignored ? text(", or ", *range.ignored, " for none") : "",
       "; correct the data, or make what reads it larger");
}

std::string BatchInputs::names() const {
  std::vector<std::string> out;
  for (const Input& input : inputs_) out.push_back(input.name);
  return join(out);
}

}  // namespace tessera
