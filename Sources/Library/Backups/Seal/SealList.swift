package import Basics
import KeychainCrypto
import KeychainFormats

/// What `Keyhaul.seal` holds: the size and the SHA-256 of every file that the backup is made of, and a code over the whole.
///
/// Text in ASCII, each line ended by a line feed, nothing besides:
///
///     keyhaul-seal 1 hmac-sha256
///     <64 hexadecimal digits, SHA-256 of the stored bytes> <size in bytes> <path in the backup>
///     …
///     <64 hexadecimal digits, the code over every byte before this line>
///
/// The files stand in the order of their paths, compared as bytes. Digits are lower-case and numbers have no zeros in front,
/// so that the same backup has one seal alone. `Manifest.plist` may stand there twice: while a password is being changed
/// the old and the new one are both right.
package struct SealList: Sendable {
  /// What the code over the list is, and so what the seal shows.
  package enum Form: String, Sendable, CaseIterable {
    /// HMAC-SHA-256 under a key that only who has the password can get: no change goes unseen.
    case keyed = "hmac-sha256"
    /// SHA-256, which everybody can make again: an accident is seen, an attack is not.
    case digests = "sha256"
  }

  /// One file.
  package struct Entry: Sendable, Equatable {
    /// Relative to the backup's directory.
    package let path: String
    package let byteCount: Int64
    /// 32 bytes.
    package let sha256: [UInt8]

    package init(path: String, byteCount: Int64, sha256: [UInt8]) {
      self.path = path
      self.byteCount = byteCount
      self.sha256 = sha256
    }

    /// The entry of a file whose bytes are available.
    package init(_ path: String, _ bytes: [UInt8]) throws(KeyhaulError) {
      self.init(
        path: path, byteCount: Int64(bytes.count),
        sha256: try explained(path) { () throws(DataProtectionError) in try Digest.sha256(bytes) })
    }
  }

  package let form: Form
  /// The whole file.
  package let bytes: [UInt8]
  /// Where each file's line begins; the last one is where the code stands.
  private let starts: [Int]

  /// How many files it lists.
  package var count: Int { starts.count - 1 }
  /// What the code is over.
  package var listed: ArraySlice<UInt8> { bytes[..<starts[count]] }
  /// 32 bytes.
  package var code: [UInt8] { Self.digest(bytes[starts[count]...].prefix(Self.digitCount)) ?? [] }

  private static let digitCount = 64
  private static let lineFeed = UInt8(ascii: "\n")
  private static let space = UInt8(ascii: " ")

  /// - Throws: `.damaged` for anything but a seal as it is written, with the line.
  package init(parsing bytes: [UInt8]) throws(KeyhaulError) {
    guard let end = bytes.firstIndex(of: Self.lineFeed),
      let form = Form.allCases.first(where: { Self.head(of: $0).elementsEqual(bytes[...end]) })
    else { throw KeyhaulError(.damaged, "it does not begin like a seal of this version") }
    var starts: [Int] = []
    var start = end + 1
    var last: Line?
    while let end = bytes[start...].firstIndex(of: Self.lineFeed) {
      starts.append(start)
      if end == bytes.count - 1 { break }
      guard let line = Line(bytes[start..<end]) else { throw Self.malformed(starts.count) }
      if let last, !line.follows(last) { throw Self.malformed(starts.count) }
      last = line
      start = end + 1
    }
    guard let codeStart = starts.last, bytes.count == codeStart + Self.digitCount + 1,
      Self.digest(bytes[codeStart...].dropLast()) != nil
    else { throw KeyhaulError(.damaged, "it does not end with its authentication code") }
    self.form = form
    self.bytes = bytes
    self.starts = starts
  }

  private static func malformed(_ line: Int) -> KeyhaulError {
    KeyhaulError(
      .damaged,
      "line \(HumanReadable.grouped(Int64(line + 1))) does not describe a file, or is in the wrong position")
  }

  /// A file's line as it stands in the list.
  fileprivate struct Line {
    let digits: ArraySlice<UInt8>
    let size: ArraySlice<UInt8>
    let path: ArraySlice<UInt8>

    init?(_ bytes: ArraySlice<UInt8>) {
      let fields = bytes.split(separator: space, maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3, SealList.digest(fields[0]) != nil else { return nil }
      (digits, size, path) = (fields[0], fields[1], fields[2])
      guard let number = Int64(String(decoding: size, as: UTF8.self)), number >= 0,
        String(number).utf8.elementsEqual(size)
      else { return nil }
      guard SealedPath.isSealed(path) else { return nil }
    }

    func follows(_ other: Line) -> Bool {
      if other.path.lexicographicallyPrecedes(path) { return true }
      guard path == other.path, path.elementsEqual(StoredPart.manifest.path.utf8) else { return false }
      return other.digits.lexicographicallyPrecedes(digits)
    }

    var entry: Entry {
      Entry(
        path: String(decoding: path, as: UTF8.self), byteCount: Int64(String(decoding: size, as: UTF8.self)) ?? 0,
        sha256: SealList.digest(digits) ?? [])
    }
  }

  /// - Returns: 32 bytes; `nil` unless there are 64 lower-case hexadecimal digits.
  private static func digest(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
    guard digits.count == digitCount else { return nil }
    var result: [UInt8] = []
    var half: UInt8?
    for digit in digits {
      let value: UInt8
      switch digit {
      case 48...57: value = digit - 48
      case 97...102: value = digit - 87
      default: return nil
      }
      if let high = half { result.append(high << 4 | value) }
      half = half == nil ? value : nil
    }
    return result
  }

  // MARK: Looking up

  /// The file of one line, counted from 0.
  package subscript(index: Int) -> Entry {
    line(index)?.entry ?? Entry(path: "", byteCount: 0, sha256: [])
  }

  private func line(_ index: Int) -> Line? {
    guard starts.indices.contains(index), index < count else { return nil }
    return Line(bytes[starts[index]..<(starts[index + 1] - 1)])
  }

  /// The lines of a path: none, one, or while a password is being changed two of the manifest.
  package func lines(of path: some StringProtocol) -> Range<Int> {
    let wanted = Array(path.utf8)
    var (low, high) = (0, count)
    while low < high {
      let middle = low + (high - low) / 2
      guard let line = line(middle) else { return 0..<0 }
      if line.path.lexicographicallyPrecedes(wanted) { low = middle + 1 } else { high = middle }
    }
    var end = low
    while let line = line(end), line.path.elementsEqual(wanted) { end += 1 }
    return low..<end
  }

  /// The files that a path stands for, as `lines(of:)`.
  package func entries(at path: String) -> [Entry] { lines(of: path).map { self[$0] } }

  // MARK: Making

  /// Makes the list of these files.
  ///
  /// - Parameter code: Gives the 32 bytes of the code over what it is told.
  package init(
    _ entries: [Entry], form: Form, code: ([UInt8]) throws(KeyhaulError) -> [UInt8]
  ) throws(KeyhaulError) {
    var bytes = Self.head(of: form)
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

  private static func head(of form: Form) -> [UInt8] { Array("keyhaul-seal 1 \(form.rawValue)\n".utf8) }

  /// Its files, without those that have one of these paths.
  package func entries(without paths: Set<String>) -> [Entry] {
    (0..<count).map { self[$0] }.filter { !paths.contains($0.path) }
  }
}

/// Which files of a backup a seal covers: those that reading it reads, by their paths. What else stands beside them is not
/// the backup's, and changes nothing of it.
package enum SealedPath {
  /// The property lists, both kinds of list, and what SQLite keeps beside one of them.
  private static let parts = ([StoredPart.manifest, .status, .info, .database, .oldDatabase] + StoredPart.journals).map
  { Array($0.path.utf8) }

  /// Whether it is a part, or a payload of either layout.
  static func isSealed(_ path: ArraySlice<UInt8>) -> Bool {
    if parts.contains(where: { $0.elementsEqual(path) }) { return true }
    switch path.count {
    case 40: return path.allSatisfy(isDigit)
    case 43:
      let name = path.dropFirst(3)
      return path[path.startIndex + 2] == UInt8(ascii: "/") && name.prefix(2) == path.prefix(2)
        && name.allSatisfy(isDigit)
    default: return false
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) || (97...102).contains(byte) }

  /// Whether a backup of this layout is made of it too.
  package static func isSealed(_ path: String, in layout: BackupLayout) -> Bool {
    switch path {
    case StoredPart.manifest.path, StoredPart.status.path, StoredPart.info.path, layout.listPart.path: return true
    default:
      if layout.journals.contains(where: { $0.path == path }) { return true }
      guard let name = path.split(separator: "/").last, isFileIdentifier(name) else { return false }
      return layout.storedPath(of: String(name)) == path
    }
  }
}
