import Basics
import KeychainCrypto
import KeychainFormats

/// A plan as a file: the document, and a checksum over every byte of the file but its own digits.
///
/// No seal: whoever edits a plan can compute the checksum again, and has then written another plan, which is checked like
/// any.
package struct PlanFile: Sendable {
  /// The plan that the file holds.
  package let document: PlanDocument
  /// Whether the file has a checksum, as its last member.
  let hasChecksum: Bool
  /// Whether it is the one of the file's bytes.
  let isAsSaved: Bool

  private static let digitCount = 64
  /// What stands around the checksum's digits at the end of every file.
  private static let opening = Array(",\n  \"checksum\": \"sha256:".utf8)
  private static let ending = Array("\"\n}\n".utf8)

  /// The bytes of a plan that is saved; equal plans are equal bytes.
  ///
  /// - Throws: What the cryptographic library reports.
  package static func bytes(of document: PlanDocument) throws(KeyhaulError) -> [UInt8] {
    var bytes: [UInt8] = []
    try forEachPortion(of: document, translating: \.self) { (portion) throws(KeyhaulError) in
      bytes.append(contentsOf: portion)
    }
    return bytes
  }

  /// Lends the same bytes some kilobytes at a time: no more of the document than that is held at once.
  ///
  /// - Parameter translating: What is thrown for what the cryptographic library reports.
  package static func forEachPortion<Failure: Error>(
    of document: PlanDocument, translating: (KeyhaulError) -> Failure,
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    func hashing<Result>(_ work: () throws(DataProtectionError) -> Result) throws(Failure) -> Result {
      try converting({ translating(KeyhaulError($0)) }, work)
    }
    let digest = try hashing { () throws(DataProtectionError) in try DigestStream(.sha256) }
    // One portion behind: the last one ends with the bracket that the checksum goes in front of.
    var last: [UInt8] = []
    try document.json.forEachPortion { (portion) throws(Failure) in
      try hashing { () throws(DataProtectionError) in try digest.update(last) }
      try last.withRawBytes(body)
      last = Array(portion)
    }
    last.removeLast("\n}\n".utf8.count)
    last += opening
    last += try hashing { () throws(DataProtectionError) in
      try digest.update(last)
      try digest.update(ending)
      return Array(String(hexadecimal: try digest.finish()).utf8)
    }
    try (last + ending).withRawBytes(body)
  }

  /// Reads a saved plan.
  ///
  /// - Throws: `.malformedPlan` where it is none, or has what no plan has; `.stalePlan` where that is so because it was
  ///   edited; `.otherPlanFormat`.
  package init(parsing bytes: [UInt8]) throws(KeyhaulError) {
    // Whatever saved the file again may have put a byte order mark before what the checksum is over.
    let bytes = Array(bytes.dropFirst(UTF8Scalars.byteOrderMarkCount(of: bytes)))
    guard let value = try? JSONValue(parsing: bytes), let format = value["format"]?.stringValue else {
      throw .malformedPlan("it is not a document of the format \(PlanDocument.formatName)")
    }
    guard format == PlanDocument.formatName else { throw .otherPlanFormat(format) }
    let checksum = value["checksum"]?.stringValue
    let digits = Self.storedDigits(in: bytes)
    let isAsSaved: Bool
    if let digits, let checksum, checksum.utf8.elementsEqual(Array("sha256:".utf8) + bytes[digits]) {
      let computed = try translatingErrors { () throws(DataProtectionError) in
        try Self.digits(before: bytes[..<digits.lowerBound], after: bytes[digits.upperBound...])
      }
      isAsSaved = bytes[digits].elementsEqual(computed)
    } else {
      isAsSaved = false
    }
    do throws(JSONCursor.Fault) {
      let fields = (value.fields ?? []).filter { $0.0 != "checksum" || checksum == nil }
      let node = JSONCursor(.object(fields), path: "")
      document = try PlanDocument(node)
      try node.requireNothing(beyond: document.json)
    } catch {
      if checksum != nil, !isAsSaved { throw .stalePlan(Self.edited) }
      let place = error.path.isEmpty ? "the document" : UntrustedText.escaped(error.path)
      throw .malformedPlan("\(place) \(error.reason)")
    }
    hasChecksum = checksum != nil
    self.isAsSaved = isAsSaved
  }

  /// Why the plan cannot be carried out whatever there is now, as one sentence; `nil` if it may be.
  package var obstacle: String? {
    if document.redacted == true { return "its names were left out, so it can be shown but not carried out" }
    guard hasChecksum else { return "it has no checksum" }
    if !isAsSaved { return Self.edited }
    return switch document.source.kind {
    case .archive: nil
    case .device: "it was made from \(document.source.name) itself, not from a backup"
    case .dump: "it was made from the dump \(document.source.name), which cannot be restored"
    }
  }

  /// Earlier versions computed the checksum over the values alone; which it was is not known.
  static let edited = "it was edited after it was saved, or an earlier version of Keyhaul saved it"

  private static func storedDigits(in bytes: [UInt8]) -> Range<Int>? {
    let end = bytes.count - ending.count
    let start = end - digitCount
    guard start >= opening.count, bytes[end...].elementsEqual(ending),
      bytes[(start - opening.count)..<start].elementsEqual(opening)
    else { return nil }
    return start..<end
  }

  private static func digits(
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
