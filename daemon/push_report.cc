#include "daemon/push_report.h"

#include "absl/strings/str_cat.h"
#include "daemon/pkt_line.h"

namespace repotxn::daemon {
namespace {

std::string ReportLines(const PushReport& report) {
  std::string lines;
  AppendPkt(report.unpack_error.empty()
                ? "unpack ok\n"
                : absl::StrCat("unpack ", CleanLine(report.unpack_error), "\n"),
            &lines);
  for (const RefReport& ref : report.refs) {
    // The name is sent back as it came, the client looks it up; it holds no newline or blank that
    // could forge another line, or is cut at it.
    const std::string name = ref.name.substr(0, ref.name.find_first_of(std::string("\n\0 ", 3)));
    AppendPkt(ref.ok() ? absl::StrCat("ok ", name, "\n")
                       : absl::StrCat("ng ", name, " ", CleanLine(ref.refusal), "\n"),
              &lines);
  }
  AppendFlush(&lines);
  return lines;
}

}  // namespace

void PushReport::RefuseAll(absl::string_view why) {
  for (RefReport& ref : refs) {
    if (ref.ok()) ref.refusal = std::string(why.data(), why.size());
  }
}

bool PushReport::HasRefusal() const {
  for (const RefReport& ref : refs) {
    if (!ref.ok()) return true;
  }
  return false;
}

std::string EncodePushReport(const PushReport& report, const PushCapabilities& capabilities) {
  std::string out;
  if (!capabilities.side_band_64k) {
    return capabilities.wants_report() ? ReportLines(report) : out;
  }
  for (const RefReport& ref : report.refs) {
    if (!ref.detail.empty()) {
      AppendBand(Band::kProgress, absl::StrCat(CleanLine(ref.detail), "\n"), &out);
    }
  }
  if (capabilities.wants_report()) AppendBand(Band::kData, ReportLines(report), &out);
  AppendFlush(&out);
  return out;
}

std::string EncodeFatal(absl::string_view text) {
  std::string out;
  AppendBand(Band::kFatal, absl::StrCat(CleanLine(text), "\n"), &out);
  return out;
}

}  // namespace repotxn::daemon
