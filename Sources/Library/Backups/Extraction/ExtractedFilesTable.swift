import Basics
import KeychainFormats

/// The manifest of files that were written, as a table (RFC 4180).
package enum ExtractedFilesTable {
  /// What it is called beside the manifest.
  package static let name = ExtractedFiles.tableName

  private static let columns = [
    "path", "size", "sha256", "protection_class", "domain", "modified", "relative_path", "kind", "mode", "digest",
    "left_out", "fault", "reason",
  ]

  /// Lends the table in portions, made of a finished manifest.
  package static func forEachPortion(
    ofManifest path: String, _ body: ([UInt8]) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    var lines = CSV.line(columns)
    try ExtractedFiles.forEachLine(ofManifest: path) { (line) throws(BackupArchiveError) in
      lines += CSV.line(columns.map { text(line[$0]) })
      guard lines.utf8.count > 64 << 10 else { return }
      try body(Array(lines.utf8))
      lines = ""
    }
    try body(Array(lines.utf8))
  }

  private static func text(_ value: JSONValue?) -> String {
    value?.stringValue ?? value?.integerValue.map { String($0) } ?? ""
  }
}
