import KeyhaulKit
import SystemPackage

/// A list of where passwords are: on each line a pattern, which means backups, and a source. It holds no password itself.
///
/// A source that stands on several lines is read once, and is one password.
struct PasswordList: Sendable {
  /// The most bytes of a list.
  static let maximumByteCount = 1_048_576
  /// The most lines of one that name a source.
  static let maximumEntryCount = 1_000

  /// A line of a list.
  struct Entry: Equatable, Sendable {
    /// The line's number, from 1.
    let line: Int
    let pattern: String
    let source: SecretSource
  }

  private let passwords: [(entry: Entry, password: SharedPassword)]

  /// Reads a list and every password that it names, so that what cannot be read is known before any work.
  ///
  /// - Parameter path: Of the list; `-` is standard input.
  /// - Throws: `.refused` if another user could change the list. That user could run commands and name files through
  ///   it.
  init(_ path: String, in session: Session) throws(CommandFailure) {
    let what = "the list of passwords"
    if path != "-" { try Self.checkThatOthersCannotChange(path, what: what) }
    let bytes = try InputFile.read(path, atMost: Self.maximumByteCount, what: what, in: session)
    let entries = try Self.entries(of: bytes, named: InputFile.name(path))
    var read: [(source: SecretSource, password: SharedPassword)] = []
    passwords = try entries.map { (entry) throws(CommandFailure) in
      if let known = read.first(where: { $0.source == entry.source }) { return (entry, known.password) }
      let place = "line \(entry.line) of \(InputFile.name(path))"
      let password = SharedPassword(try session.password(from: entry.source, of: place), from: place)
      read.append((entry.source, password))
      return (entry, password)
    }
  }

  private static func checkThatOthersCannotChange(_ path: String, what: String) throws(CommandFailure) {
    let exposure: FileExposure?
    do throws(Errno) {
      exposure = try FileSystem.real.exposure(of: path)
    } catch {
      throw CommandFailure(
        error.isNotFound ? .notFound : .failed, "cannot read \(what)", why: "\(path): \(error.reason)",
        try: "check the path", of: error)
    }
    let (why, advice): (String, String)
    switch exposure {
    case nil: return
    case .writableFile(let place):
      why = "\(place) can be changed by other users, and contains commands that Keyhaul runs"
      advice = "chmod 600 \(ShellQuoting.quote(place))"
    case .writableFolder(let place):
      why =
        "other users can write to the folder \(place) and replace the list, which contains commands that Keyhaul runs"
      advice = "chmod go-w \(ShellQuoting.quote(place))"
    case .otherOwner(let place):
      why = "\(place) belongs to another user, who can change the commands that Keyhaul runs"
      advice = "copy the list into a folder of your own"
    }
    throw CommandFailure(.refused, "refused to read \(what)", why: why, try: advice)
  }

  /// - Throws: `.usage` for a line without a source. The line is not repeated: it may be a password.
  static func entries(of bytes: [UInt8], named name: String) throws(CommandFailure) -> [Entry] {
    let bytes = bytes.dropFirst(UTF8Scalars.byteOrderMarkCount(of: bytes))
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw .usage("\(name) is not a list of passwords", why: "it is not UTF-8", try: "PATTERN file:PATH on each line")
    }
    var entries: [Entry] = []
    // By bytes: to a string, CR and LF are one character.
    for (index, ended) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let line = String(decoding: ended.last == UInt8(ascii: "\r") ? ended.dropLast() : ended, as: UTF8.self)
      guard !line.allSatisfy({ $0 == " " || $0 == "\t" }), !line.hasPrefix("#") else { continue }
      guard let entry = entry(line, number: index + 1) else {
        throw .usage(
          "line \(index + 1) of \(name) has no source",
          why: "the pattern and a space are followed by file:PATH or command:COMMAND, never by a password",
          try: "PATTERN file:PATH")
      }
      entries.append(entry)
    }
    guard entries.count <= maximumEntryCount else {
      throw .usage(
        "\(name) has \(HumanReadable.grouped(entries.count)) lines",
        why: "Keyhaul tries at most \(HumanReadable.grouped(maximumEntryCount)) passwords",
        try: "use one pattern for several backups")
    }
    return entries
  }

  private static func entry(_ line: String, number: Int) -> Entry? {
    guard let match = line.firstMatch(of: /^(.*?)[ \t]+(file|command):(.+)$/), !match.1.isEmpty else { return nil }
    let value = String(match.3)
    return Entry(line: number, pattern: String(match.1), source: match.2 == "file" ? .file(value) : .command(value))
  }

  /// The passwords of the patterns that mean a backup, in the list's order, none twice.
  ///
  /// - Parameters:
  ///   - path: As the user named the backup, or as it was found.
  ///   - identifier: Of the device that made it, as it claims.
  func passwords(for path: String, of identifier: String?) -> [SharedPassword] {
    var found: [SharedPassword] = []
    for (entry, password) in passwords where Self.means(entry.pattern, path: path, identifier: identifier) {
      if !found.contains(where: { $0 === password }) { found.append(password) }
    }
    return found
  }

  /// How many keys were derived from all of them.
  var derivationCount: Int {
    var seen: [SharedPassword] = []
    for (_, password) in passwords where !seen.contains(where: { $0 === password }) { seen.append(password) }
    return seen.reduce(0) { $0 + $1.keys.count }
  }

  /// Whether a pattern means a backup: by its whole path, by the last part of it, or by the identifier of its device, in
  /// capitals or not. `*` stands for any text, `?` for one character.
  static func means(_ pattern: String, path: String, identifier: String?) -> Bool {
    let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    let name = trimmed.split(separator: "/").last.map(String.init) ?? trimmed
    if matches(pattern, trimmed) || matches(pattern, name) { return true }
    return identifier.map { matches(pattern.lowercased(), $0.lowercased()) } ?? false
  }

  /// Takes no more steps than the pattern has characters times the text, however many stars there are.
  private static func matches(_ pattern: String, _ text: String) -> Bool {
    let (pattern, text) = (Array(pattern.unicodeScalars), Array(text.unicodeScalars))
    var (place, position) = (0, 0)
    var star: (place: Int, position: Int)?
    while position < text.count {
      if place < pattern.count, pattern[place] == "*" {
        star = (place, position)
        place += 1
      } else if place < pattern.count, pattern[place] == "?" || pattern[place] == text[position] {
        place += 1
        position += 1
      } else if let last = star {
        // The last star stands for one character more.
        star = (last.place, last.position + 1)
        place = last.place + 1
        position = last.position + 1
      } else {
        return false
      }
    }
    return pattern[place...].allSatisfy { $0 == "*" }
  }
}
