#include "tessera/corpora/corpus.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/corpora/packages.h"
#include "tessera/files/file.h"
#include "tessera/files/process.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kKjvVerses = 31'102;
constexpr const char* kLicences = "/usr/share/common-licenses";

/// A corpus in the making.
struct Draft {
  const CorpusRequest& request;
  CorpusReport report;
  CleaningLog log;
  std::string bytes;

  void add_files(const std::string& path);
  void add_licences();
  void add_kjv();
};

void require_sources(const CorpusRequest& request);
/// The output is no source: neither one of the files, nor in one of the folders, under any name.
void require_output_apart(const CorpusRequest& request);
/// What the output holds already is `bytes`, or may be overwritten.
void require_no_loss(const CorpusRequest& request, std::string_view bytes);
/// The text as the package's own program prints it, one verse per line. Throws PackagesUnavailable.
std::string fetch_kjv(const CorpusRequest& request);
ProcessResult run_bible(const std::string& root, const CorpusRequest& request,
                        const std::string& folder);
void count(CorpusReport& report, std::string_view bytes);

}  // namespace

CorpusReport prepare_corpus(const CorpusRequest& request) {
  require_sources(request);
  require_output_apart(request);
  Draft draft{request, {}, {}, {}};
  draft.report.output = request.output;
  for (const std::string& source : request.sources) {
    if (source == "kjv") {
      draft.add_kjv();
    } else if (source == "licences") {
      draft.add_licences();
    } else {
      draft.add_files(source);
    }
  }
  if (draft.bytes.empty())
    fail(Fault::Data, "nothing is left of ", join(request.sources),
         " after cleaning; give sources with text");
  require_no_loss(request, draft.bytes);
  write_atomically(request.output, draft.bytes);
  draft.report.cleaned = draft.log.list();
  count(draft.report, draft.bytes);
  return draft.report;
}

std::string to_text(const CorpusReport& report) {
  std::string out = text("corpus      ", report.output, "\n");
  for (const std::string& source : report.sources) out += text("from        ", source, "\n");
  out += text("files       ", grouped(report.files), "\n");
  out += text("bytes       ", grouped(report.bytes), "\n");
  out += text("lines       ", grouped(report.lines), "\n");
  out += text("words       ", grouped(report.words), "\n");
  out += text("characters  ", grouped(report.characters), ", ", report.distinct_characters,
              " distinct\n");
  for (const Cleaning& cleaning : report.cleaned) {
    out += text("cleaned     ", grouped(cleaning.times), " ", cleaning.what, "\n");
  }
  for (const std::string& notice : report.notices) out += text("notice      ", notice, "\n");
  return out + text("xxh3-128    ", report.digest, "\n");
}

std::vector<std::string> corpus_names() { return {"kjv", "licences"}; }

namespace {

void require_sources(const CorpusRequest& request) {
  require(!request.sources.empty(),
          "no source given; give text files, folders, or a corpus: ", join(corpus_names()));
  require(!request.output.empty(), "no output given; give the name of the file to write");
  const std::vector<std::string> names = corpus_names();
  for (const std::string& source : request.sources) {
    std::error_code error;
    if (std::find(names.begin(), names.end(), source) != names.end() || fs::exists(source, error))
      continue;
    fail(Fault::Data, "'", source,
         "' is neither a file, a folder nor the name of a corpus; corpora by name: ", join(names),
         near_files(source));
  }
}

void require_output_apart(const CorpusRequest& request) {
  const std::vector<std::string> names = corpus_names();
  const fs::path folder = fs::path(request.output).parent_path();
  for (const std::string& source : request.sources) {
    if (std::find(names.begin(), names.end(), source) != names.end()) continue;
    std::error_code missing;
    require(!fs::equivalent(source, request.output, missing), "output '", request.output,
            "' is the source '", source, "' itself; give another file to write");
    require(!fs::is_directory(source, missing) ||
                !fs::equivalent(source, folder.empty() ? "." : folder, missing),
            "output '", request.output, "' lies in the source folder '", source,
            "', whose files are all read; give a path outside it");
  }
}

void require_no_loss(const CorpusRequest& request, std::string_view bytes) {
  std::error_code ignored;
  if (request.overwrite || !fs::is_regular_file(request.output, ignored)) return;
  require(read_file(request.output, Fault::Resource) == bytes, "output '", request.output,
          "' exists with other contents; give another file, or --overwrite to replace it");
}

void Draft::add_files(const std::string& path) {
  const Text loaded = load_text({path});
  log.add("byte order marks removed", loaded.byte_order_marks);
  log.add("line ends CR LF made LF", loaded.crlf);
  bytes += clean_text(loaded.bytes, log);
  report.sources.push_back(path);
  report.files += static_cast<std::int64_t>(loaded.files.size());
}

void Draft::add_licences() {
  std::error_code error;
  if (!fs::is_directory(kLicences, error)) {
    fail(Fault::Data, "there is no folder ", kLicences,
         ": this is not a Debian system; prepare text files instead");
  }
  add_files(kLicences);
}

void Draft::add_kjv() {
  std::string verses;
  try {
    verses = fetch_kjv(request);
  } catch (const PackagesUnavailable& reason) {
    report.notices.push_back(text("the King James text could not be fetched: ", reason.what()));
    report.notices.push_back(text("the licence texts in ", kLicences, " were taken instead"));
    return add_licences();
  }
  bytes += clean_verses(verses, log);
  report.sources.push_back(
      "kjv: King James Bible, Debian packages bible-kjv and bible-kjv-text (public domain)");
  report.files += 1;
}

std::string fetch_kjv(const CorpusRequest& request) {
  const TemporaryFolder scratch = TemporaryFolder::beside(request.output);
  const std::string root =
      unpack_packages({"bible-kjv", "bible-kjv-text"}, scratch.path(), request.package_tool);
  const ProcessResult result = run_bible(root, request, scratch.path());
  if (!result.ok()) {
    const std::string_view said = trim(result.errors);
    throw PackagesUnavailable(
        text("its program failed (", result.exit_code, "): ", said.substr(0, said.find('\n'))));
  }
  const auto verses = std::count(result.output.begin(), result.output.end(), '\n');
  if (verses != kKjvVerses) {
    throw PackagesUnavailable(text("its program gave ", verses, " verses instead of ", kKjvVerses));
  }
  return result.output;
}

ProcessResult run_bible(const std::string& root, const CorpusRequest& request,
                        const std::string& folder) {
  // The data file has a format of its own that only this program reads, and it is looked for in the
  // working folder.
  const std::vector<std::string> arguments = {root + "/usr/bin/bible", "-f", "gen1:1-rev22:21"};
  const std::string library_folder = root + "/usr/lib";
  ProcessResult result = run_process(arguments, {library_folder, {}, /*timeout_seconds=*/60});
  if (result.ok() || result.errors.find("libreadline") == std::string::npos) return result;

  // A slim system lacks the program's one library, which is then unpacked beside it.
  fs::create_directory(folder + "/more");
  const std::string more =
      unpack_packages({"libreadline8", "libtinfo6"}, folder + "/more", request.package_tool);
  std::string paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(more)) {
    const std::string name = entry.path().filename().string();
    if (starts_with(name, "libreadline.so") || starts_with(name, "libtinfo.so")) {
      paths += text(paths.empty() ? "" : ":", entry.path().parent_path().string());
    }
  }
  return run_process(arguments,
                     {library_folder, {"LD_LIBRARY_PATH=" + paths}, /*timeout_seconds=*/60});
}

void count(CorpusReport& report, std::string_view bytes) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t'; };
  report.bytes = static_cast<std::int64_t>(bytes.size());
  report.lines = std::count(bytes.begin(), bytes.end(), '\n');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    report.words += !blank(bytes[i]) && (i == 0 || blank(bytes[i - 1]));
  report.characters = count_characters(bytes);
  report.distinct_characters = Vocabulary::characters(bytes).size();
  report.digest = hash128_text(std::as_bytes(std::span(bytes)));
}

}  // namespace

}  // namespace tessera
