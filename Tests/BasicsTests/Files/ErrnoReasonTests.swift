import SystemPackage
import Testing

@testable import Basics

/// The texts are those of POSIX `strerror` in glibc and macOS.
@Suite("Reasons of system errors")
struct ErrnoReasonTests {
  @Test(
    "The reason of a system error is the system's text with a small first letter",
    arguments: [
      (Errno.noSuchFileOrDirectory, "no such file or directory"), (.permissionDenied, "permission denied"),
      (.noSpace, "no space left on device"), (.isDirectory, "is a directory"),
    ])
  func reason(error: Errno, text: String) { #expect(error.reason == text) }

  @Test("Missing files, full disks and shortages of resources are recognized")
  func kinds() {
    let all = [
      Errno.noSuchFileOrDirectory, .notDirectory, .noSpace, .diskQuotaExceeded, .tooManyOpenFiles, .noMemory, .ioError,
    ]
    #expect(all.map(\.isNotFound) == [true, true, false, false, false, false, false])
    #expect(all.map(\.isDiskFull) == [false, false, true, true, false, false, false])
    #expect(all.map(\.isResourceShortage) == [false, false, false, false, true, true, false])
  }
}
