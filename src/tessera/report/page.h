#pragma once
/// A page that a browser shows by itself: no script, no font and no picture from elsewhere.

#include <string>
#include <string_view>
#include <vector>

namespace tessera::page {

/// Everything up to the first heading, which is `title`. end() ends it.
std::string begin(std::string_view title);
std::string end();

std::string heading(std::string_view what);
std::string paragraph(std::string_view what);
/// Rows of cells; the first row is the head. The first column and the last `sentences` columns are
/// read, so they begin on the left; numbers are on the right.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t sentences = 0);
/// A drawing that is moved under the page where it is wider.
std::string wide(std::string_view drawing);
/// Drawings in two columns, where there is room for them.
std::string beside(std::string_view drawings);

}  // namespace tessera::page
