#include "tessera/train/save_graphs.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "tessera/config/output_folder.h"
#include "tessera/files/file.h"
#include "tessera/plan/graph_dump.h"

namespace tessera {

namespace {

std::string padded(int number, int digits) {
  std::string out = text(number);
  while (static_cast<int>(out.size()) < digits) out.insert(0, "0");
  return out;
}

}  // namespace

decltype(CompileOptions::observe) save_graphs(std::string folder, std::string program, int rank) {
  const std::string path = in_folder(folder, text("rank_", rank));
  auto number = std::make_shared<int>(0);
  return [=](const std::string& of, const std::string& pass, const std::vector<PassGraph>& graphs,
             double) {
    if (of != program) return;
    ++*number;
    const bool placed = pass == "propagate";
    if (!placed && pass != "pack") return;
    std::error_code failure;
    std::filesystem::create_directories(path, failure);
    if (failure)
      fail(Fault::Resource, "cannot make the folder '", path, "': ", failure.message(),
           "; give a writable folder");
    const std::string serial = padded(*number, 4);
    const std::string name = placed ? text("step_parallel_begin_", serial, ".ir")
                                    : text(padded(*number, 2), "_execute_", serial, ".ir");
    write_atomically(in_folder(path, name),
                     placed ? strategies_text(*graphs[0].graph) : execution_text(graphs, rank));
  };
}

}  // namespace tessera
