import KeyhaulKit
import SystemPackage

/// The file of `--resume`. Each answer is one line, with its question, in the form that `ndjson` prints. It is added as
/// soon as it is available.
///
/// A run that was ended goes on behind the last whole line. Of an earlier answer only its place is held, so that documents
/// of any size take no memory. One process writes to it at a time.
final class AnswerJournal: Sendable {
  /// The longest line that is read, in bytes: more than a plan for 100,000 items takes.
  static let maximumLineByteCount = 268_435_456

  private struct Place { let offset: Int64, byteCount: Int }

  /// A digest of the path stands for it, so that each takes the same room.
  private struct Key: Hashable, Sendable {
    private let words: [UInt64]

    init?(_ path: String) {
      guard let digest = try? Digest.sha256(Array(path.utf8)) else { return nil }
      words = stride(from: 0, to: 16, by: 8).map { start in
        digest[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
      }
    }
  }

  private let path: String
  private let lock: FileLock
  private let system = FileSystem.real
  private let places: [Key: Place]
  private let questionDigest: String

  /// Opens the file, or makes it for its owner alone.
  ///
  /// - Parameters:
  ///   - verb: Answers of other verbs, and those to other questions, are none to this one.
  ///   - asked: As `BackupAnswer` has it, for a backup whose password is available and for one whose is not.
  ///   - questionDigest: The digest of the question (`AnswerQuestion.digest`).
  /// - Throws: `.refused` for a file that holds something else: nothing is added to it. `.busy` where another run has it.
  init(_ path: String, verb: String, asked: Set<[String]>, questionDigest: String) throws(CommandFailure) {
    self.path = path
    self.questionDigest = questionDigest
    do throws(Errno) {
      let file = try system.openForAppending(path)
      let status = try system.status(of: file.raw)
      guard status.kind == .file else { throw .invalidArgument }
      guard let lock = try system.lock(file, .exclusive) else { throw .wouldBlock }
      self.lock = lock
    } catch {
      guard error != .wouldBlock else {
        throw CommandFailure(
          .busy, "\(path) is in use",
          why: "another run is adding results to it", try: "another file")
      }
      // As with other output files, another user may have created the link.
      guard error != .tooManySymbolicLinkLevels else {
        throw CommandFailure(
          .failed, "cannot continue with \(path)", why: "it is a link", try: "the path of the link's target")
      }
      throw CommandFailure(
        .failed, "cannot continue with \(path)",
        why: error == .invalidArgument ? "it is not a regular file" : error.reason,
        try: "another file after --resume", of: error)
    }
    var places: [Key: Place] = [:]
    var lines = AnswerLines(lock.file.raw, named: path)
    var missing: ArraySlice<UInt8> = []
    while let line = try lines.next() {
      guard let json = try? JSONValue(parsing: line.bytes), let answer = BackupAnswer(json) else {
        if line.offset == 0 {
          // A full disk may have cut the line after a few bytes. The missing bytes are added, so that the next run
          // recognizes the line.
          let isShort = lines.endsWithinLine && Self.start.starts(with: line.bytes)
          guard isShort || line.bytes.starts(with: Self.start) else { throw Self.foreign(path) }
          missing = Self.start.dropFirst(line.bytes.count)
        }
        // A run that was killed, or a full disk, left an incomplete line.
        continue
      }
      let isSameQuestion = AnswerQuestion(json[AnswerQuestion.member])?.digest == questionDigest
      guard answer.verb == verb, asked.contains(answer.asked), isSameQuestion, let key = Key(answer.path) else {
        continue
      }
      let isKept = answer.isAboutBackup && answer.facts.digest != nil
      places[key] = isKept ? Place(offset: line.offset, byteCount: line.bytes.count) : nil
    }
    self.places = places
    if lines.endsWithinLine { try write(missing + [UInt8(ascii: "\n")]) }
  }

  /// The first bytes of every line.
  private static let start = Array("{\"format\":\"\(BackupAnswer.format)\"".utf8)

  private static func foreign(_ path: String) -> CommandFailure {
    CommandFailure(
      .refused, "\(path) does not contain results",
      why: "its first line is not a result, so Keyhaul added nothing to the file", try: "another file after --resume")
  }

  /// Whether there is an answer about a path that may still hold.
  func mayKnow(_ path: String) -> Bool { Key(path).map { places[$0] != nil } ?? false }

  /// Returns the stored answer about a backup in its current state, and its question; `nil` if there is none.
  func answer(
    about path: String, asked: [String], digest: String
  ) -> (answer: BackupAnswer, question: AnswerQuestion)? {
    guard let place = Key(path).flatMap({ places[$0] }) else { return nil }
    var bytes = [UInt8](repeating: 0, count: place.byteCount)
    var filled = 0
    while filled < bytes.count {
      let count = bytes.withUnsafeMutableBytes { buffer in
        try? system.read(
          lock.file.raw, at: place.offset + Int64(filled),
          into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      }
      guard let count, count > 0 else { return nil }
      filled += count
    }
    guard let json = try? JSONValue(parsing: bytes), let answer = BackupAnswer(json), answer.path == path,
      let question = AnswerQuestion(json[AnswerQuestion.member]), question.digest == questionDigest,
      answer.asked == asked, answer.facts.digest == digest
    else { return nil }
    return (answer, question)
  }

  /// Adds an answer, in one piece.
  ///
  /// - Parameter question: The inputs that must match before the answer is used again; `nil` if it is never used again.
  func add(_ answer: BackupAnswer, _ question: AnswerQuestion?) throws(CommandFailure) {
    let member = question.map { [(AnswerQuestion.member, $0.json)] } ?? []
    guard case .object(let members) = answer.json else { return }
    try write(Array((JSONValue.object(members + member).compactText() + "\n").utf8))
  }

  private func write(_ bytes: [UInt8]) throws(CommandFailure) {
    do throws(Errno) {
      try system.writeAll(bytes, to: lock.file.raw)
    } catch {
      throw CommandFailure(
        .failed, "could not write \(path)",
        why: error.isDiskFull ? "\(error.reason) (needs \(HumanReadable.bytes(bytes.count)))" : error.reason,
        try: error.isDiskFull ? "free space and run the command again; it continues where it stopped" : nil, of: error)
    }
  }
}

/// The lines of a file, one after the other, each with its place.
private struct AnswerLines {
  private let file: FileDescriptor
  private let name: String
  private var waiting: [UInt8] = []
  private var offset: Int64 = 0
  private var isAtEnd = false
  /// Whether the last line has no end.
  private(set) var endsWithinLine = false

  init(_ file: FileDescriptor, named name: String) {
    self.file = file
    self.name = name
  }

  mutating func next() throws(CommandFailure) -> (offset: Int64, bytes: [UInt8])? {
    var searched = 0
    while true {
      if let end = waiting[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        let line = (offset, Array(waiting[..<end]))
        waiting.removeFirst(end + 1)
        offset += Int64(end + 1)
        return line
      }
      searched = waiting.count
      if isAtEnd {
        guard !waiting.isEmpty else { return nil }
        endsWithinLine = true
        defer { waiting = [] }
        return (offset, waiting)
      }
      guard waiting.count <= AnswerJournal.maximumLineByteCount else {
        throw CommandFailure(
          .refused, "refused to read \(name)",
          why: "it has a line of more than \(HumanReadable.bytes(AnswerJournal.maximumLineByteCount))",
          try: "another file after --resume")
      }
      try fill()
    }
  }

  private mutating func fill() throws(CommandFailure) {
    try Interruption.check()
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let place = offset + Int64(waiting.count)
    do throws(Errno) {
      let count = try buffer.withUnsafeMutableBytes { buffer in
        Result { () throws(Errno) in try FileSystem.real.read(file, at: place, into: buffer) }
      }.get()
      waiting += buffer[..<count]
      isAtEnd = count == 0
    } catch {
      throw CommandFailure(.failed, "cannot read \(name)", why: error.reason, try: "check the disk", of: error)
    }
  }
}
