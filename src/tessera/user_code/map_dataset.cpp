#include "tessera/user_code/map_dataset.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/token_files/permutation.h"
#include "tessera/user_code/collated_dataset.h"
#include "tessera/user_code/features.h"
#include "tessera/user_code/model_call.h"
#include "tessera/user_code/named_function.h"

namespace tessera {

namespace {

/// Errors: Fault::Data: a number that the input does not take.
void require_in_range(const TaskInput& input, std::int64_t index, const Features& sample) {
  const auto found = sample.find(input.name);
  if (found == sample.end() || input.values <= 0) return;
  const auto require_all = [&](std::span<const std::int32_t> numbers) {
    const auto bad = std::ranges::find_if(numbers, [&](std::int32_t number) {
      return (number < 0 || number >= input.values) &&
             !(input.ignorable && number == kIgnoredLabel);
    });
    if (bad == numbers.end()) return;
    fail(Fault::Data, "sample ", index, " of the dataset: feature '", input.name, "' has ", *bad,
         " at ", bad - numbers.begin(), ", and the model takes numbers from 0 to ",
         input.values - 1, input.ignorable ? text(", and ", kIgnoredLabel, " for none") : "",
         "; correct the sample, or make the model larger by --vocab-size or --classes");
  };
  if (const auto* const one = std::get_if<std::int32_t>(&found->second)) require_all({one, 1});
  if (const auto* const row = std::get_if<std::vector<std::int32_t>>(&found->second))
    require_all(*row);
}

/// Errors say where they come from without that being added.
bool names_itself(const MapDataset& dataset) {
  return dynamic_cast<const CollatedDataset*>(&dataset) != nullptr;
}

/// Errors: Fault::Data: there are no numbers.
Features first_sample(const MapDataset& dataset, std::string_view use) {
  if (const std::int64_t size = size_of(dataset); size < 1)
    fail(Fault::Data, "the dataset to ", use, " on has no samples: its size() is ", size,
         "; give it samples, or find out why it has none");
  Features out = sample_of(dataset, 0);
  if (out.empty())
    fail(Fault::Data, "sample 0 of the dataset to ", use, " on has no features; return some from ",
         "get()");
  for (const auto& [name, feature] : out) {
    if (count_of(feature) == 0)
      fail(Fault::Data, "sample 0 of the dataset to ", use, " on: feature '", name, "' is ",
           to_text(feature), "; give it numbers, or remove it");
  }
  return out;
}

void hash_sample(StreamHash& hash, const Features& sample) {
  for (const auto& [name, feature] : sample) {
    hash.update(name);
    std::visit(
        [&](const auto& value) {
          const auto numbers = numbers_of(value);
          hash.update(numbers.data(), numbers.size_bytes());
        },
        feature);
  }
}

void hash_dataset(StreamHash& hash, const MapDataset& dataset) {
  if (const std::string known = dataset.digest(); !known.empty()) return hash.update(known);
  if (dataset.in_order()) return hash_sample(hash, sample_of(dataset, 0));
  constexpr std::int64_t kMost = 16;
  const std::int64_t size = size_of(dataset), some = std::min(size, kMost);
  hash.update(text(size));
  for (std::int64_t i = 0; i < some; ++i)
    hash_sample(hash, sample_of(dataset, some == 1 ? 0 : i * (size - 1) / (some - 1)));
}

class MapSamples final : public Samples {
 public:
  MapSamples(std::shared_ptr<const MapDataset> dataset, const MapSamplesOptions& options)
      : dataset_(std::move(dataset)),
        collated_(dynamic_cast<const CollatedDataset*>(dataset_.get())),
        options_(options),
        key_(random_key(options.seed, "data.order")),
        first_(without_left_out(sample_of(*dataset_, 0))) {
    size_ = size_of(*dataset_);
    if (options_.most > 0) size_ = std::min(size_, options_.most);
  }

  std::int64_t size() const override { return size_; }

  std::string notice() const override { return options_.notice; }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::vector<std::optional<Drawn>> samples = draw(first, count);
    for (const auto& feature : first_) {
      std::visit(
          [&](const auto& of_first) { fill_feature(feature.first, of_first, samples, batch); },
          feature.second);
    }
    std::ranges::transform(samples, batch.fill<float>(kIsSample).begin(),
                           [](const auto& sample) { return sample ? 1.0F : 0.0F; });
  }

 private:
  /// Of that number; none behind the end of what is held out.
  std::optional<std::int64_t> index_of(std::int64_t number) const {
    if (options_.held_out && number >= size_) return {};
    const auto n = static_cast<std::uint64_t>(size_), k = static_cast<std::uint64_t>(number);
    return static_cast<std::int64_t>(options_.shuffled ? permute(k % n, n, key_, k / n) : k % n);
  }

  struct Drawn : CollatedSample {
    std::int64_t index = 0;
  };

  /// None for what is of no sample.
  std::vector<std::optional<Drawn>> draw(std::int64_t first, std::int64_t count) const {
    std::vector<std::int64_t> indices;
    for (std::int64_t row = 0; row < count; ++row)
      if (const auto index = index_of(first + row)) indices.push_back(*index);
    std::vector<std::optional<Drawn>> out;
    for (CollatedSample& sample : samples_at(indices)) {
      const std::int64_t index = indices[out.size()];
      sample.features = without_left_out(std::move(sample.features));
      require_like_first(index, sample.features);
      for (const TaskInput& input : options_.known) require_in_range(input, index, sample.features);
      out.push_back(Drawn{std::move(sample), index});
    }
    require_even(out);
    out.resize(static_cast<std::size_t>(count));
    return out;
  }

  std::vector<CollatedSample> samples_at(const std::vector<std::int64_t>& indices) const {
    if (collated_ != nullptr) return collated_->collated(indices);
    std::vector<CollatedSample> out;
    for (Features& sample : samples_of(*dataset_, indices)) out.push_back({std::move(sample), {}});
    return out;
  }

  Features without_left_out(Features sample) const {
    for (const std::string& name : options_.left_out) sample.erase(name);
    return sample;
  }

  void require_like_first(std::int64_t index, const Features& sample) const {
    const RowLengths lengths = collated_ != nullptr ? RowLengths::Any : RowLengths::Same;
    if (!same_kinds(sample, first_, lengths))
      refuse_other_kinds(text("sample ", index, " of the dataset"), sample, "the first one", first_,
                         lengths, collated_ != nullptr ? "Datasets::collate" : "get()");
  }

  /// Errors: Fault::Data: rows of one text are not as long as each other, before or after they were
  /// collated.
  void require_even(const std::vector<std::optional<Drawn>>& samples) const {
    for (const bool before : {true, false})
      for (const std::optional<Drawn>& sample : samples)
        for (const RowsOfText& rows : options_.texts) require_even(*sample, rows, before);
  }

  static void require_even(const Drawn& sample, const RowsOfText& rows, bool before) {
    const std::string* first = nullptr;
    const auto size = [&](const std::string& name) {
      return before ? sample.sizes.at(name) : count_of(sample.features.at(name));
    };
    for (const std::string& name : rows.features) {
      if (before && !sample.sizes.contains(name)) continue;
      if (first == nullptr) first = &name;
      if (size(name) != size(*first))
        fail(Fault::Data, "sample ", sample.index, " of the dataset: feature '", name, "' has ",
             size(name), " numbers, and '", *first, "' ", size(*first), "; give as many");
    }
  }

  template <typename Value>
  void fill_feature(const std::string& name, const Value& of_first,
                    const std::vector<std::optional<Drawn>>& samples, BatchInputs& batch) const {
    using Number = NumberOf<Value>;
    const auto known = std::ranges::find(options_.known, name, &TaskInput::name);
    const bool of_loss = known != options_.known.end() && known->ignorable;
    constexpr bool kWhole = std::is_integral_v<Number>;
    const auto nothing = of_loss && !kWhole          ? static_cast<Number>(kIgnoredNumber)
                         : of_loss || is_label(name) ? static_cast<Number>(kIgnoredLabel)
                                                     : Number{0};
    const std::span<Number> all = batch.fill_with<Number>(name, nothing);
    if (collated_ == nullptr && all.size() != samples.size() * numbers_of(of_first).size())
      fail(Fault::Data, "feature '", name, "' of the dataset's first sample is ",
           to_text(Feature(of_first)), ", and a batch has room for ", all.size(), " numbers of ",
           samples.size(), " samples; get(0) must return the same each time");
    const std::size_t wanted = all.size() / samples.size();
    auto to = all.begin();
    for (const std::optional<Drawn>& sample : samples) {
      if (sample) {
        const auto numbers = numbers_of(std::get<Value>(sample->features.at(name)));
        if (numbers.size() != wanted)
          require_filled_up(name, *sample, wanted, nothing != Number{0}, samples);
        std::ranges::copy(numbers, to);
      }
      to += static_cast<std::ptrdiff_t>(wanted);
    }
  }

  /// Errors: Fault::Data: a row of one of the samples must not be filled up to `wanted` numbers.
  void require_filled_up(const std::string& name, const Drawn& sample, std::size_t wanted,
                         bool ignorable, const std::vector<std::optional<Drawn>>& samples) const {
    const std::size_t size = count_of(sample.features.at(name));
    const auto has = [](const Drawn& of, const std::string& feature, std::size_t numbers) {
      return text("sample ", of.index, " of the dataset: feature '", feature, "' has ", numbers,
                  " numbers, and ");
    };
    const auto rows = std::ranges::find_if(options_.texts, [&](const RowsOfText& of) {
      return std::ranges::find(of.features, name) != of.features.end();
    });
    if (rows == options_.texts.end())
      fail(Fault::Data, has(sample, name, size), "the first sample that trains ", wanted,
           "; the model does not know how long it is, so give it rows of one length in all ",
           "batches");
    if (size > wanted) {
      const std::string then =
          text("rows of a batch have ", wanted, "; cut it in get(), or give ", rows->flag, " ");
      // All are as long as the longest, which is the one to tell.
      for (const std::optional<Drawn>& other : samples)
        for (const std::string& feature : rows->features)
          if (other && other->sizes.contains(feature) && other->sizes.at(feature) == size)
            fail(Fault::Data, has(*other, feature, size), then, size, " or more");
      fail(Fault::Data, has(sample, name, size), then, size, " or more");
    }
    if (options_.padding_is_read && !ignorable) fail(Fault::Data, text_of_unmasked(sample.index));
  }

  std::shared_ptr<const MapDataset> dataset_;
  const CollatedDataset* collated_;  // nullptr: it is another
  MapSamplesOptions options_;
  std::uint64_t key_;
  Features first_;  // sample
  std::int64_t size_ = 0;
};

}  // namespace

std::string Datasets::digest() const {
  StreamHash hash;
  hash_dataset(hash, *train);
  if (valid) hash_dataset(hash, *valid);
  return hash.text();
}

std::int64_t size_of(const MapDataset& dataset) {
  if (names_itself(dataset)) return dataset.size();
  return run_named([&] { return name_of_type(typeid(dataset)) + "::size()"; },
                   [&] { return dataset.size(); });
}

Features sample_of(const MapDataset& dataset, std::int64_t i) {
  if (names_itself(dataset)) return dataset.get(i);
  return run_named([&] { return text(name_of_type(typeid(dataset)), "::get(", i, ")"); },
                   [&] { return dataset.get(i); });
}

std::vector<Features> samples_of(const MapDataset& dataset, std::span<const std::int64_t> numbers) {
  std::vector<Features> out = dataset.get_all(numbers);
  if (out.size() != numbers.size())
    fail(Fault::Data, "the dataset was asked for ", numbers.size(), " samples, from number ",
         numbers.front(), " on, and gave ", out.size(), "; give all of them");
  return out;
}

std::vector<Features> MapDataset::get_all(std::span<const std::int64_t> numbers) const {
  std::vector<Features> out;
  for (const std::int64_t i : numbers) out.push_back(sample_of(*this, i));
  return out;
}

void each_sample(const MapDataset& dataset,
                 const std::function<bool(std::int64_t i, const Features& sample)>& goes_on) {
  constexpr std::int64_t kAtATime = 256;
  const std::int64_t size = size_of(dataset);
  for (std::int64_t first = 0; first < size; first += kAtATime) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(kAtATime, size - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const std::vector<Features> samples = samples_of(dataset, numbers);
    for (std::size_t k = 0; k < numbers.size(); ++k)
      if (!goes_on(numbers[k], samples[k])) return;
  }
}

std::vector<TaskInput> inputs_of(const Datasets& data, const ModelConfig& model) {
  const Features first = first_sample(*data.train, "train");
  if (data.valid) {
    const Features held_out = first_sample(*data.valid, "validate");
    const RowLengths lengths = data.collate ? RowLengths::Any : RowLengths::Same;
    if (!same_kinds(held_out, first, lengths))
      refuse_other_kinds("sample 0 of the dataset to validate on", held_out,
                         "the dataset to train on", first, lengths,
                         data.collate ? "Datasets::collate" : "get()");
  }
  std::vector<TaskInput> out;
  for (const auto& [name, feature] : first) {
    TaskInput input{name, DType::I32, {}, model.vocabulary, is_label(name)};
    std::visit(
        [&](const auto& value) {
          input.dtype = dtype_of<NumberOf<std::remove_cvref_t<decltype(value)>>>();
        },
        feature);
    if (is_row(feature)) input.sample = {static_cast<std::int64_t>(count_of(feature))};
    out.push_back(std::move(input));
  }
  out.push_back({kIsSample, DType::F32, {}});
  return out;
}

std::unique_ptr<Samples> map_samples(std::shared_ptr<const MapDataset> dataset,
                                     const MapSamplesOptions& options) {
  return std::make_unique<MapSamples>(std::move(dataset), options);
}

}  // namespace tessera
