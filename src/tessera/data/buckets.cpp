#include "tessera/data/buckets.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/token_files/permutation.h"

namespace tessera {

std::vector<std::int64_t> parse_bucket_lengths(std::string_view words) {
  std::vector<std::int64_t> out;
  for (const std::string& word : split(words, ',')) {
    std::int64_t length = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), length);
    require(failure == std::errc() && end == word.data() + word.size() && length >= 1,
            "bucket-lengths is '", words, "', of which '", word,
            "' is not a number of tokens; give ", "numbers separated by commas, like 32,64,128");
    require(out.empty() || out.back() < length, "bucket-lengths is '", words,
            "', which is not ascending; give the shortest first, and each once");
    out.push_back(length);
  }
  return out;
}

LengthBuckets::LengthBuckets(std::span<const std::int64_t> lengths, BucketOptions options,
                             std::uint64_t seed)
    : options_(std::move(options)),
      order_(lengths.size()),
      begins_{0},
      first_steps_{0},
      step_key_(random_key(seed, "data.buckets")) {
  check(!lengths.empty() && !options_.lengths.empty() && options_.batch >= 1, "buckets of ",
        lengths.size(), " samples, ", options_.lengths.size(), " lengths, a batch of ",
        options_.batch);
  const auto length_of = [&](std::int64_t i) { return lengths[static_cast<std::size_t>(i)]; };
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::stable_sort(order_, {}, length_of);
  check(length_of(order_.back()) <= options_.lengths.back(), "a sample of ",
        length_of(order_.back()), " tokens, and the last bucket has room for ",
        options_.lengths.back());
  for (std::size_t b = 0; b < options_.lengths.size(); ++b) {
    const bool last = b + 1 == options_.lengths.size();
    const std::int64_t fit =
        std::ranges::upper_bound(order_, options_.lengths[b], {}, length_of) - order_.begin();
    const std::int64_t here = fit - begins_[b],
                       steps = last ? (here + options_.batch - 1) / options_.batch
                                    : here / options_.batch;
    begins_.push_back(last ? fit : begins_[b] + steps * options_.batch);
    first_steps_.push_back(first_steps_[b] + steps);
    sample_keys_.push_back(random_key(seed, text("data.order.", b)));
  }
}

LengthBuckets::Slot LengthBuckets::slot(std::int64_t step) const {
  check(step >= 0, "step ", step);
  const std::int64_t epoch = step / steps();
  const auto at = static_cast<std::int64_t>(permute(static_cast<std::uint64_t>(step % steps()),
                                                    static_cast<std::uint64_t>(steps()), step_key_,
                                                    static_cast<std::uint64_t>(epoch)));
  const std::size_t bucket = static_cast<std::size_t>(std::ranges::upper_bound(first_steps_, at) -
                                                      first_steps_.begin() - 1);
  return {epoch, bucket, at - first_steps_[bucket]};
}

std::int64_t LengthBuckets::length(std::int64_t first) const {
  const std::size_t bucket = slot(first / options_.batch).bucket;
  return bucket + 1 == options_.lengths.size() ? 0 : options_.lengths[bucket];
}

std::int64_t LengthBuckets::sample(std::int64_t drawn) const {
  const Slot at = slot(drawn / options_.batch);
  const std::int64_t number = at.batch * options_.batch + drawn % options_.batch;
  if (number >= size(at.bucket)) return -1;
  const std::uint64_t place =
      permute(static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(size(at.bucket)),
              sample_keys_[at.bucket], static_cast<std::uint64_t>(at.epoch));
  return order_[static_cast<std::size_t>(begins_[at.bucket]) + place];
}

std::string LengthBuckets::notice(std::span<const std::int64_t> tokens, std::int64_t used) const {
  std::vector<std::string> sizes;
  double with = 0;
  for (std::size_t b = 0; b < options_.lengths.size(); ++b) {
    sizes.push_back(text(size(b)));
    with += static_cast<double>(first_steps_[b + 1] - first_steps_[b]) *
            static_cast<double>(options_.batch) * static_cast<double>(tokens[b]);
  }
  const double without =
      static_cast<double>(order_.size()) * static_cast<double>(tokens[tokens.size() - 1]);
  const auto padding = [&](double all) {
    return text(std::round((1 - static_cast<double>(used) / all) * 1000) / 10, " %");
  };
  return text("buckets of up to ", join(options_.lengths), " tokens have ", join(sizes),
              " samples, and one program each: ", counted(std::ssize(options_.lengths), "program"),
              " to train; padding takes ", padding(with), " of the tokens of an epoch (without ",
              "buckets: ", padding(without), ")");
}

}  // namespace tessera
