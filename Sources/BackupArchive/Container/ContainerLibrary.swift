import CArchive

/// libarchive, which is there or is not: on Linux it is opened when the first container is read or written.
package enum ContainerLibrary {
  /// The version that this process has; `nil` where the library is not there.
  package static var version: String? {
    let number = archive_version_number()
    return number == 0 ? nil : "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
  }

  /// Why it gave nothing to read or write with.
  static var failure: BackupArchiveError { failure(absence: keyhaul_archive_absence().map { String(cString: $0) }) }

  /// - Parameter absence: Why the library is not there, in the system's words; `nil` where it is.
  static func failure(absence: String?) -> BackupArchiveError {
    absence.map { BackupArchiveError(.libraryMissing, $0) } ?? BackupArchiveError(.unreadable, "out of memory")
  }
}
