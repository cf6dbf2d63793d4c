import KeyhaulKit
import SystemPackage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A file that a command writes, either completely or not at all.
enum OutputFile {
  /// Writes a temporary file beside the target, syncs it and renames it. Also deletes temporary files of killed runs.
  ///
  /// Only the owner can read the file, because it may contain account names.
  static func write(_ bytes: [UInt8], to path: String) throws(CommandError) {
    try write(to: path) { (write) throws(CommandError) in try bytes.withRawBytes(write) }
  }

  /// Writes borrowed bytes without copying them, because they may be a secret.
  static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws(CommandError) {
    try write(to: path) { (write) throws(CommandError) in try write(bytes) }
  }

  /// Writes bytes that arrive in chunks. If `body` throws or a signal arrives, no file is left.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - beforeRenaming: A further step after the bytes are on disk. If it throws, no file is left.
  ///   - body: Passes each chunk to `write`.
  static func write(
    to path: String, beforeRenaming: () throws(CommandError) -> Void = { () throws(CommandError) in },
    _ body: (_ write: (UnsafeRawBufferPointer) throws(CommandError) -> Void) throws(CommandError) -> Void
  ) throws(CommandError) {
    try requireRegularFile(path)
    guard !path.hasSuffix("/"), let destination = DestinationPath(path) else { throw writeError(path, .isDirectory) }
    _ = try FileReplacement(destination, system).write(
      explaining: { (refusal) -> CommandError in
        switch refusal {
        case .system(let reason): writeError(path, reason)
        case .occupied: writeError(path, .fileExists)
        }
      },
      check: { (_) throws(CommandError) in try beforeRenaming() },
      fill: { (file) throws(CommandError) in
        var byteCount: Int64 = 0
        try body { (bytes) throws(CommandError) in
          try Interruption.check()
          byteCount += Int64(bytes.count)
          do throws(Errno) {
            try system.writeAll(bytes, to: file)
          } catch {
            throw writeError(path, error, needs: byteCount)
          }
        }
        try Interruption.check()
        return byteCount
      })
  }

  private static let system = FileSystem.real

  /// Rejects a path that exists but is not a regular file, because renaming would replace a link, pipe or device
  /// instead of writing to it.
  static func requireRegularFile(_ path: String) throws(CommandError) {
    let (why, advice): (String, String)
    switch (try? system.status(of: path))?.kind {
    case nil, .file: return
    case .link:
      (why, advice) = ("it is a link, and the new file would replace it", "the path of the link's target")
    case .directory: (why, advice) = ("it is a folder", "a file name in this folder after -o")
    case .pipe: (why, advice) = ("it is a pipe", "-o - for standard output, redirected with > \(path)")
    case .other: (why, advice) = ("it is a device", "-o - for standard output")
    }
    throw CommandError(.failed, "could not write \(path)", why: why, try: advice)
  }

  /// Returns the status of the file at a path, or of the target of a link; `nil` if there is none.
  static func status(at path: String) -> FileStatus? { try? system.status(of: path, followsLink: true) }

  /// Rejects an output that is one of the inputs or inside one, even under another name.
  ///
  /// - Parameters:
  ///   - output: The path to write.
  ///   - inputs: The paths that are read.
  ///   - flag: The flag with which the user named the output.
  static func check(
    _ output: String, differsFrom inputs: [String], after flag: String = "-o"
  ) throws(CommandError) {
    let existingStatus = status(at: output)
    for input in inputs {
      let isSameFile = existingStatus.map { status(at: input)?.isSame(as: $0) == true } ?? false
      if isSameFile || input == output || (existingStatus != nil && isPath(output, inside: input)) {
        throw .usage(
          "\(output) is the input", why: "writing it would destroy the input", try: "another name after \(flag)")
      }
    }
    for input in inputs where isPath(output, inside: input) {
      throw .usage(
        "\(output) is inside the input", why: "it would become a part of \(input)", try: "another path after \(flag)")
    }
  }

  /// Returns whether a path is inside a directory, with links resolved.
  private static func isPath(_ path: String, inside directory: String) -> Bool {
    guard system.isDirectory(directory) else { return false }
    let parent = URL(filePath: path).deletingLastPathComponent().resolvingSymlinksInPath().standardizedFileURL.path
    let ancestor = URL(filePath: directory).resolvingSymlinksInPath().standardizedFileURL.path
    return parent == ancestor || parent.hasPrefix(ancestor + "/")
  }

  /// - Parameter byteCount: The smallest possible size of the file, in bytes; `nil` if unknown.
  private static func writeError(_ path: String, _ error: Errno, needs byteCount: Int64? = nil) -> CommandError {
    let needed = error.isDiskFull ? byteCount.map { " (needs at least \(HumanReadable.bytes($0)))" } ?? "" : ""
    return CommandError(
      .failed, "could not write \(path)", why: error.reason + needed,
      try: error.isDiskFull ? "free space and run it again; no partial file was left" : "another name after -o",
      of: error)
  }
}

extension Session {
  /// The style of results in a file: without colors, and with complete names.
  var fileStyle: TextStyle {
    var style = resultStyle
    (style.usesColor, style.cutsText) = (false, false)
    return style
  }

  /// Writes borrowed bytes without copying them, to a file, or to standard output for "-" and `nil`.
  func write(_ bytes: UnsafeRawBufferPointer, to path: String?) throws(CommandError) {
    try write(to: path) { (write) throws(CommandError) in try write(bytes) }
  }

  /// Writes a result that is produced piece by piece. `body` passes each chunk to `write`.
  func write(
    to path: String?,
    _ body: (_ write: (UnsafeRawBufferPointer) throws(CommandError) -> Void) throws(CommandError) -> Void
  ) throws(CommandError) {
    guard let path, path != "-" else { return try body(writeChunk) }
    try OutputFile.write(to: path, body)
  }

  /// Writes a result like `write(to:_:)`, but prints each chunk immediately, so that a reader of standard output
  /// always has complete rows.
  func writeImmediately(
    to path: String?,
    _ body: (_ write: (UnsafeRawBufferPointer) throws(CommandError) -> Void) throws(CommandError) -> Void
  ) throws(CommandError) {
    guard let path, path != "-" else { return try body(printImmediately) }
    try OutputFile.write(to: path, body)
  }

  /// Prints a chunk of a result, without waiting for a full buffer.
  func printImmediately(_ bytes: UnsafeRawBufferPointer) throws(CommandError) {
    try writeRaw(bytes)
    try flush()
  }

  /// Rejects writing a result to a terminal if a user cannot read it there.
  ///
  /// - Parameters:
  ///   - what: A noun phrase for the message: "a tar".
  ///   - why: The reason why a user cannot read the result.
  func rejectTerminal(for what: String, why: String = "it is binary") throws(CommandError) {
    guard resultIsOnTerminal else { return }
    throw .usage("\(what) is not shown on a terminal", why: why, try: "-o FILE, or a pipe")
  }
}
