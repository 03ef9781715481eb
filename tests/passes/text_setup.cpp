#include "text_setup.h"

#include <sstream>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

OpPin read_op(std::istream& words) {
  OpPin out;
  words >> out.op;
  std::vector<Sharding>* into = nullptr;
  for (std::string word; words >> word;) {
    if (word == "ins") {
      into = &out.ins;
    } else if (word == "outs") {
      into = &out.outs;
    } else {
      into->push_back(parse_sharding(word));
    }
  }
  return out;
}

void read_line(TextSetup& to, const std::string& line) {
  std::istringstream words(line);
  std::string key, word;
  words >> key;
  const std::string rest = line.size() > key.size() ? line.substr(key.size() + 1) : "";
  Strategy& strategy = to.strategy;
  const auto all = [&](std::vector<std::string>& into) {
    while (words >> word) into.push_back(word);
  };
  if (key == "mesh") {
    strategy.mesh = parse_mesh(rest);
  } else if (key == "machine") {
    to.machine = parse_machine(rest);
  } else if (key == "batch") {
    strategy.batch = parse_sharding(rest).dims;
  } else if (key == "major") {
    all(strategy.major);
  } else if (key == "pin") {
    words >> key >> word;
    strategy.pins.push_back({key, parse_sharding(word)});
  } else if (key == "op") {
    strategy.ops.push_back(read_op(words));
  } else if (key == "moments") {
    all(strategy.shard_moments);
  } else if (key == "gradients") {
    all(strategy.shard_gradients);
  } else if (key == "parameters") {
    all(strategy.shard_parameters);
  } else if (key == "cut") {
    all(strategy.cut_outputs);
  } else if (key == "pipeline") {
    words >> strategy.pipeline.schedule >> strategy.pipeline.stages >> strategy.pipeline.chunks;
  } else if (key == "chunk") {
    int chunk = 0;
    words >> word >> chunk;
    strategy.pipeline.pins.push_back({word, chunk});
  } else if (key == "moves") {
    to.moves = rest == "dim_by_dim" ? MoveStyle::DimByDim : MoveStyle::DimByDimAllToAll;
  } else if (key == "show") {
    while (words >> word) to.show.insert(word);
  } else {
    fail(Fault::Usage, "a text test has no line '", key, "'");
  }
}

}  // namespace

TextSetup read_setup(const std::string& content) {
  std::istringstream lines(content);
  std::string line;
  TextSetup out;
  out.strategy.batch = {{std::string(kMicrobatchAxis)}};
  std::getline(lines, line);
  out.pass = line.substr(2, line.find(':') - 2);
  while (std::getline(lines, line) && line.starts_with("# ")) read_line(out, line.substr(2));
  return out;
}

}  // namespace tessera
