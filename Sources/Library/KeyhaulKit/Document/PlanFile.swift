import Basics
import KeychainCrypto
import KeychainFormats

/// A plan as a file: the document and a checksum of every byte except the checksum's own digits.
///
/// The checksum is not a seal. Anyone who edits a plan can compute the checksum again. The result is a different plan,
/// and is checked like any plan.
package struct PlanFile: Sendable {
  /// The plan in the file.
  package let document: PlanDocument
  /// Whether the file has a checksum as its last member.
  let hasChecksum: Bool
  /// Whether the file has a checksum that matches its bytes.
  let matchesChecksum: Bool

  /// The number of hexadecimal digits of a SHA-256 digest.
  private static let digitCount = 64
  /// The end of a document without a checksum.
  private static let closing = "\n}\n"
  /// The text before and after the checksum's digits, at the end of every file.
  private static let textBeforeDigits = Array(",\n  \"checksum\": \"sha256:".utf8)
  private static let textAfterDigits = Array("\"\(closing)".utf8)

  /// Returns the bytes of a saved plan. Equal plans have equal bytes.
  ///
  /// - Throws: An error of the cryptographic library.
  package static func bytes(of document: PlanDocument) throws(KeyhaulError) -> [UInt8] {
    var bytes: [UInt8] = []
    try forEachChunk(of: document, translating: \.self) { (chunk) throws(KeyhaulError) in
      bytes.append(contentsOf: chunk)
    }
    return bytes
  }

  /// Calls a closure with the bytes of a saved plan, in chunks of a few kilobytes to limit the memory.
  ///
  /// - Parameter translating: Returns the error to throw for an error of the cryptographic library.
  package static func forEachChunk<Failure: Error>(
    of document: PlanDocument, translating: (KeyhaulError) -> Failure,
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    func hashing<Result>(_ body: () throws(DataProtectionError) -> Result) throws(Failure) -> Result {
      try converting({ translating(KeyhaulError($0)) }, body)
    }
    let digest = try hashing { () throws(DataProtectionError) in try DigestStream(.sha256) }
    // Each chunk waits for the next, because the checksum is inserted before the closing bracket of the last one.
    var pending: [UInt8] = []
    try document.json.forEachChunk { (chunk) throws(Failure) in
      try hashing { () throws(DataProtectionError) in try digest.update(pending) }
      try pending.withRawBytes(body)
      pending = Array(chunk)
    }
    pending.removeLast(closing.utf8.count)
    pending += textBeforeDigits
    pending += try hashing { () throws(DataProtectionError) in
      try digest.update(pending)
      try digest.update(textAfterDigits)
      return Array(String(hexadecimal: try digest.finish()).utf8)
    }
    try (pending + textAfterDigits).withRawBytes(body)
  }

  /// Reads a saved plan.
  ///
  /// - Throws: `.malformedPlan` if the file is not a plan or has unknown members; `.stalePlan` if that is because the
  ///   file was edited; `.otherPlanFormat` if Keyhaul does not know the format.
  package init(parsing bytes: [UInt8]) throws(KeyhaulError) {
    // An editor may have added a byte order mark, which the checksum does not cover.
    let bytes = Array(bytes.dropFirst(UTF8Scalars.byteOrderMarkCount(of: bytes)))
    guard let value = try? JSONValue(parsing: bytes), let format = value["format"]?.stringValue else {
      throw .malformedPlan("it is not a document of the format \(PlanDocument.formatName)")
    }
    guard format == PlanDocument.formatName else { throw .otherPlanFormat(format) }
    let checksum = value["checksum"]?.stringValue
    let matchesChecksum = try Self.isChecksum(checksum, of: bytes)
    do throws(JSONCursor.Fault) {
      // A checksum that is not a string stays, and is rejected as an unknown member.
      let fields = (value.fields ?? []).filter { $0.0 != "checksum" || checksum == nil }
      let node = JSONCursor(.object(fields), path: "")
      document = try PlanDocument(node)
      try node.requireNothing(beyond: document.json)
    } catch {
      if checksum != nil, !matchesChecksum { throw .stalePlan(Self.wrongChecksum) }
      let location = error.path.isEmpty ? "the document" : UntrustedText.escaped(error.path)
      throw .malformedPlan("\(location) \(error.reason)")
    }
    hasChecksum = checksum != nil
    self.matchesChecksum = matchesChecksum
  }

  /// The reason why the plan can never be carried out, as one sentence; `nil` if there is none.
  package var obstacle: String? {
    if document.redacted == true { return "its names were left out, so it can be shown but not carried out" }
    guard hasChecksum else { return "it has no checksum" }
    if !matchesChecksum { return Self.wrongChecksum }
    return switch document.source.kind {
    case .archive: nil
    case .device: "it was made from \(document.source.name) itself, not from a backup"
    case .dump: "it was made from the dump \(document.source.name), which cannot be restored"
    }
  }

  /// The two possible reasons for a wrong checksum: earlier versions computed it from the values only.
  static let wrongChecksum = "it was edited after it was saved, or an earlier version of Keyhaul saved it"

  /// Returns whether the file ends with a checksum, and the checksum matches the other bytes.
  private static func isChecksum(_ checksum: String?, of bytes: [UInt8]) throws(KeyhaulError) -> Bool {
    guard let checksum, let digits = storedDigits(in: bytes),
      checksum.utf8.elementsEqual(Array("sha256:".utf8) + bytes[digits])
    else { return false }
    let computedDigits = try translatingErrors { () throws(DataProtectionError) in
      try checksumDigits(before: bytes[..<digits.lowerBound], after: bytes[digits.upperBound...])
    }
    return bytes[digits].elementsEqual(computedDigits)
  }

  /// Returns the position of the checksum's digits; `nil` if the file does not end with a checksum.
  private static func storedDigits(in bytes: [UInt8]) -> Range<Int>? {
    let end = bytes.count - textAfterDigits.count
    let start = end - digitCount
    guard start >= textBeforeDigits.count, bytes[end...].elementsEqual(textAfterDigits),
      bytes[(start - textBeforeDigits.count)..<start].elementsEqual(textBeforeDigits)
    else { return nil }
    return start..<end
  }

  private static func checksumDigits(
    before head: some Sequence<UInt8>, after tail: some Sequence<UInt8>
  ) throws(DataProtectionError) -> [UInt8] {
    Array(String(hexadecimal: try Digest.sha256(Array(head) + Array(tail))).utf8)
  }
}

extension KeyhaulError {
  static func otherPlanFormat(_ format: String) -> KeyhaulError {
    KeyhaulError(
      .otherPlanFormat, .refused, "the plan has a different format",
      reason: "its format is \(UntrustedText.escaped(format)); Keyhaul reads "
        + "\(PlanDocument.formatName)", advice: "plan again")
  }
}
