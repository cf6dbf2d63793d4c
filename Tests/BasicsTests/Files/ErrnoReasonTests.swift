import SystemPackage
import Testing

@testable import Basics

/// The texts are those of POSIX `strerror` in glibc and macOS.
@Suite("Reasons of system errors")
struct ErrnoReasonTests {
  @Test(
    "The reason of a system error can be a part of a sentence",
    arguments: [
      (Errno.noSuchFileOrDirectory, "no such file or directory"), (.permissionDenied, "permission denied"),
      (.noSpace, "no space left on device"), (.isDirectory, "is a directory"),
    ])
  func sentence(reason: Errno, text: String) { #expect(reason.reason == text) }

  @Test("Missing files, full disks and shortages are recognized")
  func kinds() {
    let all = [Errno.noSuchFileOrDirectory, .notDirectory, .noSpace, .diskQuotaExceeded, .ioError, .fileTooLarge]
    #expect(all.map(\.isNotFound) == [true, true, false, false, false, false])
    #expect(all.map(\.isDiskFull) == [false, false, true, true, false, false])
  }
}
