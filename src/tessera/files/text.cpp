#include "tessera/files/text.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/other_kinds.h"
#include "tessera/files/unpack.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of(const std::string& folder);
void require_paths(const std::vector<std::string>& paths);
/// The paths, with what fits a pattern in its place.
std::vector<std::string> fitting(const std::vector<std::string>& paths);
/// A file of so many bytes whose text comes next.
void add_file(Text& out, const std::string& path, std::size_t bytes);
[[noreturn]] void fail_utf8(std::string_view bytes, std::size_t offset, const std::string& path);

}  // namespace

Text load_text(const std::vector<std::string>& paths, const TextOptions& options) {
  require_paths(paths);
  Text out;
  for (const std::string& path : fitting(paths)) {
    std::error_code error;
    const std::size_t before = out.bytes.size();
    if (fs::is_directory(path, error)) {
      for (const std::string& file : files_of(path))
        append_text_file(out, read_contents(file), file, options);
      if (out.bytes.size() == before) {
        fail(Fault::Data, "the files of folder '", path,
             "' are all empty; give a folder with text");
      }
    } else {
      append_text_file(out, read_contents(path), path, options);
      if (out.bytes.size() == before)
        fail(Fault::Data, "text file '", path, "' is empty; give a file with text");
    }
  }
  return out;
}

void append_text_file(Text& out, std::string_view bytes, const std::string& path,
                      const TextOptions& options) {
  const bool keep = options.invalid == InvalidUtf8::Keep;
  if (!keep) refuse_other_kind(bytes, path);
  if (!keep && starts_with(bytes, kByteOrderMark)) ++out.byte_order_marks;
  std::size_t at = !keep && starts_with(bytes, kByteOrderMark) ? kByteOrderMark.size() : 0;
  if (at < bytes.size() && !out.bytes.empty() && out.bytes.back() != '\n' && !keep)
    out.bytes += '\n';
  add_file(out, path, bytes.size());
  if (at == bytes.size()) return;
  if (keep) {
    out.bytes += bytes;
    return;
  }
  out.bytes.reserve(out.bytes.size() + bytes.size());
  while (at < bytes.size()) {
    const auto size = static_cast<std::size_t>(code_point_at(bytes, at).size);
    if (size == 0) fail_utf8(bytes, at, path);
    if (bytes[at] == '\r' && at + 1 < bytes.size() && bytes[at + 1] == '\n') {
      ++out.crlf;
    } else {
      out.bytes += bytes.substr(at, size);
    }
    at += size;
  }
}

std::vector<std::string> text_files(const std::vector<std::string>& paths) {
  require_paths(paths);
  std::vector<std::string> out;
  for (const std::string& path : fitting(paths)) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      out.push_back(path);
      continue;
    }
    for (std::string& file : files_of(path)) out.push_back(std::move(file));
  }
  return out;
}

std::vector<std::string> read_lines(const std::string& path) {
  Text read;
  append_text_file(read, read_contents(path), path, {});
  if (read.bytes.empty())
    fail(Fault::Data, "'", path, "' is empty; give a file with one text per line");
  std::vector<std::string> out = split(read.bytes, '\n');
  if (out.back().empty()) out.pop_back();
  return out;
}

std::string line_name(const std::vector<TextFile>& files, std::int64_t line) {
  const TextFile* of = &files.front();
  for (const TextFile& file : files) {
    if (file.line <= line && file.bytes > 0) of = &file;
  }
  return text("line ", line - of->line + 1, " of '", of->path, "'");
}

namespace {

void require_paths(const std::vector<std::string>& paths) {
  if (paths.empty()) fail(Fault::Data, "no text was given; give at least one file or folder");
}

std::vector<std::string> fitting(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (fs::exists(path, ignored) || path.find_first_of("*?[") == path.npos) {
      out.push_back(path);
      continue;
    }
    glob_t found = {};
    const int code = ::glob(path.c_str(), 0, nullptr, &found);
    std::vector<std::string> fit(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    if (code == GLOB_NOSPACE) fail(Fault::Resource, "no memory for what '", path, "' fits");
    if (fit.empty())
      fail(Fault::Data, "no file fits the pattern '", path, "'; a pattern looks into the folders ",
           "that it names, and not into those inside");
    std::ranges::sort(fit);  // by bytes, whatever the language
    out.insert(out.end(), fit.begin(), fit.end());
  }
  return out;
}

void add_file(Text& out, const std::string& path, std::size_t bytes) {
  TextFile file{path, static_cast<std::int64_t>(bytes), std::ssize(out.bytes), 0};
  if (!out.files.empty()) {
    const TextFile& last = out.files.back();
    file.line = last.line + std::count(out.bytes.begin() + last.begin, out.bytes.end(), '\n');
  }
  out.files.push_back(file);
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<fs::path> files, links;
  bool folders = false;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code ignored;  // a link may lead nowhere
    const std::string name = it->path().filename().string();
    if (it->is_directory(ignored)) folders = true;
    if (name.front() == '.' || !it->is_regular_file(ignored)) continue;
    (it->is_symlink(ignored) ? links : files).push_back(it->path());
  }
  if (error)
    fail(error == std::errc::permission_denied ? Fault::Resource : Fault::Data,
         "cannot list folder '", folder, "': ", error.message(), "; check its permissions");
  std::sort(links.begin(), links.end());
  std::set<std::string> seen;
  std::vector<std::string> out;
  for (const std::vector<fs::path>* part :
       {&files, &links}) {  // a file's own name is preferred to a link's
    for (const fs::path& path : *part) {
      if (seen.insert(fs::canonical(path).string()).second) out.push_back(path.string());
    }
  }
  std::sort(out.begin(), out.end());
  if (out.empty()) {
    fail(Fault::Data, "folder '", folder, "' has no text files",
         folders ? ", only folders; give one of those" : "", "; hidden files are ignored");
  }
  return out;
}

void fail_utf8(std::string_view bytes, std::size_t offset, const std::string& path) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(bytes[offset]);
  const auto before = bytes.substr(0, offset);
  fail(Fault::Data, "text file '", path, "', line ",
       std::count(before.begin(), before.end(), '\n') + 1, ", byte offset ", offset, ": byte 0x",
       kDigits[byte >> 4], kDigits[byte & 15],
       " is not UTF-8; convert the file to UTF-8, or leave it out");
}

}  // namespace

}  // namespace tessera
