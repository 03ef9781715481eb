#include "tessera/apps/run_words.h"

#include <filesystem>
#include <system_error>

#include "tessera/base/text.h"

namespace tessera {

void find_doubles(const std::vector<std::string>& runs, Problems& problems) {
  std::error_code unknown;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (runs[i] == runs[j])
        return problems.add(text("'", runs[i], "' is given twice; give each run once"));
      if (std::filesystem::equivalent(runs[i], runs[j], unknown))
        return problems.add(
            text("'", runs[j], "' and '", runs[i], "' are one folder; give each run once"));
    }
  }
}

}  // namespace tessera
