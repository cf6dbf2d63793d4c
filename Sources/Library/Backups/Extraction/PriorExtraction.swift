import Basics
import KeychainFormats
import SystemPackage

/// The content of files from earlier runs, by file identifier.
///
/// A file is kept only if it still has this content.
struct PriorExtraction: Sendable {
  private var contents: [StoredPayloads.Identifier: ExtractedContent] = [:]

  /// Reads the manifest and the journals of earlier runs, and combines them in one file. From this file, a later run
  /// recognizes the folder even if this run is interrupted.
  init(in folder: ExtractionFolder, header: JSONValue) throws(Errno) {
    let system = folder.system
    try read(ExtractionFolder.manifestName, in: folder.root, header, system)
    try read(ExtractionFolder.priorJournalName, in: folder.staging, header, system)
    try read(ExtractionFolder.journalName, in: folder.staging, header, system)
    try save(in: folder, header: header)
  }

  /// The content of a file, or `nil` if no earlier run has written it.
  subscript(identifier: String) -> ExtractedContent? { StoredPayloads.Identifier(identifier).flatMap { contents[$0] } }

  private mutating func read(
    _ name: String, in directory: DirectoryHandle, _ header: JSONValue, _ system: FileSystem
  ) throws(Errno) {
    guard try system.status(of: name.systemName, in: directory.descriptor)?.kind == .file else { return }
    let file = try system.openForReading(name, in: directory.descriptor)
    var isFirst = true
    try JSONLines.forEach(in: file, system) { line in
      defer { isFirst = false }
      if isFirst { return line == header }
      if let identifier = (line["file_id"]?.stringValue).flatMap({ StoredPayloads.Identifier($0) }),
        let content = ExtractedContent(line)
      {
        contents[identifier] = content
      }
      return true
    }
  }

  private static let temporaryName = "known.tmp"
  /// The size at which lines are written.
  private static let chunkByteCount = 64 << 10

  private func save(in folder: ExtractionFolder, header: JSONValue) throws(Errno) {
    let system = folder.system
    let file = try system.createFile(Self.temporaryName, in: folder.staging.descriptor)
    let raw = file.raw
    var lines = Array((header.compactText() + "\n").utf8)
    var writtenByteCount: Int64 = 0
    func writeLines() throws(Errno) {
      try system.writeAll(lines, to: raw)
      writtenByteCount += Int64(lines.count)
      lines.removeAll(keepingCapacity: true)
    }
    for (name, content) in contents {
      let line = JSONValue.object([("file_id", .string(name.text))] + content.fields)
      lines += Array((line.compactText() + "\n").utf8)
      if lines.count >= Self.chunkByteCount { try writeLines() }
    }
    if !lines.isEmpty { try writeLines() }
    try system.finalize(file, expectedByteCount: writtenByteCount)
    try system.rename(Self.temporaryName, to: ExtractionFolder.priorJournalName, in: folder.staging.descriptor)
  }
}
