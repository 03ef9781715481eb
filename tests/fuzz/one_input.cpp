#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <typeinfo>

#include "fuzz/heap.h"
#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

Tally counts;  // of this process

[[noreturn]] void finding(std::string_view what, std::string_view message) {
  std::cerr << "FINDING: " << what << ": " << message << std::endl;
  std::abort();
}

}  // namespace

const Tally& tally() { return counts; }

}  // namespace tessera::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera;
  using namespace tessera::fuzz;
  const HeapBound heap(kTarget.heap_bytes +
                       kTarget.heap_bytes_per_byte * static_cast<std::int64_t>(size));
  try {
    kTarget.run({reinterpret_cast<const char*>(data), size});
    ++counts.accepted;
  } catch (const Error& error) {
    if (error.fault() == Fault::Internal) finding("a broken promise", error.what());
    if (*error.what() == '\0') finding("a refusal", "says nothing");
    ++counts.refused;
  } catch (const std::exception& error) {
    finding(typeid(error).name(), error.what());
  } catch (...) {
    finding("an exception", "of an unknown type");
  }
  counts.peak_heap_bytes = std::max(counts.peak_heap_bytes, heap.peak());
  return 0;
}
