import CProgram
import KeyhaulKit

/// The version of this program and its libraries.
enum ProgramVersion {
  /// The version number. Packages and pages read it from here.
  static let number = "0.2.0"
  /// The generator name in HTML pages.
  static var signature: String { "keyhaul \(number)" }

  /// The commit of the build; `nil` if it is not known.
  static var commit: String? {
    let text = String(cString: keyhaul_build_commit())
    return text.isEmpty ? nil : text
  }

  /// The third-party libraries with the versions that this process uses; `nil` if a library is missing.
  static var libraries: [(name: String, version: String?)] {
    [
      ("SQLite", SQLiteLibrary.version), ("OpenSSL", Digest.libraryVersion),
      ("libarchive", ContainerLibrary.version), ("utf8proc", DisplayWidth.libraryVersion),
    ]
  }

  /// The version and commit, in one line.
  static var line: String { signature + (commit.map { " (\($0))" } ?? "") }

  /// The version line, and a line with the libraries.
  static var lines: [String] {
    [line, libraries.map { "\($0.name) \($0.version ?? "not there")" }.joined(separator: ", ")]
  }

  /// The document `version/1`.
  static var json: JSONValue {
    [
      "format": "version/1", "version": .string(number), "commit": .text(commit),
      "libraries": .object(libraries.map { ($0.name, .text($0.version)) }),
    ]
  }
}
