import SystemPackage
import Testing

@testable import Basics

/// The sentences are those of POSIX `strerror`, as glibc and macOS have them.
@Suite("The system's reason for refusing a call")
struct ErrnoReasonTests {
  @Test(
    "is a part of a sentence",
    arguments: [
      (Errno.noSuchFileOrDirectory, "no such file or directory"), (.permissionDenied, "permission denied"),
      (.noSpace, "no space left on device"), (.isDirectory, "is a directory"),
    ])
  func sentence(reason: Errno, text: String) { #expect(reason.reason == text) }

  @Test("says what kind it is, where something hangs on that")
  func kinds() {
    let all = [Errno.noSuchFileOrDirectory, .notDirectory, .noSpace, .diskQuotaExceeded, .ioError, .fileTooLarge]
    #expect(all.map(\.isAbsence) == [true, true, false, false, false, false])
    #expect(all.map(\.isDiskFull) == [false, false, true, true, false, false])
  }
}
