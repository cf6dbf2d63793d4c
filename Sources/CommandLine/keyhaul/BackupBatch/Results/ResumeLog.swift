import KeyhaulKit
import SystemPackage

/// The file of `--resume`. Each result is one line: the object that `ndjson` prints, with one more member for the
/// condition under which the next run uses the result. A result is added to the file before it is printed.
///
/// The next run uses the results of complete lines and ignores an incomplete line. Only the locations of earlier results
/// are kept in memory, so documents may be large. Only one process uses the file at a time.
final class ResumeLog: Sendable {
  /// The maximum length of a line in bytes, more than a plan for 100,000 items needs. A longer result is not added, and a
  /// file with a longer line is refused.
  static let maximumLineByteCount = 268_435_456

  private struct Location { let offset: Int64, byteCount: Int }

  /// The first 16 bytes of the SHA-256 hash of a path, as two numbers. Unlike paths, all hashes have the same small size.
  private struct PathHash: Hashable, Sendable {
    private let numbers: [UInt64]

    init?(_ path: String) {
      guard let hash = try? Digest.sha256(Array(path.utf8)) else { return nil }
      numbers = stride(from: 0, to: 16, by: 8).map { start in
        hash[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
      }
    }
  }

  private let path: String
  private let lock: FileLock
  private let system = FileSystem.real
  private let locations: [PathHash: Location]
  private let inputsDigest: String
  private let maximumLineByteCount: Int

  /// Opens the file, or creates it so that only its owner can read it.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - verb: The name of the command. Results of other commands are ignored.
  ///   - parameters: The two accepted values of `BatchResult.parameters`: for a run with an available password, and for a
  ///     run without one. Results with other parameters are ignored.
  ///   - inputsDigest: The digest of the inputs (`ResumeCondition.digest`).
  ///   - maximumLineByteCount: The maximum length of a line, in bytes.
  /// - Throws: `.refused` for a file with other content or a longer line, which stays unchanged; `.busy` if another run
  ///   uses the file; `.failed` if the file cannot be opened or read, or if a missing line end cannot be written.
  init(
    _ path: String, verb: String, parameters: Set<[String]>, inputsDigest: String,
    maximumLineByteCount: Int = ResumeLog.maximumLineByteCount
  ) throws(CommandError) {
    self.path = path
    self.inputsDigest = inputsDigest
    self.maximumLineByteCount = maximumLineByteCount
    lock = try Self.lockFile(path)
    var lines = ResumeLogLines(lock.file.raw, named: path, maximumByteCount: maximumLineByteCount)
    var locations: [PathHash: Location] = [:]
    var missingStart: ArraySlice<UInt8> = []
    while let line = try lines.next() {
      guard let json = try? JSONValue(parsing: line.bytes), let result = BatchResult(json) else {
        // A killed run or a full disk may have left an incomplete line. If it is the first line, it must at least begin
        // like a result.
        if line.offset == 0 {
          missingStart = try Self.missingStart(of: line.bytes, isIncomplete: lines.endsWithinLine, path)
        }
        continue
      }
      let hasSameInputs = ResumeCondition(json[ResumeCondition.member])?.inputsDigest == inputsDigest
      let isForThisRun = result.verb == verb && parameters.contains(result.parameters) && hasSameInputs
      guard isForThisRun, let hash = PathHash(result.path) else { continue }
      // A later result replaces an earlier result of the same backup, even if the later one cannot be reused.
      let isReusable = result.dependsOnlyOnBackup && result.metadata.digest != nil
      locations[hash] = isReusable ? Location(offset: line.offset, byteCount: line.bytes.count) : nil
    }
    self.locations = locations
    if lines.endsWithinLine { try write(missingStart + [UInt8(ascii: "\n")]) }
  }

  /// Returns the bytes to append to a first line that was cut off, so that it begins with `lineStart`. With them, the next
  /// run accepts the file.
  ///
  /// - Returns: The bytes, or no bytes if the line's start is complete.
  /// - Throws: `.refused` if the line does not begin like a result.
  private static func missingStart(
    of line: [UInt8], isIncomplete: Bool, _ path: String
  ) throws(CommandError) -> ArraySlice<UInt8> {
    if line.starts(with: lineStart) { return [] }
    // A full disk may have cut the line after a few bytes.
    guard isIncomplete, lineStart.starts(with: line) else { throw notAResumeLog(path) }
    return lineStart.dropFirst(line.count)
  }

  /// Opens or creates the file, and locks it for this process.
  private static func lockFile(_ path: String) throws(CommandError) -> FileLock {
    let system = FileSystem.real
    do throws(Errno) {
      let file = try system.openForAppending(path)
      let status = try system.status(of: file.raw)
      guard status.kind == .file else { throw .invalidArgument }
      guard let lock = try system.lock(file, .exclusive) else { throw .wouldBlock }
      return lock
    } catch {
      guard error != .wouldBlock else {
        throw CommandError(
          .busy, "\(path) is in use",
          why: "another run is adding results to it", try: "another file")
      }
      // As with other output files, another user may have created the link.
      guard error != .tooManySymbolicLinkLevels else {
        throw CommandError(
          .failed, "cannot continue with \(path)", why: "it is a link", try: "the path of the link's target")
      }
      throw CommandError(
        .failed, "cannot continue with \(path)",
        why: error == .invalidArgument ? "it is not a regular file" : error.reason,
        try: "another file after --resume", of: error)
    }
  }

  /// The first bytes of every line.
  private static let lineStart = Array("{\"format\":\"\(BatchResult.format)\"".utf8)

  private static func notAResumeLog(_ path: String) -> CommandError {
    CommandError(
      .refused, "\(path) does not contain results",
      why: "its first line is not a result, so Keyhaul added nothing to the file", try: "another file after --resume")
  }

  /// Returns whether the file has a reusable result for a path. The backup may have changed since the result was added.
  func mayContain(_ path: String) -> Bool { PathHash(path).map { locations[$0] != nil } ?? false }

  /// Returns the stored result for a backup in its current state, and its condition.
  ///
  /// - Returns: `nil` if there is no result, if the backup or the inputs have changed, or if the file cannot be read.
  func result(
    for path: String, parameters: [String], backupDigest: String
  ) -> (result: BatchResult, condition: ResumeCondition)? {
    guard let location = PathHash(path).flatMap({ locations[$0] }), let line = bytes(at: location),
      let json = try? JSONValue(parsing: line), let result = BatchResult(json), result.path == path,
      let condition = ResumeCondition(json[ResumeCondition.member]), condition.inputsDigest == inputsDigest,
      result.parameters == parameters, result.metadata.digest == backupDigest
    else { return nil }
    return (result, condition)
  }

  /// Reads the bytes at a location; `nil` if the file cannot be read or has become shorter.
  private func bytes(at location: Location) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: location.byteCount)
    var readCount = 0
    while readCount < bytes.count {
      let count = bytes.withUnsafeMutableBytes { buffer in
        try? system.read(
          lock.file.raw, at: location.offset + Int64(readCount),
          into: UnsafeMutableRawBufferPointer(rebasing: buffer[readCount...]))
      }
      guard let count, count > 0 else { return nil }
      readCount += count
    }
    return bytes
  }

  /// Adds a result as one line. A line that is too long is left out, because the next run would refuse the file.
  ///
  /// - Parameters:
  ///   - result: The result to add.
  ///   - condition: The condition under which the next run uses the result; `nil` if it must not use the result.
  /// - Throws: `.failed` if the file cannot be written.
  func add(_ result: BatchResult, condition: ResumeCondition?) throws(CommandError) {
    guard case .object(var members) = result.json else { return }
    if let condition { members.append((ResumeCondition.member, condition.json)) }
    let line = JSONValue.object(members).compactText()
    guard line.utf8.count <= maximumLineByteCount else { return }
    try write(Array((line + "\n").utf8))
  }

  private func write(_ bytes: [UInt8]) throws(CommandError) {
    do throws(Errno) {
      try system.writeAll(bytes, to: lock.file.raw)
    } catch {
      throw CommandError(
        .failed, "could not write \(path)",
        why: error.isDiskFull ? "\(error.reason) (needs \(HumanReadable.bytes(bytes.count)))" : error.reason,
        try: error.isDiskFull ? "free space and run the command again; it continues where it stopped" : nil, of: error)
    }
  }
}
