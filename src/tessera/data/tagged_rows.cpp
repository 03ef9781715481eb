#include "tessera/data/tagged_rows.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/philox.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/data/permutation.h"
#include "tessera/data/table_file.h"
#include "tessera/data/token_stream.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

std::span<const std::int32_t> part_of(const std::vector<std::int32_t>& all, std::int64_t begin,
                                      std::int64_t end, std::int64_t most) {
  return std::span(all).subspan(static_cast<std::size_t>(begin),
                                static_cast<std::size_t>(std::min(end - begin, most)));
}

/// The number that a name is; nothing: it is a text.
std::optional<std::int64_t> number_of(const std::string& name) {
  std::int64_t out = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, out);
  return error == std::errc() && stop == end ? std::optional(out) : std::nullopt;
}

std::vector<std::string> sorted_names(std::span<const TaggedSentence> train,
                                      std::span<const TaggedSentence> valid) {
  std::set<std::string> all;
  for (const auto& part : {train, valid}) {
    for (const TaggedSentence& sentence : part)
      all.insert(sentence.tags.begin(), sentence.tags.end());
  }
  std::vector<std::string> out(all.begin(), all.end());
  if (std::ranges::all_of(out, [](const std::string& name) { return number_of(name).has_value(); }))
    std::ranges::stable_sort(out, {}, [](const std::string& name) { return *number_of(name); });
  return out;
}

class TaggedEncoder {
 public:
  TaggedEncoder(const Vocabulary& vocabulary, TaggedRows& out)
      : vocabulary_(vocabulary), out_(out) {
    for (std::size_t i = 0; i < out.names.size(); ++i)
      classes_[out.names[i]] = static_cast<std::int32_t>(i);
  }

  void add(const TaggedSentence& sentence) const try {
    for (std::size_t i = 0; i < sentence.words.size(); ++i)
      add_word(sentence.words[i], sentence.tags[i]);
    out_.ends.push_back(std::ssize(out_.ids));
  } catch (const Error& error) {
    throw error.with(text("in the sentence at line ", sentence.line, " of '", sentence.path, "'"));
  }

 private:
  void add_word(const std::string& word, const std::string& tag) const {
    const auto known = classes_.find(tag);
    if (known == classes_.end())
      fail(Fault::Data, "word '", printable(word.substr(0, 60)), "' has the tag '",
           printable(tag.substr(0, 60)), "', which is none of ", column_names_text(out_.names),
           "; give data with the tags that the model was trained on");
    const std::vector<std::int32_t> ids = vocabulary_.encode(" " + word);
    out_.ids.insert(out_.ids.end(), ids.begin(), ids.end());
    if (ids.empty()) {
      ++out_.without_tokens;
      return;
    }
    out_.labels.push_back(known->second);
    out_.labels.resize(out_.ids.size(), kIgnoredLabel);
  }

  const Vocabulary& vocabulary_;
  TaggedRows& out_;
  std::map<std::string, std::int32_t, std::less<>> classes_;
};

class TaggedSamples final : public Samples {
 public:
  TaggedSamples(const TaggedRows& rows, bool held_out, const TaggedSamplesOptions& options)
      : rows_(rows),
        held_out_(held_out),
        options_(options),
        first_(held_out ? rows.train : 0),
        size_(held_out ? rows.rows() - rows.train : rows.train),
        key_(random_key(options.seed, "data.order")) {
    require(options.context >= 3, "context is ", options.context,
            "; a sample has [CLS], a token and [SEP], so give at least 3");
    if (held_out && options.most > 0) size_ = std::min(size_, options.most);
    if (size_ < 1)
      fail(Fault::Data, "no sentence of ", rows.rows(), " is ",
           held_out ? "held out" : "left to train on", "; give more of them");
  }

  std::int64_t size() const override { return size_; }
  std::string notice() const override {
    std::int64_t cut = 0;
    for (std::int64_t row = first_; row < first_ + size_; ++row)
      cut += rows_.ends[static_cast<std::size_t>(row)] - rows_.begin(row) > room() ? 1 : 0;
    return cut == 0 ? ""
                    : text(counted(cut, "sentence"), " of ", size_, cut == 1 ? " has" : " have",
                           " more than ", room(), " tokens, and the rest is left out");
  }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const auto context = static_cast<std::size_t>(options_.context);
    const auto [pad, cls, sep, masked] = options_.special;
    const std::span<std::int32_t> ids = batch.fill_with("ids", pad),
                                  mask = batch.fill_with("mask", 0),
                                  labels = batch.fill_with("labels", kIgnoredLabel);
    if (options_.types) batch.fill_with("types", 0);
    for (std::int64_t i = 0; i < count; ++i) {
      if (held_out_ && first + i >= size_) break;
      const std::int64_t row = row_of(first + i);
      const std::span<const std::int32_t> tokens = rows_.row_ids(row, room());
      const std::size_t begin = static_cast<std::size_t>(i) * context;
      ids[begin] = cls;
      std::ranges::copy(tokens, ids.subspan(begin + 1).begin());
      std::ranges::copy(rows_.row_labels(row, room()), labels.subspan(begin + 1).begin());
      ids[begin + 1 + tokens.size()] = sep;
      std::ranges::fill(mask.subspan(begin, tokens.size() + 2), 1);
    }
  }

 private:
  std::int64_t room() const { return options_.context - 2; }
  std::int64_t row_of(std::int64_t sample) const {
    if (held_out_) return first_ + sample;
    const auto n = static_cast<std::uint64_t>(size_), k = static_cast<std::uint64_t>(sample);
    return static_cast<std::int64_t>(permute(k % n, n, key_, k / n));
  }

  const TaggedRows& rows_;
  bool held_out_;
  TaggedSamplesOptions options_;
  std::int64_t first_, size_;
  std::uint64_t key_;
};

}  // namespace

std::span<const std::int32_t> TaggedRows::row_ids(std::int64_t row, std::int64_t most) const {
  return part_of(ids, begin(row), ends[static_cast<std::size_t>(row)], most);
}

std::span<const std::int32_t> TaggedRows::row_labels(std::int64_t row, std::int64_t most) const {
  return part_of(labels, begin(row), ends[static_cast<std::size_t>(row)], most);
}

TaggedRows encode_tagged_rows(std::span<const TaggedSentence> train,
                              std::span<const TaggedSentence> valid, double held_out,
                              const Vocabulary& vocabulary, std::vector<std::string> names) {
  TaggedRows out;
  out.names = names.empty() ? sorted_names(train, valid) : std::move(names);
  const TaggedEncoder encoder(vocabulary, out);
  for (const auto& part : {train, valid}) {
    for (const TaggedSentence& sentence : part) encoder.add(sentence);
  }
  out.train = valid.empty() ? count_to_train(std::ssize(train), held_out) : std::ssize(train);
  return out;
}

std::unique_ptr<Samples> tagged_samples(const TaggedRows& rows, bool held_out,
                                        const TaggedSamplesOptions& options) {
  return std::make_unique<TaggedSamples>(rows, held_out, options);
}

}  // namespace tessera
