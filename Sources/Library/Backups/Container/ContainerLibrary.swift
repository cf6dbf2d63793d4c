import Basics
import CArchive

/// libarchive, which is there or is not: on Linux it is opened when the first container is read or written.
package enum ContainerLibrary {
  /// The version that this process has; `nil` where the library is not there.
  package static var version: String? {
    let number = archive_version_number()
    return number == 0 ? nil : "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
  }

  /// Why it gave nothing to read with.
  static var readFailure: BackupArchiveError { missing ?? BackupArchiveError(.unreadable, noMemory) }
  /// Why it gave nothing to write with.
  static var writeFailure: WriteFailure { missing.map(WriteFailure.source) ?? .library(noMemory) }

  private static let noMemory = "out of memory"

  /// `nil` where it is there.
  private static var missing: BackupArchiveError? {
    keyhaul_archive_absence().map { BackupArchiveError(.libraryMissing, String(cString: $0)) }
  }
}
