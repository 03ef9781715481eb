#pragma once
/// The .sgm files in which WMT publishes test sets: lines of pseudo-SGML, which no XML parser takes
/// (a bare `&` is a character).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct SgmSegment {
  std::string id, text;   // the five named entities replaced; one blank for a run of white space
  std::int64_t line = 0;  // of the file, from 1
};

struct SgmDocument {
  std::string id;
  std::int64_t line = 0;
  std::vector<SgmSegment> segments;
};

enum class SgmKind { Source, Reference };

/// <srcset|refset setid= srclang= trglang=>, with its <doc docid=> and their <seg id=>.
struct SgmSet {
  SgmKind kind = SgmKind::Source;
  std::string id, language;  // a language that the attributes leave open ("any") is ""
  std::vector<SgmDocument> documents;
};

/// Reads a file's bytes; `path` is for messages. Tags that are not named above are passed over.
/// Errors: Fault::Data, naming file and line: not UTF-8; a tag, segment, document or set that is
/// not closed, or closed without being open; an attribute that is missing; a document or segment
/// that is there twice; text outside of segments; no set, or several.
SgmSet parse_sgm(std::string_view bytes, const std::string& path);

/// White space of any kind and control characters: one blank for a run of them, none at the ends.
std::string one_blank(std::string_view utf8);

/// A-Z as a-z; other bytes as they are.
std::string small_letters(std::string_view from);

}  // namespace tessera
