/// Model::filled.

#include <algorithm>
#include <optional>
#include <utility>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/user_code/model.h"

namespace tessera {

namespace {

/// Of [b, s] numbers, 1 for what is seen: the last place that is, [b] of i32.
Value last_seen(Value mask) {
  const Value places = iota(mask.builder(), mask.shape(), 1, DType::F32);
  return cast(max(cast(mask, DType::F32) * places, 1), DType::I32);
}

/// Of pictures [b, channels * size * size] their patches, as cut_to_patches (data/images.h).
Value patches_of_pictures(const ModelConfig& c, Value pixels) {
  const std::int64_t b = pixels.shape()[0], channels = c.image_channels, size = c.image_size,
                     side = c.patch_size, across = size / side;
  require(pixels.dtype() == DType::F32 && pixels.shape() == Shape({b, channels * size * size}),
          "model(batch): feature 'pixel_values' is ", pixels.dtype(), pixels.shape(),
          ", and the model reads f32 pictures of ", channels, " x ", size, " x ", size,
          "; resize them");
  const Value cut = reshape(pixels, {b, channels, across, side, across, side});
  return reshape(transpose(cut, {0, 2, 4, 1, 3, 5}), {b, across * across, channels * side * side});
}

bool is_label_of_loss(const TaskInput& input) { return input.ignorable || input.name == "labels"; }

/// What an input is that nobody gave; none: it has to be given.
std::optional<double> usual_number(const TaskInput& input, bool labels) {
  if (input.name == "types") return 0;
  if (input.name == "mask") return 1;
  if (!labels || !is_label_of_loss(input)) return std::nullopt;
  return input.dtype == DType::I32 ? kIgnoredLabel : input.ignorable ? kIgnoredNumber : 0;
}

}  // namespace

bool Model::has_labels(const Batch& batch) const {
  return std::ranges::all_of(model_call(config_, task_).inputs, [&](const CallInput& asked) {
    return !asked.needed || !is_label_of_loss(asked.input) || batch.contains(asked.input.name) ||
           batch.contains(asked.hub);
  });
}

Batch Model::filled(const Batch& batch, bool labels) const {
  const ModelCall call = model_call(config_, task_);
  TaskValues out = batch.values();
  const Value is_sample = batch.is_sample();
  out.emplace(kIsSample, is_sample);
  const bool pictures = batch.contains("pixel_values") && find_input(call, "patches") != nullptr;
  if (pictures && batch["pixel_values"].shape().ndim() == 2) {
    out.emplace("patches", patches_of_pictures(config_, batch["pixel_values"]));
    out.erase("pixel_values");
  }
  Value mask;
  for (const auto& [input, hub, needed] : call.inputs) {
    const bool ours = batch.contains(input.name), given = ours || batch.contains(hub);
    if (given && input.name == "mask") mask = batch[ours ? input.name : hub];
    if (given || !needed) continue;
    Shape shape = is_sample.shape();
    for (const std::int64_t size : input.sample) shape.push_back(size);
    if (const std::optional<double> number = usual_number(input, labels)) {
      // Made of what says which rows are samples, as a loss is to read that.
      const Value all = batch.is_sample(shape.ndim()) * 0.0 + *number;
      out.emplace(input.name, broadcast_to(cast(all, input.dtype), shape));
    }
  }
  for (const auto& [input, hub, needed] : call.inputs) {
    if (input.name != "last" || out.contains("last")) continue;
    const Value all = cast(is_sample * 0.0 + static_cast<double>(config_.context - 1), DType::I32);
    out.emplace("last", mask.valid() ? last_seen(mask) : all);
  }
  return Batch(std::move(out), batch.of_task());
}

}  // namespace tessera
