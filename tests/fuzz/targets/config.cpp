/// The configuration of a run: from TOML, and as checkpoints record it.

#include "tessera/config/config.h"
#include "fuzz/target.h"
#include "tessera/apps/flags.h"

namespace tessera::fuzz {

namespace {

RunConfig configured(std::string_view toml) {
  Problems problems;
  std::vector<std::string> notices;
  const std::vector<Setting> settings = parse_config(toml, "run.toml", problems);
  const RunConfig config = configure(settings, {}, problems, notices);
  problems.raise();
  return config;
}

void run(std::string_view input) {
  RunConfig config = configured(input);
  then([&] {
    const std::string printed = to_toml(config);
    check(to_toml(configured(printed)) == printed, "reads back as another run: ", printed);
    const auto record = record_of(config);
    check(record_of(config_of(record, "record")) == record, "is recorded as another: ", printed);
  });
  complete(config);
  Problems problems;
  find_problems(config, problems);
  problems.raise();
}

}  // namespace

const Target kTarget = {4 << 20, 2048, run};

}  // namespace tessera::fuzz
