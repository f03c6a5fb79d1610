#pragma once
// Checks the text people see when something is wrong.

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace rubato {

/// `call` must throw an ErrorType whose report holds `what` and, if given, `hint`.
template <class ErrorType, class Call>
void expect_error(Call call, std::string_view what, std::string_view hint = {}) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << what;
  } catch (const ErrorType& error) {
    const std::string report = error.report();
    EXPECT_NE(report.find(what), std::string::npos)
        << "expected: " << what << "\nfound: " << report;
    EXPECT_NE(report.find(hint), std::string::npos)
        << "expected hint: " << hint << "\nfound: " << report;
  }
}

}  // namespace rubato
