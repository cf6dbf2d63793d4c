import Basics
import KeychainFormats

/// The format in which a device stores its unlocked keys. Numbers are big-endian, with 4 bytes.
///
/// - The header: `KHM1`, the keybag's UUID (16 bytes), and the numbers of wrapped, unwrapped and all classes.
/// - A record of 72 bytes for each class:
///   - Its number.
///   - One byte each for its availability, whether it has a key, whether it has a public key, and 0.
///   - The key and the public key, 32 bytes each.
/// - The SHA-256 of the header and the records, which detects an incomplete file.
extension ClassKeys {
  private static let magic: [UInt8] = Array("KHM1".utf8)
  private static let headerSize = 32
  private static let recordSize = 72
  private static let checkSize = 32
  /// The maximum number of classes, more than any keybag has.
  static let maximumClassCount = 64

  /// Returns all unwrapped keys, and the states of the other classes. The bytes give access to everything the keys
  /// protect.
  package func exported() throws(DataProtectionError) -> Secret {
    let classes = classes
    let bodySize = Self.headerSize + classes.count * Self.recordSize
    return try Secret(count: bodySize + Self.checkSize) { (output) throws(DataProtectionError) in
      let counts = [wrappedCount, unwrappedCount, classes.count].flatMap { bigEndianBytes(UInt32(clamping: $0)) }
      output.copyBytes(from: Self.magic + keybagUUID.prefix(16) + counts)
      for (index, keyClass) in classes.enumerated() {
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

  /// Reads the keys that `exported()` returned.
  ///
  /// - Throws: `.malformed` for incomplete bytes or another format.
  package convenience init(importing memory: borrowing Secret) throws(DataProtectionError) {
    let contents = try memory.withBytes { (bytes) throws(DataProtectionError) in try Self.parse(bytes) }
    self.init(
      keybagUUID: contents.uuid, entries: contents.entries, wrappedCount: contents.wrapped,
      unwrappedCount: contents.unwrapped)
  }

  private static func parse(
    _ bytes: UnsafeRawBufferPointer
  ) throws(DataProtectionError) -> (uuid: [UInt8], entries: [KeyClass: Entry], wrapped: Int, unwrapped: Int) {
    guard bytes.count >= headerSize + checkSize, bytes.prefix(4).elementsEqual(magic) else { throw .incompleteExport }
    func integer(at offset: Int) -> Int { Int(bigEndianInteger(bytes[offset..<offset + 4])) }
    let count = integer(at: 28)
    guard count <= maximumClassCount, bytes.count == headerSize + count * recordSize + checkSize else {
      throw .incompleteExport
    }
    let check = try Digest.sha256(UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - checkSize)]))
    guard bytes.suffix(checkSize).elementsEqual(check) else { throw .incompleteExport }

    var entries: [KeyClass: Entry] = [:]
    for index in 0..<count {
      let start = headerSize + index * recordSize
      let record = UnsafeRawBufferPointer(rebasing: bytes[start..<start + recordSize])
      let keyClass = KeyClass(rawValue: UInt32(clamping: bigEndianInteger(record[0..<4])))
      guard let availability = ClassKeyAvailability(rawValue: record[4]), entries[keyClass] == nil else {
        throw .incompleteExport
      }
      var entry = Entry(availability: availability)
      if record[5] == 1 { entry.key = WrappingKey(Secret(copying: UnsafeRawBufferPointer(rebasing: record[8..<40]))) }
      if record[6] == 1 { entry.publicKey = Array(record[40..<72]) }
      entries[keyClass] = entry
    }
    return (Array(bytes[4..<20]), entries, integer(at: 20), integer(at: 24))
  }
}

extension DataProtectionError {
  fileprivate static var incompleteExport: DataProtectionError {
    DataProtectionError(.malformed, "the file of unlocked keys is incomplete")
  }
}
