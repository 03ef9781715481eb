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
#include "tessera/user_code/named_function.h"

namespace tessera {

namespace {

/// The numbers of a feature, whether it is a row or one number.
std::span<const std::int32_t> numbers_of(const std::int32_t& one) { return {&one, 1}; }
std::span<const float> numbers_of(const float& one) { return {&one, 1}; }
template <typename T>
std::span<const T> numbers_of(const std::vector<T>& row) {
  return row;
}

template <typename T>
constexpr bool kIsRow = false;
template <typename T>
constexpr bool kIsRow<std::vector<T>> = true;

/// "a row of 64 i32", "an f32"
std::string to_text(const Feature& feature) {
  return std::visit(
      [](const auto& value) -> std::string {
        const auto numbers = numbers_of(value);
        using Number = std::remove_const_t<typename decltype(numbers)::element_type>;
        if constexpr (kIsRow<std::remove_cvref_t<decltype(value)>>)
          return text("a row of ", numbers.size(), " ", dtype_of<Number>());
        else
          return text("a number of ", dtype_of<Number>());
      },
      feature);
}

std::size_t count_of(const Feature& feature) {
  return std::visit([](const auto& value) { return numbers_of(value).size(); }, feature);
}

bool same_kind(const Feature& a, const Feature& b) {
  return a.index() == b.index() && count_of(a) == count_of(b);
}

bool same_kinds(const Features& a, const Features& b) {
  return std::ranges::equal(a, b, [](const auto& its, const auto& other) {
    return its.first == other.first && same_kind(its.second, other.second);
  });
}

std::string feature_names(const Features& features) {
  std::vector<std::string> out;
  for (const auto& [name, value] : features) out.push_back(name);
  return out.empty() ? "none" : join(out);
}

/// Says how a sample differs from the one that it should be like.
[[noreturn]] void refuse_other_kinds(const std::string& whose, const Features& sample,
                                     std::string_view like, const Features& other) {
  if (!std::ranges::equal(sample, other, {}, &Features::value_type::first,
                          &Features::value_type::first))
    fail(Fault::Data, whose, " has the features ", feature_names(sample), ", but ", like, " has ",
         feature_names(other), "; get() must return the same features for all samples");
  const auto differing = std::ranges::find_if(
      sample, [&](const auto& its) { return !same_kind(its.second, other.at(its.first)); });
  const auto& [name, feature] = *differing;
  fail(Fault::Data, whose, ": feature '", name, "' is ", to_text(feature), ", but in ", like,
       " it is ", to_text(other.at(name)), "; pad or cut it in get()");
}

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

std::vector<Features> samples_of(const MapDataset& dataset,
                                 const std::vector<std::int64_t>& numbers) {
  std::vector<Features> out = dataset.get_all(numbers);
  if (out.size() != numbers.size())
    fail(Fault::Data, "the dataset was asked for ", numbers.size(), " samples, from number ",
         numbers.front(), " on, and gave ", out.size(), "; give all of them");
  return out;
}

bool is_label(std::string_view name) { return name == "label" || name == "labels"; }

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
        options_(options),
        key_(random_key(options.seed, "data.order")),
        first_(without_left_out(sample_of(*dataset_, 0))) {
    size_ = size_of(*dataset_);
    if (options_.most > 0) size_ = std::min(size_, options_.most);
  }

  std::int64_t size() const override { return size_; }

  std::string notice() const override { return options_.notice; }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    std::vector<std::optional<Features>> samples = draw(first, count);
    for (const auto& [name, of_first] : first_) {
      std::visit([&](const auto& value) { fill_feature(name, value, samples, batch); }, of_first);
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

  /// None for what is of no sample.
  std::vector<std::optional<Features>> draw(std::int64_t first, std::int64_t count) const {
    std::vector<std::int64_t> indices;
    for (std::int64_t row = 0; row < count; ++row)
      if (const auto index = index_of(first + row)) indices.push_back(*index);
    std::vector<std::optional<Features>> out;
    std::vector<Features> samples = samples_of(*dataset_, indices);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      samples[i] = without_left_out(std::move(samples[i]));
      if (!same_kinds(samples[i], first_))
        refuse_other_kinds(text("sample ", indices[i], " of the dataset"), samples[i],
                           "the first one", first_);
      for (const TaskInput& input : options_.known) require_in_range(input, indices[i], samples[i]);
      out.emplace_back(std::move(samples[i]));
    }
    out.resize(static_cast<std::size_t>(count));
    return out;
  }

  Features without_left_out(Features sample) const {
    for (const std::string& name : options_.left_out) sample.erase(name);
    return sample;
  }

  template <typename Value>
  void fill_feature(const std::string& name, const Value& of_first,
                    const std::vector<std::optional<Features>>& samples, BatchInputs& batch) const {
    using Numbers = decltype(numbers_of(of_first));
    using Number = std::remove_const_t<typename Numbers::element_type>;
    const auto known = std::ranges::find(options_.known, name, &TaskInput::name);
    const bool ignorable = is_label(name) || (known != options_.known.end() && known->ignorable);
    const auto nothing = ignorable ? static_cast<Number>(kIgnoredLabel) : Number{0};
    const std::span<Number> all = batch.fill_with<Number>(name, nothing);
    const std::size_t wanted = numbers_of(of_first).size();
    if (all.size() != samples.size() * wanted)
      fail(Fault::Data, "feature '", name, "' of the dataset's first sample is ",
           to_text(Feature(of_first)), ", and a batch has room for ", all.size(), " numbers of ",
           samples.size(), " samples; get(0) must return the same each time");
    auto to = all.begin();
    for (const std::optional<Features>& sample : samples) {
      if (sample) std::ranges::copy(numbers_of(std::get<Value>(sample->at(name))), to);
      to += static_cast<std::ptrdiff_t>(wanted);
    }
  }

  std::shared_ptr<const MapDataset> dataset_;
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
  return run_named([&] { return name_of_type(typeid(dataset)) + "::size()"; },
                   [&] { return dataset.size(); });
}

Features sample_of(const MapDataset& dataset, std::int64_t i) {
  return run_named([&] { return text(name_of_type(typeid(dataset)), "::get(", i, ")"); },
                   [&] { return dataset.get(i); });
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
    if (!same_kinds(held_out, first))
      refuse_other_kinds("sample 0 of the dataset to validate on", held_out,
                         "the dataset to train on", first);
  }
  std::vector<TaskInput> out;
  for (const auto& [name, feature] : first) {
    TaskInput input{name, DType::I32, {}, model.vocabulary, is_label(name)};
    std::visit(
        [&](const auto& value) {
          const auto numbers = numbers_of(value);
          input.dtype = dtype_of<std::remove_const_t<typename decltype(numbers)::element_type>>();
          if constexpr (kIsRow<std::remove_cvref_t<decltype(value)>>)
            input.sample = {std::ssize(numbers)};
        },
        feature);
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
