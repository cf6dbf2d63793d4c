import BackupArchive
import CommandSession
import Foundation
import KeychainFormats
import KeychainRules

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A report on its way into a file: whole under its name, or not there at all.
enum ReportFile {
  /// Writes as a backup is written: beside the target, synced, renamed, and clearing up what killed runs left there. The
  /// file is readable by its owner alone: it names accounts.
  ///
  /// - Parameter beforeNaming: What has to succeed as well, done when the bytes are on the disk: where it throws, no file
  ///   is left.
  static func write(
    _ bytes: [UInt8], to path: String,
    beforeNaming: () throws(CommandFailure) -> Void = { () throws(CommandFailure) in }
  ) throws(CommandFailure) {
    try write(to: path, beforeNaming: beforeNaming) { (portion) throws(CommandFailure) in try portion(bytes) }
  }

  /// The same for bytes that are lent: a secret, which is copied nowhere.
  static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws(CommandFailure) {
    try requireRegularFile(path)
    func fill(_ descriptor: Int32) throws(CommandFailure) -> Int64 {
      try Interruption.check()
      do throws(SystemError) {
        try ByteStream.writeAll(bytes, to: descriptor)
      } catch {
        throw failure(path, error)
      }
      try Interruption.check()
      return Int64(bytes.count)
    }
    try BackupPlacement().placeFile(at: path, explaining: { failure(path, SystemError($0)) }, fill: fill)
  }

  /// The same for bytes that come in portions; where `body` throws, or a signal asks to stop, no file is left.
  static func write(
    to path: String, beforeNaming: () throws(CommandFailure) -> Void = { () throws(CommandFailure) in },
    _ body: (_ portion: ([UInt8]) throws(CommandFailure) -> Void) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    try requireRegularFile(path)
    func fill(_ descriptor: Int32) throws(CommandFailure) -> Int64 {
      var byteCount: Int64 = 0
      try body { (bytes) throws(CommandFailure) in
        try Interruption.check()
        do throws(SystemError) {
          try ByteStream.writeAll(bytes, to: descriptor)
        } catch {
          throw failure(path, error)
        }
        byteCount += Int64(bytes.count)
      }
      try Interruption.check()
      return byteCount
    }
    try BackupPlacement().placeFile(
      at: path, explaining: { failure(path, SystemError($0)) }, beforeNaming: beforeNaming, fill: fill)
  }

  /// Refuses what is no regular file: renaming over a link, a pipe or a device would take its place instead of writing to
  /// it.
  static func requireRegularFile(_ path: String) throws(CommandFailure) {
    var standing = stat()
    guard lstat(path, &standing) == 0 else { return }
    let (fact, advice): (String, String)
    switch standing.st_mode & S_IFMT {
    case S_IFREG: return
    case S_IFLNK:
      (fact, advice) = ("it is a link, and the file would take its place", "the name of the file that it points to")
    case S_IFDIR: (fact, advice) = ("it is a folder", "a name in it after -o")
    case S_IFIFO: (fact, advice) = ("it is a pipe", "-o - for standard output, and > \(path)")
    default: (fact, advice) = ("it is a device", "-o - for standard output")
    }
    throw CommandFailure(.failed, "could not write \(path)", why: fact, try: advice)
  }

  /// Refuses an output that is one of the inputs or lies in one, by whatever name.
  static func check(_ output: String, differsFrom inputs: [String]) throws(CommandFailure) {
    var target = stat()
    let exists = stat(output, &target) == 0
    for input in inputs {
      var source = stat()
      let isSame =
        exists && stat(input, &source) == 0 && source.st_dev == target.st_dev && source.st_ino == target.st_ino
      if isSame || input == output || (exists && lies(output, in: input)) {
        throw .usage(
          "\(output) is what is read", why: "writing it would destroy the input", try: "another name after -o")
      }
    }
    for input in inputs where lies(output, in: input) {
      throw .usage(
        "\(output) lies in what is read", why: "it would become a part of \(input)", try: "another place after -o")
    }
  }

  /// Whether a path lies in a folder, by whatever names.
  private static func lies(_ path: String, in folder: String) -> Bool {
    guard [.folder, .device].contains(Session.content(of: folder)) else { return false }
    let target = URL(filePath: path).deletingLastPathComponent().resolvingSymlinksInPath().standardizedFileURL.path
    let source = URL(filePath: folder).resolvingSymlinksInPath().standardizedFileURL.path
    return target == source || target.hasPrefix(source + "/")
  }

  private static func failure(_ path: String, _ error: SystemError) -> CommandFailure {
    CommandFailure(
      .failed, "could not write \(path)", why: error.reason,
      try: error.isDiskFull ? "free space and run it again; no partial file was left" : "another name after -o")
  }
}

extension Session {
  /// Puts a document where `-o` says: a file, or standard output for "-" and for no `-o` at all.
  func write(_ document: JSONValue, to path: String?) throws(CommandFailure) {
    var buffer = SensitiveBuffer()
    document.write(to: &buffer)
    try buffer.withBytes { (bytes) throws(CommandFailure) in try write(bytes, to: path) }
  }

  /// The same for bytes that are lent.
  func write(_ bytes: UnsafeRawBufferPointer, to path: String?) throws(CommandFailure) {
    guard let path, path != "-" else { return try writeRaw(bytes) }
    try ReportFile.write(bytes, to: path)
  }

  /// Before a report is written: it must not take the place of what is read, and a file that stands there only goes
  /// after a yes.
  ///
  /// - Parameter asks: Whether it will be written; a dry run looks and does not ask.
  func prepareOutput(_ output: String, inputs: [String?], asks: Bool = true) throws(CommandFailure) {
    try ReportFile.check(output, differsFrom: inputs.compactMap(\.self))
    try ReportFile.requireRegularFile(output)
    guard asks, access(output, F_OK) == 0 else { return }
    try confirm("Replace \(output)?", refusal: "replacing \(output)")
  }

  /// A device's folder and the files in it.
  func filesOfDevice(_ folder: String) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return [folder] + names.map { folder + "/" + $0 }
  }

  /// What is read where a device or an archive is named.
  func files(of argument: ResolvedArgument) -> [String] {
    switch argument {
    case .device(_, let folder): filesOfDevice(folder)
    case .archive(let path): [path]
    case .standardInput: []
    }
  }

  /// Refuses to show bytes on a terminal that are not meant for eyes.
  func refuseTerminal(for what: String) throws(CommandFailure) {
    guard resultIsOnTerminal else { return }
    throw .usage("\(what) is not shown on a terminal", why: "it is binary", try: "-o FILE, or a pipe")
  }
}
