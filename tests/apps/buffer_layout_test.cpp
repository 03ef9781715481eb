/// `tessera plan --minimalloc`: buffers of a file.

#include <gtest/gtest.h>

#include <algorithm>

#include "apps/command_test.h"

namespace tessera {
namespace {

const std::string kFive =
    "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

TEST(BufferLayout, PrintsTheFileWithOffsets) {
  const Folder folder;
  folder.write("five.csv", kFive);
  const Ran capped = run(words(folder.expand("plan --minimalloc @/five.csv --memory-cap 12")));
  EXPECT_EQ(capped.code, 0) << capped.err;
  EXPECT_EQ(capped.out.substr(0, capped.out.find('\n')), "id,lower,upper,size,offset");
  EXPECT_NE(capped.err.find("height 12 of 12, fullest moment 12 bytes"), std::string::npos)
      << capped.err;
  const Ran smallest = run(words(folder.expand("plan --minimalloc @/five.csv")));
  EXPECT_EQ(smallest.code, 0) << smallest.err;
  EXPECT_EQ(smallest.err, "height 12, no layout is below 12, fullest moment 12 bytes\n");
  EXPECT_EQ(std::count(smallest.out.begin(), smallest.out.end(), '\n'), 6);
}

TEST(BufferLayout, Errors) {
  const Folder folder;
  folder.write("five.csv", kFive);
  folder.write("bad.csv", "id,lower,upper,size\na,0,3,4\na,4,5,4\n");
  folder.write("aligned.csv", "id,lower,upper,size,alignment\na,0,3,1,4\nb,0,3,1,4\n");
  struct Row {
    std::string flags, message;
    Fault fault;
  };
  for (const Row& row : {
           Row{"--minimalloc @/five.csv --memory-cap 11",
               "memory-cap is 11 bytes, but the buffers of the fullest moment take 12: no layout "
               "is that small; raise the cap to at least 12",
               Fault::Usage},
           Row{"--minimalloc @/aligned.csv --memory-cap 4",
               "memory-cap is 4 bytes: no layout is that small (proved), although the fullest "
               "moment takes 2",
               Fault::Usage},
           Row{"--minimalloc @/aligned.csv --memory-cap 4",
               "the smallest layout found takes 5 bytes, and none is below 5; raise the cap",
               Fault::Usage},
           Row{"--minimalloc @/five.csv --layers 3", "--layers does nothing with --minimalloc",
               Fault::Usage},
           Row{"--minimalloc @/five.csv --memory-cap much", "memory-cap is 'much'", Fault::Usage},
           Row{"--minimalloc @/bad.csv", "bad.csv', line 3 has the id 'a', as line 2 has",
               Fault::Data},
           Row{"--minimalloc @/none.csv", "none.csv", Fault::Data},
           Row{"--minimalloc=", "--minimalloc has an empty value, perhaps an unset variable",
               Fault::Usage},
       }) {
    SCOPED_TRACE(row.flags);
    const Ran ran = run(words(folder.expand("plan " + row.flags)));
    EXPECT_EQ(ran.code, static_cast<int>(row.fault)) << ran.err;
    EXPECT_NE(ran.err.find(row.message), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

}  // namespace
}  // namespace tessera
