#include "common/formats/foreign_file.hpp"

#include <array>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view begins;  ///< the first bytes
  std::string_view what;
  std::string_view hint;
};

constexpr std::string_view unpack = "unpack it and use a file that is in it";
constexpr std::string_view raw_file = "download the file itself ('raw')";

constexpr std::array magics{
    Magic{"PK\x03\x04"sv, "a zip archive", unpack},
    Magic{"PK\x05\x06"sv, "an empty zip archive", unpack},
    Magic{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive", unpack},
    Magic{"Rar!"sv, "a rar archive", unpack},
    Magic{"\x28\xb5\x2f\xfd"sv, "packed with zstd", "unpack it with 'zstd -d', or pack with gzip"},
    Magic{"\xfd"
          "7zXZ\0"sv,
          "packed with xz", "unpack it with 'xz -d', or pack with gzip"},
    Magic{"\x1f\x8b"sv, "packed with gzip twice", "unpack it once with 'gzip -d'"},
    Magic{"BZh"sv, "packed with bzip2", "unpack it with 'bzip2 -d', or pack with gzip"},
    Magic{"\x04\x22\x4d\x18"sv, "packed with lz4", "unpack it with 'lz4 -d', or pack with gzip"},
    Magic{"version https://git-lfs.github.com/spec/"sv, "a pointer of Git LFS, not the file",
          "get the file with 'git lfs pull'"},
    Magic{"<!doctype html"sv, "an HTML page", raw_file},
    Magic{"<html"sv, "an HTML page", raw_file},
    Magic{"<?xml"sv, "an XML text, as servers send with errors", raw_file},
    Magic{"\x80\x02"sv, "a pickle of Python", {}},
    Magic{"\x80\x03"sv, "a pickle of Python", {}},
    Magic{"\x80\x04"sv, "a pickle of Python", {}},
    Magic{"\x80\x05"sv, "a pickle of Python", {}},
    Magic{"\xff\xfe"sv, "text in UTF-16", {}},
    Magic{"\xfe\xff"sv, "text in UTF-16", {}},
    Magic{"PAR1"sv, "a Parquet table", "write it as CSV or JSON"},
    Magic{"\x89HDF"sv, "an HDF5 file", "write it as CSV or JSON"},
    Magic{"\x93NUMPY"sv, "an array of NumPy", "write it as CSV or JSON"},
    Magic{"\x7f"
          "ELF"sv,
          "a program",
          {}},
    Magic{"%PDF"sv, "a PDF document", {}},
    Magic{"\x89PNG"sv, "a picture", {}},
};

struct Extension {
  std::string_view ends;
  std::string_view what;
  std::string_view hint;  ///< {} is the file
};

constexpr std::string_view nsys_hint =
    "run 'nsys export --type sqlite {}' and use the result of that";
constexpr std::array extensions{
    Extension{".nsys-rep", "a report of Nsight Systems in its own format", nsys_hint},
    Extension{".qdrep", "a report of Nsight Systems in its own format", nsys_hint},
    Extension{".qdstrm", "a report of Nsight Systems in its own format, not yet converted",
              "run 'QdstrmImporter -i {}', then 'nsys export --type sqlite' on its result"},
    Extension{".ncu-rep", "a report of Nsight Compute in its own format",
              "run 'ncu --csv --page raw -i {}' and use what it prints"},
    Extension{".ncu-repz", "a report of Nsight Compute in its own format",
              "run 'ncu --csv --page raw -i {}' and use what it prints"},
    Extension{".xplane.pb", "a profile of JAX or TensorFlow",
              "record with 'nsys profile' and run 'nsys export --type sqlite' on the report"},
    Extension{".pftrace", "a trace of Perfetto in its own format", {}},
    Extension{".perfetto-trace", "a trace of Perfetto in its own format", {}},
};

// Byte 257 of a header block.
bool is_tar(std::string_view head) {
  constexpr std::size_t place = 257;
  return head.size() > place && head.substr(place).starts_with("ustar");
}

std::string hint_of(const Magic& magic, const std::filesystem::path& path, std::string_view head) {
  if (magic.what == "a pickle of Python")
    return "a memory snapshot of PyTorch has no kernels; record with torch.profiler and "
           "export_chrome_trace";
  if (magic.what == "text in UTF-16")
    return fmt::format("PowerShell's > writes it; run 'iconv -f UTF-16 -t UTF-8 {}'",
                       shell_word(path.string()));
  if (magic.begins.starts_with("PK") && head.find("/data.pkl") != std::string_view::npos)
    return "it is one of torch.save, with tensors; record with torch.profiler";
  return std::string(magic.hint);
}

}  // namespace

std::optional<ForeignFile> foreign_file(const std::filesystem::path& path, std::string_view head) {
  std::string name = lower_case(path.filename().string());
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  for (const Extension& extension : extensions) {
    if (name.ends_with(extension.ends))
      return ForeignFile{extension.what, fmt::format(fmt::runtime(extension.hint),
                                                     printable(shell_word(path.string())))};
  }
  if (is_tar(head)) return ForeignFile{"a tar archive", std::string(unpack)};
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  constexpr std::size_t longest_magic = 64;
  const std::string lower = lower_case(
      first == std::string_view::npos ? std::string_view() : head.substr(first, longest_magic));
  for (const Magic& magic : magics) {
    const bool page = magic.begins.starts_with('<');
    if (page ? lower.starts_with(magic.begins) : head.starts_with(magic.begins))
      return ForeignFile{magic.what, hint_of(magic, path, head)};
  }
  return std::nullopt;
}

void refuse_foreign_file(const std::filesystem::path& path, std::string_view head) {
  const auto found = foreign_file(path, head);
  if (!found) return;
  throw DataError(fmt::format("{}: is {}", printable(path.string()), found->what),
                  {.in = {}, .hint = found->hint});
}

}  // namespace rubato
