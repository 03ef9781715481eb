#include "tessera/data/gpt_cache.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tessera/base/md5.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char *kDescription = "description.txt", *kDocuments = "document_index.npy",
                     *kSamples = "sample_index.npy", *kShuffle = "shuffle_index.npy";
constexpr std::uintmax_t kMostDescription = 1 << 20;  // bytes

/// As Python's json.dumps(indent=4) writes it: a number that is not whole as the shortest text that
/// reads back, whole ones with .0, none in exponents between 1e-4 and 1e16.
void dump_python(const OrderedJson& value, int depth, std::string& out) {
  const std::string inner(static_cast<std::size_t>(4 * (depth + 1)), ' '),
      outer(static_cast<std::size_t>(4 * depth), ' ');
  if (value.is_number_float()) {
    char buffer[64];
    const double number = value.get<double>();
    const double size = std::abs(number);
    const auto form = size != 0 && (size < 1e-4 || size >= 1e16) ? std::chars_format::scientific
                                                                 : std::chars_format::fixed;
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, number, form);
    check(error == std::errc(), "the text of ", number);
    const std::string_view written(buffer, static_cast<std::size_t>(end - buffer));
    out += written;
    if (written.find_first_of(".e") == std::string_view::npos) out += ".0";
  } else if (value.is_structured() && !value.empty()) {
    out += value.is_array() ? "[\n" : "{\n";
    bool first = true;
    for (const auto& [key, item] : value.items()) {
      if (!first) out += ",\n";
      first = false;
      out += inner;
      if (value.is_object())
        out += OrderedJson(key).dump(-1, ' ', true, OrderedJson::error_handler_t::replace) + ": ";
      dump_python(item, depth + 1, out);
    }
    out += "\n" + outer + (value.is_array() ? "]" : "}");
  } else {
    out += value.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
  }
}

OrderedJson described(const std::string& prefix, const GptDatasetChoice& choice) {
  OrderedJson out;
  out["class"] = "GPTDataset";
  out["dataset_path"] = prefix;
  out["num_samples"] = choice.samples ? OrderedJson(*choice.samples) : OrderedJson();
  out["index_split"] = to_text(choice.part);
  out["random_seed"] = choice.seed;
  out["sequence_length"] = choice.context;
  out["split"] = choice.split.empty() ? OrderedJson() : OrderedJson(choice.split);
  out["split_matrix"] = OrderedJson();
  if (!choice.split.empty()) {
    OrderedJson matrix = OrderedJson::array();
    const SplitShares split = parse_split(choice.split);
    for (std::size_t i = 0; i < split.parts.size(); ++i) {
      const auto& share = split.parts[i];
      // megatron-core begins with the integer 0.
      if (!share)
        matrix.push_back(nullptr);
      else if (i == 0)
        matrix.push_back({0, share->second});
      else
        matrix.push_back({share->first, share->second});
    }
    out["split_matrix"] = matrix;
  }
  out["tokenizer"] = {
      {"class", "megatron.core.tokenizers.text.libraries.null_tokenizer.NullTokenizer"}};
  return out;
}

std::string folder_for(const std::string& prefix, const GptDatasetChoice& choice) {
  return choice.cache.empty() ? prefix + "/cache/GPTDataset_indices" : choice.cache;
}

std::string ending_of(const GptDatasetChoice& choice) {
  return text("-GPTDataset-", to_text(choice.part), "-");
}

/// What indices depend on, without what they do not depend on.
OrderedJson without_tokenizer(OrderedJson description) {
  if (description.is_object()) description.erase("tokenizer");
  return description;
}

bool is_description_of(const fs::path& file, const OrderedJson& wanted) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error || size > kMostDescription) return false;
  try {
    const OrderedJson there = OrderedJson::parse(read_file(file.string()), nullptr, false);
    return !there.is_discarded() && without_tokenizer(there) == wanted;
  } catch (const Error&) {  // gone meanwhile, or not to be read: no hit
    return false;
  }
}

/// The base of files that hold these indices: of our own name first, else of a description that
/// differs in the tokenizer alone. Empty: there are none.
std::string find_base(const std::string& prefix, const GptDatasetChoice& choice) {
  const std::string own = gpt_cache_base(prefix, choice);
  std::error_code error;
  if (fs::is_regular_file(own + kDescription, error)) return own;
  const OrderedJson wanted = without_tokenizer(described(prefix, choice));
  const std::string ending = ending_of(choice) + kDescription;
  std::vector<fs::path> files;
  for (auto it = fs::directory_iterator(folder_for(prefix, choice), error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().filename().string().ends_with(ending)) files.push_back(it->path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    if (!is_description_of(file, wanted)) continue;
    const std::string path = file.string();
    return path.substr(0, path.size() - std::string_view(kDescription).size());
  }
  return "";
}

/// Empty: the arrays are those that the plan makes of the token files; else what is wrong.
std::string misfit(const GptIndices& found, const GptIndexPlan& plan, std::int64_t sequences) {
  using Shape = std::vector<std::int64_t>;
  const auto shape_of = [](const IntegerArray& array, const Shape& wanted, const char* name) {
    return array.shape() == wanted ? ""
                                   : text(name, " is ", join(array.shape(), " x "), " where ",
                                          join(wanted, " x "), " is expected");
  };
  std::string out = shape_of(found.documents, {plan.epochs * sequences}, kDocuments);
  if (out.empty()) out = shape_of(found.samples, {plan.samples + 1, 2}, kSamples);
  if (out.empty()) out = shape_of(found.shuffle, {plan.samples}, kShuffle);
  return out;
}

}  // namespace

std::string gpt_description(const std::string& prefix, const GptDatasetChoice& choice) {
  std::string out;
  dump_python(described(prefix, choice), 0, out);
  return out;
}

std::string gpt_cache_base(const std::string& prefix, const GptDatasetChoice& choice) {
  return text(folder_for(prefix, choice), "/", md5_text(gpt_description(prefix, choice)),
              ending_of(choice));
}

std::optional<GptIndices> cached_gpt_indices(const std::string& prefix,
                                             const GptDatasetChoice& choice,
                                             const GptIndexPlan& plan, std::int64_t sequences,
                                             std::vector<std::string>& notices) {
  const std::string base = find_base(prefix, choice);
  if (base.empty()) return std::nullopt;
  const auto tell = [&](const std::string& why) {
    notices.push_back(text("the sample indices ", base, "* are made anew: ", why));
    return std::nullopt;
  };
  std::error_code error;
  const auto tokens_time = fs::last_write_time(prefix + ".idx", error);
  for (const char* name : {kDocuments, kSamples, kShuffle}) {
    if (!fs::is_regular_file(base + name, error)) return tell(text("there is no ", name));
    if (fs::last_write_time(base + name, error) < tokens_time)
      return tell(text(name, " is older than the token files"));
  }
  try {
    GptIndices out{IntegerArray::open(base + kDocuments), IntegerArray::open(base + kSamples),
                   IntegerArray::open(base + kShuffle)};
    if (const std::string wrong = misfit(out, plan, sequences); !wrong.empty()) return tell(wrong);
    return out;
  } catch (const Error& problem) {
    return tell(problem.what());
  }
}

void keep_gpt_indices(const std::string& prefix, const GptDatasetChoice& choice,
                      const GptIndices& indices, std::vector<std::string>& notices) {
  const std::string base = gpt_cache_base(prefix, choice);
  try {
    std::error_code error;
    fs::create_directories(fs::path(base).parent_path(), error);
    indices.documents.save(base + kDocuments);
    indices.samples.save(base + kSamples);
    indices.shuffle.save(base + kShuffle);
    write_atomically(base + kDescription, gpt_description(prefix, choice));
  } catch (const Error& problem) {
    notices.push_back(text(
        "the sample indices could not be kept, and are made anew at each start: ", problem.what(),
        "; data-cache-path names a folder for them"));
  }
}

}  // namespace tessera
