#include "tessera/rapidformer/data_flags.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/token_files/data_split.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kPathNames = {"data-path", "data-dir", "dataset-path"};
constexpr std::array<std::string_view, 2> kTrainNames = {"train-data-path", "train-data"};
constexpr std::array<std::string_view, 2> kDataNames = {"data-name", "dataset-name"};
constexpr std::array<std::string_view, 6> kEndings = {".tsv",  ".csv", ".jsonl",
                                                      ".json", ".txt", ".safetensors"};

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The one of `names` that was given; empty: none. Two that disagree are a problem.
template <std::size_t N>
std::string_view given_of(const GivenFlags& flags, const std::array<std::string_view, N>& names,
                          Problems& problems) {
  std::string_view out;
  for (const std::string_view name : names) {
    if (flags.find(name) == nullptr) continue;
    if (!out.empty() && flags.find_all(name) != flags.find_all(out))
      problems.add(text(flags.written(out), " and ", flags.written(name),
                        " disagree: both set the data; give one"));
    out = name;
  }
  return out;
}

/// DIR/train.tsv or the like; empty: there is none.
std::string part_in(const std::string& folder, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (const std::string_view ending : kEndings) {
      const std::string path = (fs::path(folder) / text(name, ending)).string();
      if (is_there(path)) return path;
    }
  }
  return "";
}

/// What `preprocess_data` makes with and without --split-sentences.
void check_prefix(const std::string& prefix, const std::string& source, Problems& problems) {
  if (is_there(prefix + ".idx") || is_there(prefix)) return;
  constexpr std::string_view kSentence = "_sentence", kDocument = "_document";
  for (const auto& [mine, other, how] :
       {std::tuple(kSentence, kDocument, "without --split-sentences"),
        std::tuple(kDocument, kSentence, "with --split-sentences")}) {
    if (!prefix.ends_with(mine)) continue;
    const std::string twin = text(prefix.substr(0, prefix.size() - mine.size()), other);
    if (!is_there(twin + ".idx")) continue;
    return problems.add(text(source, " ", prefix, ": there is no ", prefix, ".idx, but ", twin,
                             ".idx is there: preprocess_data made it ", how, "; give --data-path ",
                             twin,
                             mine == kSentence ? ", for GPT, or make the other one for BERT"
                                               : ", for BERT, or make the other one for GPT"));
  }
  problems.add(text(source, " ", prefix, ": there is no ", prefix, ".idx",
                    near_files(prefix + ".idx"),
                    "; `tessera preprocess_data --input TEXTS.jsonl --output-prefix PREFIX` makes "
                    "token files"));
}

/// A file, or the prefix of token files.
bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) || is_there(path + ".idx");
}

void take_tables(GivenFlags& flags, const std::vector<std::string>& paths,
                 const std::string& source, const std::string& name, Problems& problems,
                 std::vector<std::string>& notices) {
  if (name.empty() && std::ranges::all_of(paths, is_file)) return flags.set("data", paths, source);
  if (paths.size() > 1) {
    const auto other = std::ranges::find_if_not(paths, is_file);
    problems.add(text(source, " ", join(paths, " "), ": several paths are files, and ",
                      other == paths.end() ? text("--data-name ", name, " is a folder in one")
                                           : text("'", *other, "' is none"),
                      "; give one folder, or the files alone"));
    return problems.refuse("data");
  }
  const std::string& path = paths.front();
  const std::string folder = name.empty() ? path : (fs::path(path) / name).string();
  const std::string train = part_in(folder, {"train"}),
                    valid = part_in(folder, {"dev", "validation", "valid"}),
                    test = part_in(folder, {"test"});
  if (train.empty()) {
    problems.add(text(
        source, " ", path, name.empty() ? "" : text(" with --data-name ", name), ": there is no ",
        (fs::path(folder) / "train").string(), ".tsv, .csv or .jsonl",
        is_there(folder) ? "" : near_files(folder),
        "; nothing is downloaded: put the tables train and dev there, with the names of columns in "
        "the first row"));
    return problems.refuse("data");
  }
  flags.set("data", {train}, source);
  const std::string* const batches = flags.find("eval-iters");
  if (batches != nullptr && *batches == "0") return;  // as Megatron-LM, which then tests nothing
  if (!flags.tells("valid-data")) {
    if (valid.empty()) {
      notices.push_back(text("there is no dev or validation table beside ", train,
                             ": the end of the training table is held out for evaluation"));
    } else {
      flags.set("valid-data", {valid}, source);
    }
  }
  if (!test.empty() && !flags.tells("test-data")) flags.set("test-data", {test}, source);
}

void note_empty_test(const GivenFlags& flags, std::vector<std::string>& notices) {
  const std::string* const split = flags.find("split");
  if (split == nullptr) return;
  std::size_t parts = 0;
  for (const std::string& part : tessera::split(*split, ',')) parts += trim(part).empty() ? 0 : 1;
  if (parts == 2)
    notices.push_back(
        text("--split ", *split,
             " has no test part, so nothing is tested; a third number, as in 949,50,1, keeps one"));
}

}  // namespace

void take_data(GivenFlags& flags, bool pretraining, bool checks, Problems& problems,
               std::vector<std::string>& notices) {
  note_empty_test(flags, notices);
  const std::string_view path = given_of(flags, kPathNames, problems),
                         name = given_of(flags, kDataNames, problems);
  if (path.empty()) {
    if (!name.empty())
      problems.add(text(flags.written(name), " is a folder in --data-path; give --data-path too"));
    return;
  }
  const std::string source = text("--", path);
  for (const std::string_view other : kTrainNames) {
    if (!flags.typed(other) || !flags.typed(path)) continue;
    problems.add(text(source, " and --", other, " both set the training data; give one"));
    return problems.refuse("data");
  }
  if (!pretraining)
    return take_tables(flags, flags.find_all(path), source, name.empty() ? "" : *flags.find(name),
                       problems, notices);
  if (!name.empty())
    problems.add(text(flags.written(name),
                      " is for tables; --task pretraining takes the prefix of ",
                      "token files: ", source, " PREFIX"));
  const std::vector<std::string> words = flags.find_all(path);
  const bool weighted = words.size() > 1 && words.size() % 2 == 0 &&
                        words[0].find_first_not_of("0123456789.eE+-") == std::string::npos;
  const std::size_t before = problems.list().size();
  for (std::size_t i = weighted ? 1 : 0; i < words.size(); i += weighted ? 2 : 1)
    if (checks) check_prefix(words[i], source, problems);
  if (problems.list().size() == before) return flags.set("data", words, source);
  problems.refuse("data");  // what is not there is told once
}

}  // namespace tessera
