import Basics
internal import KeychainFormats

/// The form in which a device keeps its unlocked keys in memory: a header, one record of fixed size for each class, and
/// SHA-256 of all that, so that a torn file is noticed. Numbers are big-endian.
extension ClassKeys {
  private static let magic: [UInt8] = Array("KHM1".utf8)
  private static let headerSize = 32
  private static let recordSize = 72
  private static let checkSize = 32
  /// More classes than any keybag holds.
  static let maximumClassCount = 64

  /// All keys that are held, with what is known of the classes that are not. Whoever has these bytes has the keys.
  public borrowing func exported() throws(DataProtectionError) -> Secret {
    let numbers = classes
    let bodySize = Self.headerSize + numbers.count * Self.recordSize
    return try Secret(count: bodySize + Self.checkSize) { (output) throws(DataProtectionError) in
      let counts = [wrappedCount, unwrappedCount, numbers.count].flatMap { bigEndianBytes(UInt32(clamping: $0)) }
      output.copyBytes(from: Self.magic + keybagUUID.prefix(16) + counts)
      for (index, keyClass) in numbers.enumerated() {
        guard let entry = entries[keyClass] else { continue }
        let start = Self.headerSize + index * Self.recordSize
        let record = UnsafeMutableRawBufferPointer(rebasing: output[start..<start + Self.recordSize])
        record.copyBytes(from: bigEndianBytes(keyClass.rawValue))
        record[4] = entry.availability.rawValue
        record[5] = entry.key == nil ? 0 : 1
        record[6] = entry.publicKey == nil ? 0 : 1
        entry.key?.secret.withBytes { UnsafeMutableRawBufferPointer(rebasing: record[8..<40]).copyMemory(from: $0) }
        if let publicKey = entry.publicKey {
          UnsafeMutableRawBufferPointer(rebasing: record[40..<72]).copyBytes(from: publicKey)
        }
      }
      let check = try Digest.sha256(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(output)[..<bodySize]))
      UnsafeMutableRawBufferPointer(rebasing: output[bodySize...]).copyBytes(from: check)
    }
  }

  /// The keys that `exported()` wrote.
  ///
  /// - Throws: `.malformed` for bytes that are not whole or not of this form.
  public init(importing memory: borrowing Secret) throws(DataProtectionError) {
    let contents = try memory.withBytes { (bytes) throws(DataProtectionError) in try Self.parse(bytes) }
    try self.init(
      keybagUUID: contents.uuid, entries: contents.entries, wrappedCount: contents.wrapped,
      unwrappedCount: contents.unwrapped)
  }

  private static func parse(
    _ bytes: UnsafeRawBufferPointer
  ) throws(DataProtectionError) -> (uuid: [UInt8], entries: [KeyClass: Entry], wrapped: Int, unwrapped: Int) {
    guard bytes.count >= headerSize + checkSize, bytes.prefix(4).elementsEqual(magic) else { throw .memory }
    func number(at offset: Int) -> Int { Int(bigEndianInteger(bytes[offset..<offset + 4])) }
    let count = number(at: 28)
    guard count <= maximumClassCount, bytes.count == headerSize + count * recordSize + checkSize else { throw .memory }
    let check = try Digest.sha256(UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - checkSize)]))
    guard bytes.suffix(checkSize).elementsEqual(check) else { throw .memory }

    var entries: [KeyClass: Entry] = [:]
    for index in 0..<count {
      let start = headerSize + index * recordSize
      let record = UnsafeRawBufferPointer(rebasing: bytes[start..<start + recordSize])
      let keyClass = KeyClass(rawValue: UInt32(clamping: bigEndianInteger(record[0..<4])))
      guard let availability = ClassKeyAvailability(rawValue: record[4]), entries[keyClass] == nil else {
        throw .memory
      }
      var entry = Entry(availability: availability)
      if record[5] == 1 { entry.key = HeldKey(Secret(copying: UnsafeRawBufferPointer(rebasing: record[8..<40]))) }
      if record[6] == 1 { entry.publicKey = Array(record[40..<72]) }
      entries[keyClass] = entry
    }
    return (Array(bytes[4..<20]), entries, number(at: 20), number(at: 24))
  }
}

extension DataProtectionError {
  fileprivate static var memory: DataProtectionError {
    DataProtectionError(.malformed, "the file of unlocked keys is incomplete")
  }
}
