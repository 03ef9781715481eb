#pragma once
/// Text corpora: files and folders to one run of UTF-8 bytes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class InvalidUtf8 {
  Refuse,  // an error that names file, line and byte offset
  Keep,    // bytes are bytes: nothing is validated and nothing normalised
};

struct TextOptions {
  InvalidUtf8 invalid = InvalidUtf8::Refuse;
};

struct TextFile {
  std::string path;
  std::int64_t bytes = 0;  // on disk
  // Where it begins in the text of all files: bytes, and lines that end before.
  std::int64_t begin = 0, line = 0;
};

/// What was read, and what was changed on the way.
struct Text {
  std::string bytes;
  std::vector<TextFile> files;
  std::int64_t byte_order_marks = 0;  // removed from the start of files
  std::int64_t crlf = 0;              // "\r\n" that became "\n"
};

/// The text of files and folders, in the order given, packed or not (unpack.h); a path that is not
/// there and has *, ? or [ is a pattern of a shell, and means what fits it, sorted by name; of a
/// folder every regular file that is not hidden, sorted by name, without the folders inside, each file once even where links name it
/// again. Where a file does not end its last line and another follows, a newline is added.
///
/// Errors:  Fault::Data: missing, unreadable, empty (a folder may hold empty files, not only such),
/// not UTF-8; with Refuse, of another kind than text (other_kinds.h).
Text load_text(const std::vector<std::string>& paths, const TextOptions& options = {});

/// The files at `paths`: each itself, or, of a folder, those that load_text takes. Errors:
/// Fault::Data: no path; a folder without files; a pattern that nothing fits.
std::vector<std::string> text_files(const std::vector<std::string>& paths);

/// The lines of one file, normalised as load_text does. An empty line is one too; behind the
/// newline that ends the file there is none.
///
/// Errors:  Fault::Data: missing, a folder, unreadable, empty, not UTF-8.
std::vector<std::string> read_lines(const std::string& path);

/// "line 3 of 'b.txt'": of the line of the whole text that has `line` others before it.
std::string line_name(const std::vector<TextFile>& files, std::int64_t line);

/// The normalisation of one file's bytes, added to `out`; `path` is for messages.
void append_text_file(Text& out, std::string_view bytes, const std::string& path,
                      const TextOptions& options);

}  // namespace tessera
