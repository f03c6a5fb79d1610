#pragma once
// Seeds of the corpus. A file is taken as it is, except for recipes (*.seed): texts that make what
// would be large, binary or changed by an editor. Recipes are lines of
//
//   # a comment                 text REST            REST as it stands
//   line REST                   REST and a line break
//   hex 1f 8b                   bytes
//   repeat N REST               REST N times
//   each N REST                 REST N times, every @ the number of the time
//   lines N REST                the same as N lines
//   file NAME                   another seed of the folder
//   varint N                    a number of protobuf
//   begin ... end               what is between, after its length as a varint; may nest
//   gzip                        everything so far, compressed
//   cut N                       without the last N bytes
//   set OFFSET 00 ff            bytes in place of others

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::fuzz {

struct Seed {
  std::string name;   ///< of the file
  std::string bytes;  ///< what a reader gets
  bool good = false;  ///< the name begins with good_: it must be accepted, others refused
};

/// The seeds of a folder by name.
/// @throws DataError for a name that begins with neither good_ nor bad_, or a wrong recipe
[[nodiscard]] std::vector<Seed> read_seeds(const std::filesystem::path& folder);

/// The bytes as one gzip member.
[[nodiscard]] std::string gzip(std::string_view bytes);

}  // namespace rubato::fuzz
