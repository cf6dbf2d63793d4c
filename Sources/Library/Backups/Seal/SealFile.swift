package import Basics
import KeychainCrypto
import KeychainFormats

/// The content of `Keyhaul.seal`: the size and SHA-256 digest of each file in the backup, and a code that covers all
/// sizes, digests and paths.
///
/// ASCII text with these lines, each ended by a line feed:
///
///     keyhaul-seal 1 hmac-sha256
///     <64 hexadecimal digits, SHA-256 of the stored bytes> <size in bytes> <path in the backup>
///     …
///     <64 hexadecimal digits, the code over every byte before this line>
///
/// The files are sorted by path, compared as bytes. Digits are lower-case, and numbers have no leading zeros, so that a
/// backup has exactly one seal. `Manifest.plist` may occur twice: while a password is changed, the old and the new
/// manifest are valid.
///
/// `BackupSeal` compares a seal with the backup's files.
package struct SealFile: Sendable {
  /// The kinds of codes.
  package enum Form: String, Sendable, CaseIterable {
    /// HMAC-SHA-256 with a key that requires the password, so that every change is detected.
    case keyed = "hmac-sha256"
    /// SHA-256, which anyone can compute, so that only accidents are detected.
    case unkeyed = "sha256"
  }

  /// A file in a seal.
  package struct Entry: Sendable, Equatable {
    /// The path relative to the backup's directory.
    package let path: String
    package let byteCount: Int64
    /// The SHA-256 digest, 32 bytes.
    package let sha256: [UInt8]

    package init(path: String, byteCount: Int64, sha256: [UInt8]) {
      self.path = path
      self.byteCount = byteCount
      self.sha256 = sha256
    }

    /// Creates the entry of a file in memory.
    package init(_ path: String, _ bytes: [UInt8]) throws(KeyhaulError) {
      self.init(
        path: path, byteCount: Int64(bytes.count),
        sha256: try translatingErrors(in: path) { () throws(DataProtectionError) in try Digest.sha256(bytes) })
    }
  }

  package let form: Form
  /// The content of the seal file.
  package let bytes: [UInt8]
  /// The offset of each file's line, and at the end the offset of the code's line.
  private let lineStarts: [Int]

  /// The number of files.
  package var count: Int { lineStarts.count - 1 }
  /// The bytes that the code covers: the header and the lines of all files.
  package var coveredBytes: ArraySlice<UInt8> { bytes[..<lineStarts[count]] }
  /// The code, 32 bytes.
  package var code: [UInt8] { Self.digest(bytes[lineStarts[count]...].prefix(Self.digitCount)) ?? [] }

  private static let digitCount = 64
  private static let lineFeed = UInt8(ascii: "\n")
  private static let space = UInt8(ascii: " ")

  /// Parses a seal.
  ///
  /// - Throws: `.damaged` with the line, if it is not a valid seal.
  package init(parsing bytes: [UInt8]) throws(KeyhaulError) {
    guard let headerEnd = bytes.firstIndex(of: Self.lineFeed),
      let form = Form.allCases.first(where: { Self.header(of: $0).elementsEqual(bytes[...headerEnd]) })
    else { throw KeyhaulError(.damaged, "it does not begin like a seal of this version") }
    let lineStarts = try Self.lineStarts(bytes, after: headerEnd)
    guard let codeStart = lineStarts.last, bytes.count == codeStart + Self.digitCount + 1,
      Self.digest(bytes[codeStart...].dropLast()) != nil
    else { throw KeyhaulError(.damaged, "it does not end with its authentication code") }
    self.form = form
    self.bytes = bytes
    self.lineStarts = lineStarts
  }

  /// Returns the offset of each line after the header, and checks all but the last, which contains the code.
  private static func lineStarts(_ bytes: [UInt8], after headerEnd: Int) throws(KeyhaulError) -> [Int] {
    var lineStarts: [Int] = []
    var start = headerEnd + 1
    var previousLine: Line?
    while let end = bytes[start...].firstIndex(of: lineFeed) {
      lineStarts.append(start)
      if end == bytes.count - 1 { break }
      // The header is line 1.
      let lineNumber = lineStarts.count + 1
      guard let line = Line(bytes[start..<end]) else { throw malformed(line: lineNumber) }
      if let previousLine, !line.follows(previousLine) { throw malformed(line: lineNumber) }
      previousLine = line
      start = end + 1
    }
    return lineStarts
  }

  private static func malformed(line number: Int) -> KeyhaulError {
    KeyhaulError(
      .damaged, "line \(HumanReadable.grouped(Int64(number))) does not describe a file, or is in the wrong position")
  }

  /// The line of a file.
  fileprivate struct Line {
    let digits: ArraySlice<UInt8>
    let size: ArraySlice<UInt8>
    let path: ArraySlice<UInt8>

    init?(_ bytes: ArraySlice<UInt8>) {
      let fields = bytes.split(separator: space, maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3, SealFile.digest(fields[0]) != nil else { return nil }
      (digits, size, path) = (fields[0], fields[1], fields[2])
      guard let byteCount = Int64(String(decoding: size, as: UTF8.self)), byteCount >= 0,
        String(byteCount).utf8.elementsEqual(size)
      else { return nil }
      guard SealCoverage.includes(path) else { return nil }
    }

    /// Returns whether this line may follow the previous one. Only the manifest may have two lines, in the order of their
    /// digests.
    func follows(_ previousLine: Line) -> Bool {
      if previousLine.path.lexicographicallyPrecedes(path) { return true }
      guard path == previousLine.path, path.elementsEqual(MetadataFile.manifest.path.utf8) else { return false }
      return previousLine.digits.lexicographicallyPrecedes(digits)
    }

    var entry: Entry {
      Entry(
        path: String(decoding: path, as: UTF8.self), byteCount: Int64(String(decoding: size, as: UTF8.self)) ?? 0,
        sha256: SealFile.digest(digits) ?? [])
    }
  }

  /// Decodes 64 lower-case hexadecimal digits, or returns `nil` if they are invalid.
  private static func digest(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
    guard digits.count == digitCount else { return nil }
    var result: [UInt8] = []
    var highNibble: UInt8?
    for digit in digits {
      let value: UInt8
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
      default: return nil
      }
      if let highNibble { result.append(highNibble << 4 | value) }
      highNibble = highNibble == nil ? value : nil
    }
    return result
  }

  // MARK: Access

  /// The file in a line. The first file's line has the index 0.
  package subscript(index: Int) -> Entry {
    line(index)?.entry ?? Entry(path: "", byteCount: 0, sha256: [])
  }

  private func line(_ index: Int) -> Line? {
    guard lineStarts.indices.contains(index), index < count else { return nil }
    return Line(bytes[lineStarts[index]..<(lineStarts[index + 1] - 1)])
  }

  /// Returns the indices of a path's lines: none, one, or two for the manifest while a password is changed.
  package func lines(of path: some StringProtocol) -> Range<Int> {
    let pathBytes = Array(path.utf8)
    // A binary search for the first line whose path does not precede the given one.
    var (first, end) = (0, count)
    while first < end {
      let middle = first + (end - first) / 2
      guard let line = line(middle) else { return 0..<0 }
      if line.path.lexicographicallyPrecedes(pathBytes) { first = middle + 1 } else { end = middle }
    }
    while let line = line(end), line.path.elementsEqual(pathBytes) { end += 1 }
    return first..<end
  }

  /// Returns the entries of a path: none, one, or two as in `lines(of:)`.
  package func entries(at path: String) -> [Entry] { lines(of: path).map { self[$0] } }

  // MARK: Creation

  /// Creates a seal.
  ///
  /// - Parameter code: Computes the code of 32 bytes over the given bytes.
  package init(
    _ entries: [Entry], form: Form, code: ([UInt8]) throws(KeyhaulError) -> [UInt8]
  ) throws(KeyhaulError) {
    var bytes = Self.header(of: form)
    let sorted = entries.sorted {
      $0.path == $1.path
        ? $0.sha256.lexicographicallyPrecedes($1.sha256) : $0.path.utf8.lexicographicallyPrecedes($1.path.utf8)
    }
    for entry in sorted {
      bytes += Array("\(String(hexadecimal: entry.sha256)) \(entry.byteCount) \(entry.path)\n".utf8)
    }
    bytes += Array(String(hexadecimal: try code(bytes)).utf8) + [Self.lineFeed]
    try self.init(parsing: bytes)
  }

  private static func header(of form: Form) -> [UInt8] { Array("keyhaul-seal 1 \(form.rawValue)\n".utf8) }

  /// Returns the entries except those with the given paths.
  package func entries(without paths: Set<String>) -> [Entry] {
    (0..<count).map { self[$0] }.filter { !paths.contains($0.path) }
  }
}

/// The files of a backup that a seal includes: the files that Keyhaul reads. Other files in the backup's directory do
/// not affect the seal.
package enum SealCoverage {
  /// The property lists, both kinds of file lists, and SQLite's journals.
  private static let metadataPaths =
    ([MetadataFile.manifest, .status, .info, .database, .oldDatabase] + MetadataFile.journals)
    .map { Array($0.path.utf8) }

  /// Returns whether a metadata file or a payload of either layout has this path. A payload's path is `51a4616e…` or
  /// `51/51a4616e…`, with 40 hexadecimal digits.
  static func includes(_ path: ArraySlice<UInt8>) -> Bool {
    if metadataPaths.contains(where: { $0.elementsEqual(path) }) { return true }
    if isFileIdentifier(utf8: path) { return true }
    let identifier = path.dropFirst(3)
    return isFileIdentifier(utf8: identifier) && identifier.prefix(2) == path.prefix(2)
      && path[path.startIndex + 2] == UInt8(ascii: "/")
  }

  /// Returns whether a path is sealed in backups of a layout.
  package static func includes(_ path: String, in layout: BackupLayout) -> Bool {
    switch path {
    case MetadataFile.manifest.path, MetadataFile.status.path, MetadataFile.info.path, layout.listPart.path: return true
    default:
      if layout.journals.contains(where: { $0.path == path }) { return true }
      guard let name = path.split(separator: "/").last, isFileIdentifier(name) else { return false }
      return layout.storedPath(of: String(name)) == path
    }
  }
}
