#include "tessera/token_files/index_cache.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tessera/base/md5.h"
#include "tessera/base/text.h"
#include "tessera/files/deep_json.h"
#include "tessera/files/file.h"
#include "tessera/token_files/index_digests.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kDescription = "description.txt";
constexpr std::uintmax_t kMostDescription = 1 << 20;  // bytes

/// What indices depend on, without what they do not depend on. A blend describes its datasets.
OrderedJson without_tokenizers(OrderedJson description) {
  if (description.is_object()) description.erase("tokenizer");
  for (OrderedJson& part : description) {
    if (part.is_structured()) part = without_tokenizers(std::move(part));
  }
  return description;
}

bool is_description_of(const fs::path& file, const OrderedJson& wanted) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error || size > kMostDescription) return false;
  try {
    OrderedJson there = parse_shallow<OrderedJson>(read_file(file.string()));
    return !there.is_discarded() && without_tokenizers(std::move(there)) == wanted;
  } catch (const Error&) {  // gone meanwhile, or not to be read: no hit
    return false;
  }
}

/// The base of files that hold these indices: of our own name first, else of a description that
/// differs in tokenizers alone. Empty: there are none.
std::string find_base(const IndexSet& set) {
  const std::string own = index_base(set);
  std::error_code error;
  if (fs::is_regular_file(own + kDescription, error)) return own;
  const OrderedJson wanted = without_tokenizers(OrderedJson::parse(set.description));
  const std::string ending = text("-", set.ending, "-", kDescription);
  for (const fs::path& file : entries_of(set.folder, error)) {
    if (!file.filename().string().ends_with(ending) || !is_description_of(file, wanted)) continue;
    const std::string path = file.string();
    return path.substr(0, path.size() - std::string_view(kDescription).size());
  }
  return "";
}

std::vector<std::string> names_of(const IndexSet& set) {
  std::vector<std::string> out;
  for (const IndexArray& array : set.arrays) out.emplace_back(array.name);
  return out;
}

struct CachedIndices {
  std::string base;
  std::vector<IntegerArray> arrays;
  bool proven = false;  // by digests, which files of megatron-core lack
};

std::string made_anew(const std::string& base, std::string_view why) {
  return text("the sample indices ", base, "* are rebuilt: ", why);
}

/// The arrays that lie in files. None: not all of them are there, or they cannot be used; then
/// `notices` says why.
std::optional<CachedIndices> cached_indices(const IndexSet& set,
                                            std::vector<std::string>& notices) {
  const std::string base = find_base(set);
  if (base.empty()) return std::nullopt;
  const auto tell = [&](const std::string& why) {
    notices.push_back(made_anew(base, why));
    return std::nullopt;
  };
  std::error_code error;
  const auto tokens_time = set.prefix.empty() ? fs::file_time_type::min()
                                              : fs::last_write_time(set.prefix + ".idx", error);
  for (const IndexArray& array : set.arrays) {
    if (!fs::is_regular_file(base + array.name, error))
      return tell(text("there is no ", array.name));
    if (fs::last_write_time(base + array.name, error) < tokens_time)
      return tell(text(array.name, " is older than the token files"));
  }
  try {
    CachedIndices out{base, {}, check_digests(base, names_of(set)) == Digests::Equal};
    for (const IndexArray& array : set.arrays) {
      out.arrays.push_back(IntegerArray::open(base + array.name));
      std::vector<std::int64_t> shape = out.arrays.back().shape(), wanted = array.shape;
      if (array.more_rows && shape[0] > wanted[0]) wanted[0] = shape[0];
      if (shape != wanted)
        return tell(text(array.name, " is ", join(shape, " x "), " where ",
                         array.more_rows ? "at least " : "", join(array.shape, " x "),
                         " is expected"));
    }
    return out;
  } catch (const Error& problem) {
    return tell(problem.what());
  }
}

bool same_values(const IntegerArray& a, const IntegerArray& b) {
  constexpr std::int64_t kAtATime = 1 << 16;  // elements
  if (a.type() != b.type() || a.shape() != b.shape()) return false;
  std::vector<std::int64_t> ours, theirs;
  for (std::int64_t i = 0; i < a.elements(); i += kAtATime) {
    const auto some = static_cast<std::size_t>(std::min(kAtATime, a.elements() - i));
    ours.resize(some);
    theirs.resize(some);
    a.read(i, ours);
    b.read(i, theirs);
    if (ours != theirs) return false;
  }
  return true;
}

/// So that files of another program are not made again at the next start. Where nothing can be
/// written they are.
void prove(const IndexSet& set, const std::string& base) {
  try {
    write_digests(base, names_of(set));
  } catch (const Error&) {
  }
}

/// Each file appears when it is complete.
void keep_indices(const IndexSet& set, std::span<const IntegerArray> arrays,
                  std::vector<std::string>& notices) {
  const std::string base = index_base(set);
  try {
    std::error_code error;
    fs::create_directories(fs::path(base).parent_path(), error);
    fs::remove(base + kDigests, error);  // those of other arrays
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].save(base + set.arrays[i].name);
    write_digests(base, names_of(set));
    write_atomically(base + kDescription, set.description);
  } catch (const Error& problem) {
    notices.push_back(text("the sample indices could not be saved, and are rebuilt at each start: ",
                           problem.what(), "; give a folder for them with data-cache-path"));
  }
}

}  // namespace

std::string index_base(const IndexSet& set) {
  return text(set.folder, "/", md5_text(set.description), "-", set.ending, "-");
}

std::vector<IntegerArray> kept_indices(const IndexSet& set,
                                       FunctionRef<std::vector<IntegerArray>()> make,
                                       std::vector<std::string>& notices) {
  std::optional<CachedIndices> cached = cached_indices(set, notices);
  if (cached && cached->proven) return std::move(cached->arrays);
  std::vector<IntegerArray> made = make();
  if (cached && std::ranges::equal(cached->arrays, made, same_values)) {
    prove(set, cached->base);
    return std::move(cached->arrays);
  }
  if (cached)
    notices.push_back(
        made_anew(cached->base, "they have no digests, and differ from the expected ones"));
  keep_indices(set, made, notices);
  // From the files: what was made in memory is given back.
  std::vector<std::string> problems;
  auto kept = cached_indices(set, problems);
  return kept && kept->proven ? std::move(kept->arrays) : std::move(made);
}

}  // namespace tessera
