#include "tessera/corpora/wmt.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/corpora/sgm.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

struct SgmFile {
  std::string path;
  SgmSet set;
};

/// All files of the folder, by name.
std::vector<SgmFile> sgm_files(const std::string& folder);
/// The two that the files are in. Errors: fewer or more.
std::pair<std::string, std::string> two_languages(const std::vector<SgmFile>& of,
                                                  const std::string& folder);
/// The file of a set for one side of the pairs.
const SgmFile& side(const std::vector<SgmFile>& of, const std::string& set, SgmKind wanted,
                    const std::string& language);
/// Adds the pairs of two files to `bytes`.
void pair_up(const SgmFile& source, const SgmFile& target, std::string& bytes, WmtText& direction,
             CleaningLog& dropped);
void require_no_other_bytes(const std::string& path, std::string_view bytes, bool overwrite);

}  // namespace

WmtReport prepare_wmt(const WmtRequest& request) {
  const std::vector<SgmFile> read = sgm_files(request.input);
  const auto [a, b] = two_languages(read, request.input);
  std::set<std::string> sets;
  WmtReport report;
  for (const SgmFile& file : read) {
    sets.insert(file.set.id);
    std::int64_t segments = 0;
    for (const SgmDocument& document : file.set.documents)
      segments += std::ssize(document.segments);
    report.sources.push_back(
        text(file.path, ": ", file.set.kind == SgmKind::Source ? "source" : "reference", " in ",
             file.set.language, " of ", file.set.id, ", ", grouped(std::ssize(file.set.documents)),
             " documents, ", grouped(segments), " segments"));
  }
  std::vector<std::string> bytes;
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    WmtText direction{(fs::path(request.output) / text("wmt14.", from, "_", to, ".txt")).string(),
                      0,
                      0,
                      0,
                      {},
                      {}};
    CleaningLog dropped;
    std::string& out = bytes.emplace_back();
    for (const std::string& set : sets)
      pair_up(side(read, set, SgmKind::Source, from), side(read, set, SgmKind::Reference, to), out,
              direction, dropped);
    if (direction.pairs == 0)
      fail(Fault::Data, "folder '", request.input, "' has no pair with text on both sides; ",
           "give .sgm files with the same documents in both languages");
    direction.dropped = dropped.list();
    direction.digest = hash128_text(std::as_bytes(std::span(out)));
    report.texts.push_back(std::move(direction));
  }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    require_no_other_bytes(report.texts[i].path, bytes[i], request.overwrite);
  std::error_code error;
  fs::create_directories(request.output, error);
  if (error)
    fail(Fault::Resource, "output folder '", request.output, "' cannot be made: ", error.message(),
         "; give another folder, or make it writable");
  AtomicFile first(report.texts[0].path), second(report.texts[1].path);
  first.write(bytes[0]);
  second.write(bytes[1]);
  first.flush();
  second.flush();
  first.commit();
  second.commit();
  return report;
}

std::string to_text(const WmtReport& report) {
  std::string out;
  for (const std::string& source : report.sources) out += text("from        ", source, "\n");
  for (const WmtText& written : report.texts) {
    out += text("written     ", written.path, ": ", grouped(written.pairs), " pairs, ",
                grouped(written.source_words), " and ", grouped(written.target_words), " words\n");
    if (written.dropped.empty()) out += "dropped     nothing\n";
    for (const Cleaning& cleaning : written.dropped)
      out += text("dropped     ", grouped(cleaning.times), " ", cleaning.what, "\n");
    out += text("xxh3-128    ", written.digest, "\n");
  }
  return out;
}

namespace {

/// "en" of "newstest2014-fren-src.en.sgm"; empty: the name says none.
std::string language_in(const fs::path& path) {
  const std::string rest = path.stem().string();
  const std::size_t dot = rest.rfind('.');
  return dot == std::string::npos ? "" : small_letters(rest.substr(dot + 1));
}

/// It becomes part of a file's name.
void require_language(const SgmFile& file) {
  const std::string& language = file.set.language;
  if (language.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") != std::string::npos)
    fail(Fault::Data, "'", file.path, "' is in the language '", printable(language),
         "', which has other characters than letters, digits, - and _; correct its attribute or "
         "the file's "
         "name");
}

std::vector<SgmFile> sgm_files(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->path().extension() == ".sgm") paths.push_back(it->path().string());
  }
  if (error)
    fail(Fault::Data, "cannot list folder '", folder, "': ", error.message(),
         fs::exists(folder) ? "; give the folder that holds the .sgm files" : near_files(folder));
  if (paths.empty())
    fail(Fault::Data, "folder '", folder,
         "' holds no .sgm files; give the folder into which WMT's test sets were unpacked");
  std::sort(paths.begin(), paths.end());
  std::vector<SgmFile> out;
  for (const std::string& path : paths) {
    SgmFile file{path, parse_sgm(read_file(path), path)};
    if (file.set.language.empty()) file.set.language = language_in(path);
    if (file.set.language.empty())
      fail(Fault::Data, "'", path, "' does not say its language; give its set the attribute ",
           file.set.kind == SgmKind::Source ? "srclang" : "trglang",
           ", or name the file like NAME.en.sgm");
    require_language(file);
    for (const SgmFile& before : out) {
      if (before.set.id == file.set.id && before.set.kind == file.set.kind &&
          before.set.language == file.set.language)
        fail(Fault::Data, "'", before.path, "' and '", path, "' are both the ",
             file.set.kind == SgmKind::Source ? "source" : "reference", " of ", file.set.id, " in ",
             file.set.language,
             "; leave one out, or give a folder with the files of one pair of languages");
    }
    out.push_back(std::move(file));
  }
  return out;
}

std::pair<std::string, std::string> two_languages(const std::vector<SgmFile>& of,
                                                  const std::string& folder) {
  std::set<std::string> languages;
  for (const SgmFile& file : of) languages.insert(file.set.language);
  if (languages.size() != 2)
    fail(Fault::Data, "the .sgm files of folder '", folder, "' are in ",
         counted(std::ssize(languages), "language"), ": ", join(languages),
         "; give a folder with the files of two");
  return {*languages.begin(), *languages.rbegin()};
}

const SgmFile& side(const std::vector<SgmFile>& of, const std::string& set, SgmKind wanted,
                    const std::string& language) {
  const SgmFile* found = nullptr;
  for (const SgmFile& file : of) {
    if (file.set.id != set || file.set.language != language) continue;
    if (found == nullptr || file.set.kind == wanted) found = &file;
  }
  if (found == nullptr)
    fail(Fault::Data, "set ", set, " has no file in ", language,
         "; add the file, or take the others of this set out of the folder");
  return *found;
}

void require_documents(const SgmFile& of, const SgmFile& in) {
  std::set<std::string> there;
  for (const SgmDocument& document : in.set.documents) there.insert(document.id);
  for (const SgmDocument& document : of.set.documents) {
    if (!there.contains(document.id))
      fail(Fault::Data, "'", of.path, "', line ", document.line, ": document ", document.id,
           " is not in '", in.path, "'; give files of the same set, or remove the document");
  }
}

std::int64_t words_of(std::string_view line) {
  return line.empty() ? 0 : std::count(line.begin(), line.end(), ' ') + 1;
}

void pair_up(const SgmFile& source, const SgmFile& target, std::string& bytes, WmtText& direction,
             CleaningLog& dropped) {
  require_documents(source, target);
  require_documents(target, source);
  std::map<std::pair<std::string, std::string>, const std::string*> targets;
  for (const SgmDocument& document : target.set.documents) {
    for (const SgmSegment& segment : document.segments)
      targets[{document.id, segment.id}] = &segment.text;
  }
  for (const SgmDocument& document : source.set.documents) {
    for (const SgmSegment& segment : document.segments) {
      const auto other = targets.find({document.id, segment.id});
      if (other == targets.end()) {
        dropped.add("segments of the source that the target lacks", 1);
        continue;
      }
      const std::string& to = *other->second;
      targets.erase(other);
      if (segment.text.empty() || to.empty()) {
        dropped.add(
            segment.text.empty() ? "pairs with an empty source" : "pairs with an empty target", 1);
        continue;
      }
      ++direction.pairs;
      direction.source_words += words_of(segment.text);
      direction.target_words += words_of(to);
      bytes += text(segment.text, "\t", to, "\n");
    }
  }
  dropped.add("segments of the target that the source lacks", std::ssize(targets));
}

void require_no_other_bytes(const std::string& path, std::string_view bytes, bool overwrite) {
  std::error_code ignored;
  if (overwrite || !fs::exists(path, ignored)) return;
  require(read_file(path, Fault::Resource) == bytes, "output '", path,
          "' exists with other contents; give another folder, or --overwrite to replace it");
}

}  // namespace

}  // namespace tessera
