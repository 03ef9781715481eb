#include "tessera/sources/sample_choices.h"

#include "tessera/base/size.h"
#include "tessera/base/words.h"

namespace tessera {

namespace {

/// Too many are as many as no data has: whoever draws so many samples says so.
std::int64_t samples_in(std::int64_t steps, std::int64_t batch) {
  return size_product_fits(steps, batch) ? steps * batch : kMaxSize;
}

}  // namespace

SampleChoices sample_choices(const RunConfig& config) {
  return {.seed = static_cast<std::uint64_t>(config.seed),
          .order = config.sample_order,
          .packing = find_word<Packing>(kPackings, config.packing).value_or(Packing::Wrapped),
          .buckets = {bucket_lengths(config), config.global_batch_size},
          .in_all = samples_in(config.steps, config.global_batch_size),
          .end_of_document = static_cast<std::int32_t>(config.eod_token),
          .mask_end_of_document = config.eod_mask_loss,
          .varied = config.augment};
}

SampleChoices valid_choices(const RunConfig& config) {
  SampleChoices out = sample_choices(config);
  out.buckets = {};
  out.most = size_product({config.eval_iters, config.global_batch_size}, "samples of a validation");
  const std::int64_t validations =
      (config.eval_every > 0 ? config.steps / config.eval_every : 0) + 1;
  out.in_all = samples_in(validations, out.most);
  return out;
}

SampleChoices test_choices(const RunConfig& config) {
  SampleChoices out = sample_choices(config);
  out.buckets = {};
  out.in_all = 0;
  return out;
}

}  // namespace tessera
