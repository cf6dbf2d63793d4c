import CProgram
import KeyhaulKit

/// Which keyhaul this is, and what it runs on.
enum ProgramVersion {
  /// The one place of the number: packages and pages take it from here.
  static let number = "0.2.0"
  /// Who makes a page.
  static var signature: String { "keyhaul \(number)" }

  /// The commit that the program was built from; `nil` if the build was not told.
  static var commit: String? {
    let text = String(cString: keyhaul_build_commit())
    return text.isEmpty ? nil : text
  }

  /// The libraries that do what is not ours, with the versions that this process has; `nil` if one is not there.
  static var libraries: [(name: String, version: String?)] {
    [
      ("SQLite", SQLiteLibrary.version), ("OpenSSL", Digest.libraryVersion),
      ("libarchive", ContainerLibrary.version), ("utf8proc", DisplayWidth.libraryVersion),
    ]
  }

  /// Which keyhaul this is.
  static var line: String { signature + (commit.map { " (\($0))" } ?? "") }

  /// All of it, in two lines.
  static var lines: [String] {
    [line, libraries.map { "\($0.name) \($0.version ?? "not there")" }.joined(separator: ", ")]
  }

  /// `version/1`.
  static var json: JSONValue {
    [
      "format": "version/1", "version": .string(number), "commit": .text(commit),
      "libraries": .object(libraries.map { ($0.name, .text($0.version)) }),
    ]
  }
}
