#include "docs/shown.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "repo_file.h"

namespace tessera::test {

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(repo_file(path));
  EXPECT_TRUE(file.is_open()) << path;
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

/// What stands between `before` and `after` in a line; empty where they are not there.
std::string between(const std::string& line, const std::string& before, const std::string& after) {
  const std::size_t at = line.find(before);
  if (at == std::string::npos || !line.ends_with(after)) return {};
  return line.substr(at + before.size(), line.size() - at - before.size() - after.size());
}

}  // namespace

Sections sections_of(const std::string& file) {
  Sections out;
  std::string name;
  for (const std::string& line : lines_of(file)) {
    if (name.empty()) {
      name = between(line, "// [", "]");
    } else if (line.ends_with("// [end]")) {
      name.clear();
    } else {
      out[name] += line + "\n";
    }
  }
  return out;
}

Sections shown_in(const std::string& document, const std::string& file) {
  Sections out;
  std::string name;
  bool inside = false;
  for (const std::string& line : lines_of(document)) {
    const bool fence = line.starts_with("```");
    if (inside) {
      if (fence) {
        name.clear();
        inside = false;
      } else {
        out[name] += line + "\n";
      }
    } else if (fence && !name.empty()) {
      inside = true;
      out[name];
    } else if (const std::string found = between(line, "<!-- " + file + ": ", " -->");
               !found.empty()) {
      name = found;
    }
  }
  return out;
}

void expect_shown(const std::string& document, const std::string& file) {
  const Sections code = sections_of(file), shown = shown_in(document, file);
  EXPECT_FALSE(code.empty()) << file;
  for (const auto& [name, text] : code) {
    const auto found = shown.find(name);
    if (found == shown.end()) {
      ADD_FAILURE() << document << " does not show [" << name << "] of " << file;
    } else {
      EXPECT_EQ(found->second, text) << document << " shows another [" << name << "]";
    }
  }
}

void expect_text(const std::string& document, const std::string& file, const std::string& name,
                 const std::string& text) {
  const Sections shown = shown_in(document, file);
  const auto found = shown.find(name);
  if (found == shown.end()) {
    ADD_FAILURE() << document << " has no block '" << name << "'";
    return;
  }
  if (found->second == text) return;
  if (std::getenv("TESSERA_ACCEPT") == nullptr) {
    EXPECT_EQ(found->second, text)
        << document << " shows another '" << name
        << "'; TESSERA_ACCEPT=1 build/docs_test rewrites it, then read the words around it";
    return;
  }
  std::string out;
  bool inside = false, next = false;
  for (const std::string& line : lines_of(document)) {
    const bool fence = line.starts_with("```");
    if (inside && fence) {
      out += text;
      inside = false;
    }
    if (!inside) out += line + "\n";
    if (next && fence) {
      inside = true;
      next = false;
    }
    if (line == "<!-- " + file + ": " + name + " -->") next = true;
  }
  std::ofstream(repo_file(document)) << out;
}

}  // namespace tessera::test
