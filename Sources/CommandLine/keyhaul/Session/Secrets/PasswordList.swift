import KeyhaulKit
import SystemPackage

/// A list of password sources. Each line has a pattern, which selects backups, and a source:
///
///     family-*.backup  file:family.txt
///     *                command:pass show phone
///
/// The list itself contains no password. A source on several lines is read once and counts as one password.
struct PasswordList: Sendable {
  /// The maximum size of a list, in bytes.
  static let maximumByteCount = 1_048_576
  /// The maximum number of lines with a source.
  static let maximumEntryCount = 1_000

  /// A line of the list.
  struct Entry: Equatable, Sendable {
    /// The line's number, from 1.
    let line: Int
    let pattern: String
    let source: SecretSource
  }

  private let passwords: [(entry: Entry, password: ReusablePassword)]

  /// Reads a list and all its passwords, so that an unreadable source is reported before any work begins.
  ///
  /// - Parameter path: The path of the list; `-` is standard input.
  /// - Throws: `.refused` if another user could change the list, because Keyhaul runs the commands in it.
  init(_ path: String, in session: Session) throws(CommandError) {
    let what = "the list of passwords"
    if path != "-" { try Self.rejectListChangeableByOthers(path, what: what) }
    let bytes = try InputFile.read(path, atMost: Self.maximumByteCount, what: what, in: session)
    let entries = try Self.entries(of: bytes, named: InputFile.name(path))
    var readSources: [(source: SecretSource, password: ReusablePassword)] = []
    passwords = try entries.map { (entry) throws(CommandError) in
      if let earlier = readSources.first(where: { $0.source == entry.source }) { return (entry, earlier.password) }
      let origin = "line \(entry.line) of \(InputFile.name(path))"
      let password = ReusablePassword(try session.password(from: entry.source, of: origin), from: origin)
      readSources.append((entry.source, password))
      return (entry, password)
    }
  }

  private static func rejectListChangeableByOthers(_ path: String, what: String) throws(CommandError) {
    let exposure: FileExposure?
    do throws(Errno) {
      exposure = try FileSystem.real.exposure(of: path)
    } catch {
      throw CommandError(
        error.isNotFound ? .notFound : .failed, "cannot read \(what)", why: "\(path): \(error.reason)",
        try: "check the path", of: error)
    }
    let (why, advice): (String, String)
    switch exposure {
    case nil: return
    case .writableFile(let file):
      why = "\(file) can be changed by other users, and contains commands that Keyhaul runs"
      advice = "chmod 600 \(ShellQuoting.quote(file))"
    case .writableFolder(let folder):
      why =
        "other users can write to the folder \(folder) and replace the list, which contains commands that Keyhaul runs"
      advice = "chmod go-w \(ShellQuoting.quote(folder))"
    case .otherOwner(let path):
      why = "\(path) belongs to another user, who can change the commands that Keyhaul runs"
      advice = "copy the list into a folder of your own"
    }
    throw CommandError(.refused, "refused to read \(what)", why: why, try: advice)
  }

  /// Returns the entries of a list.
  ///
  /// - Throws: `.usage` for a line without a source. The message does not repeat the line, which may be a password.
  static func entries(of bytes: [UInt8], named name: String) throws(CommandError) -> [Entry] {
    let bytes = bytes.dropFirst(UTF8Scalars.byteOrderMarkCount(of: bytes))
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw .usage("\(name) is not a list of passwords", why: "it is not UTF-8", try: "PATTERN file:PATH on each line")
    }
    var entries: [Entry] = []
    // Splits bytes, because CR LF is a single character of a string.
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (number, lineBytes) in zip(1..., lines) {
      let hasCarriageReturn = lineBytes.last == UInt8(ascii: "\r")
      let line = String(decoding: hasCarriageReturn ? lineBytes.dropLast() : lineBytes, as: UTF8.self)
      let isBlank = line.allSatisfy { $0 == " " || $0 == "\t" }
      if isBlank || line.hasPrefix("#") { continue }
      guard let entry = entry(line, number: number) else {
        throw .usage(
          "line \(number) of \(name) has no source",
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
    guard let match = line.firstMatch(of: /^(?<pattern>.*?)[ \t]+(?<kind>file|command):(?<source>.+)$/),
      !match.pattern.isEmpty
    else { return nil }
    let source = String(match.source)
    return Entry(
      line: number, pattern: String(match.pattern), source: match.kind == "file" ? .file(source) : .command(source))
  }

  /// Returns the passwords whose patterns match a backup, in the list's order and without duplicates.
  ///
  /// - Parameters:
  ///   - path: The backup's path, as the user typed it or as it was found.
  ///   - identifier: The identifier of the source device, as the backup states it; `nil` if it states none.
  func passwords(for path: String, of identifier: String?) -> [ReusablePassword] {
    var matching: [ReusablePassword] = []
    for (entry, password) in passwords where Self.matches(entry.pattern, path: path, identifier: identifier) {
      if !matching.contains(where: { $0 === password }) { matching.append(password) }
    }
    return matching
  }

  /// The number of keys that were derived from all passwords.
  var derivationCount: Int {
    var distinctPasswords: [ReusablePassword] = []
    for (_, password) in passwords where !distinctPasswords.contains(where: { $0 === password }) {
      distinctPasswords.append(password)
    }
    return distinctPasswords.reduce(0) { $0 + $1.keys.count }
  }

  /// Returns whether a pattern matches a backup's path, the last component of the path, or the identifier of its device
  /// (ignoring case). `*` matches any text, `?` one character.
  static func matches(_ pattern: String, path: String, identifier: String?) -> Bool {
    let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    let name = trimmed.split(separator: "/").last.map(String.init) ?? trimmed
    if matchesGlob(pattern, trimmed) || matchesGlob(pattern, name) { return true }
    return identifier.map { matchesGlob(pattern.lowercased(), $0.lowercased()) } ?? false
  }

  /// Returns whether a pattern matches a text. The number of steps is at most the product of their lengths, however many
  /// stars the pattern has.
  private static func matchesGlob(_ pattern: String, _ text: String) -> Bool {
    let (pattern, text) = (Array(pattern.unicodeScalars), Array(text.unicodeScalars))
    var (patternIndex, textIndex) = (0, 0)
    var star: (patternIndex: Int, textIndex: Int)?
    while textIndex < text.count {
      if patternIndex < pattern.count, pattern[patternIndex] == "*" {
        star = (patternIndex, textIndex)
        patternIndex += 1
      } else if patternIndex < pattern.count, pattern[patternIndex] == "?" || pattern[patternIndex] == text[textIndex] {
        patternIndex += 1
        textIndex += 1
      } else if let last = star {
        // Lets the last star match one more character.
        star = (last.patternIndex, last.textIndex + 1)
        patternIndex = last.patternIndex + 1
        textIndex = last.textIndex + 1
      } else {
        return false
      }
    }
    return pattern[patternIndex...].allSatisfy { $0 == "*" }
  }
}
