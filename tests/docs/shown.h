#pragma once
/// Documents that show code or output: what they show is compared with what it is.
///
/// In a document, the line "<!-- FILE: NAME -->" names the fenced block below it. In FILE, code
/// between the lines "// [NAME]" and "// [end]" has that name.

#include <map>
#include <string>

namespace tessera::test {

/// By name.
using Sections = std::map<std::string, std::string>;

/// The sections of a source file; a name that occurs twice is one section.
Sections sections_of(const std::string& file);
/// The blocks of `document` that say they come from `file`.
Sections shown_in(const std::string& document, const std::string& file);

/// Fails where the document lacks a section of the file, or shows another.
void expect_shown(const std::string& document, const std::string& file);

/// Fails where the block `name` of `file` in the document is another than `text`. With the
/// environment variable TESSERA_ACCEPT the document is rewritten instead.
void expect_text(const std::string& document, const std::string& file, const std::string& name,
                 const std::string& text);

}  // namespace tessera::test
