import KeyhaulKit
import SystemPackage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A report on its way into a file: whole under its name, or not there at all.
enum ReportFile {
  /// Writes as a backup is written: beside the target, synced, renamed, and clearing up what killed runs left there. The
  /// file is readable by its owner alone: it names accounts.
  static func write(_ bytes: [UInt8], to path: String) throws(CommandFailure) {
    try write(to: path) { (portion) throws(CommandFailure) in try bytes.withRawBytes(portion) }
  }

  /// The same for bytes that are lent: a secret, which is copied nowhere.
  static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws(CommandFailure) {
    try write(to: path) { (portion) throws(CommandFailure) in try portion(bytes) }
  }

  /// The same for bytes that come in portions, lent too; where `body` throws, or a signal asks to stop, no file is left.
  ///
  /// - Parameter beforeNaming: What has to succeed as well, done when the bytes are on the disk: where it throws, no file
  ///   is left.
  static func write(
    to path: String, beforeNaming: () throws(CommandFailure) -> Void = { () throws(CommandFailure) in },
    _ body: (_ portion: (UnsafeRawBufferPointer) throws(CommandFailure) -> Void) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    try place(path, beforeNaming: beforeNaming) { (file) throws(CommandFailure) in
      var byteCount: Int64 = 0
      try body { (bytes) throws(CommandFailure) in
        try Interruption.check()
        byteCount += Int64(bytes.count)
        do throws(Errno) { try system.writeAll(bytes, to: file) } catch { throw failure(path, error, needs: byteCount) }
      }
      try Interruption.check()
      return byteCount
    }
  }

  private static let system = FileSystem.real

  private static func place(
    _ path: String, beforeNaming: () throws(CommandFailure) -> Void = { () throws(CommandFailure) in },
    fill: (FileDescriptor) throws(CommandFailure) -> Int64
  ) throws(CommandFailure) {
    try requireRegularFile(path)
    guard !path.hasSuffix("/"), let place = DestinationPath(path) else { throw failure(path, .isDirectory) }
    _ = try FileReplacement(place, system).write(
      explaining: { refusal in
        switch refusal {
        case .system(let reason): failure(path, reason)
        case .occupied: failure(path, .fileExists)
        }
      },
      check: { (_) throws(CommandFailure) in try beforeNaming() }, fill: fill)
  }

  /// Refuses what is not a regular file: renaming over a link, a pipe or a device would take its place instead of writing to
  /// it.
  static func requireRegularFile(_ path: String) throws(CommandFailure) {
    let (fact, advice): (String, String)
    switch (try? system.status(of: path))?.kind {
    case nil, .file: return
    case .link:
      (fact, advice) = ("it is a link, and the new file would replace it", "the path of the link's target")
    case .directory: (fact, advice) = ("it is a folder", "a file name in this folder after -o")
    case .pipe: (fact, advice) = ("it is a pipe", "-o - for standard output, redirected with > \(path)")
    case .other: (fact, advice) = ("it is a device", "-o - for standard output")
    }
    throw CommandFailure(.failed, "could not write \(path)", why: fact, try: advice)
  }

  /// What stands at a path, or where a link there leads.
  static func standing(at path: String) -> FileStatus? { try? system.status(of: path, followsLink: true) }

  /// Refuses an output that is one of the inputs or lies in one, by whatever name.
  ///
  /// - Parameters:
  ///   - output: Where something is to be written.
  ///   - inputs: What is read.
  ///   - flag: What names the output.
  static func check(
    _ output: String, differsFrom inputs: [String], after flag: String = "-o"
  ) throws(CommandFailure) {
    let target = standing(at: output)
    for input in inputs {
      let isSame = target.map { target in standing(at: input)?.isSame(as: target) == true } ?? false
      if isSame || input == output || (target != nil && lies(output, in: input)) {
        throw .usage(
          "\(output) is the input", why: "writing it would destroy the input", try: "another name after \(flag)")
      }
    }
    for input in inputs where lies(output, in: input) {
      throw .usage(
        "\(output) is inside the input", why: "it would become a part of \(input)", try: "another path after \(flag)")
    }
  }

  /// Whether a path lies in a directory, by whatever names.
  private static func lies(_ path: String, in directory: String) -> Bool {
    guard system.isDirectory(directory) else { return false }
    let target = URL(filePath: path).deletingLastPathComponent().resolvingSymlinksInPath().standardizedFileURL.path
    let source = URL(filePath: directory).resolvingSymlinksInPath().standardizedFileURL.path
    return target == source || target.hasPrefix(source + "/")
  }

  /// - Parameter byteCount: The smallest possible size of the file, in bytes; `nil` if unknown.
  private static func failure(_ path: String, _ error: Errno, needs byteCount: Int64? = nil) -> CommandFailure {
    let needed = error.isDiskFull ? byteCount.map { " (needs at least \(HumanReadable.bytes($0)))" } ?? "" : ""
    return CommandFailure(
      .failed, "could not write \(path)", why: error.reason + needed,
      try: error.isDiskFull ? "free space and run it again; no partial file was left" : "another name after -o",
      of: error)
  }
}

extension Session {
  /// Puts a document where `-o` says: a file, or standard output for "-" and for no `-o` at all.
  func write(_ document: JSONValue, to path: String?) throws(CommandFailure) {
    try write(to: path) { (portion) throws(CommandFailure) in
      try (chosen?.rows(of: document) ?? document).forEachPortion(portion)
    }
  }

  /// The same for bytes that are lent.
  func write(_ bytes: UnsafeRawBufferPointer, to path: String?) throws(CommandFailure) {
    try write(to: path) { (portion) throws(CommandFailure) in try portion(bytes) }
  }

  /// The same for what is made while it is written; `body` gives each portion to the closure that it gets.
  func write(
    to path: String?,
    _ body: (_ portion: (UnsafeRawBufferPointer) throws(CommandFailure) -> Void) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    guard let path, path != "-" else {
      return try body(writePortion)
    }
    try ReportFile.write(to: path, body)
  }

  /// Refuses to show bytes on a terminal that are not meant for eyes.
  func refuseTerminal(for what: String, why: String = "it is binary") throws(CommandFailure) {
    guard resultIsOnTerminal else { return }
    throw .usage("\(what) is not shown on a terminal", why: why, try: "-o FILE, or a pipe")
  }
}
