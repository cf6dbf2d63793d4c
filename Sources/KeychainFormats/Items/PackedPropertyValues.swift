/// The values of an item's attributes side by side: where each of them begins, and of each its type and its bytes.
///
/// They take a third of the memory that they take where each has some of its own.
public struct PackedPropertyValues: PackedAttributeValues {
  private let bytes: [UInt8]

  private enum Tag: UInt8 {
    case no, yes, integer, data, string, date, dateWithText
  }

  /// Of the number that says where a value begins. There is one more of them, which says where the last one ends.
  private static let placeByteCount = MemoryLayout<UInt16>.size

  /// More than an item has, and less than a place can say: whoever asks for a value gets a copy of it, and one of megabytes
  /// should not be copied each time.
  private static let maximumByteCount = 16 << 10

  /// Keeps what nearly every item has. With a container among the values, or a number that only a property list has, they
  /// stay as they are, and so do large ones.
  public init?(_ values: [PropertyValue]) {
    let start = (values.count + 1) * Self.placeByteCount
    var byteCount = start
    for value in values {
      guard let count = Self.byteCount(of: value) else { return nil }
      byteCount += 1 + count
    }
    guard byteCount <= Self.maximumByteCount else { return nil }
    bytes = Array(unsafeUninitializedCapacity: byteCount) { buffer, count in
      let all = UnsafeMutableRawBufferPointer(buffer)
      var end = start
      all.storeBytes(of: UInt16(end), as: UInt16.self)
      for (place, value) in values.enumerated() {
        end += Self.write(value, to: UnsafeMutableRawBufferPointer(rebasing: all[end...]))
        all.storeBytes(of: UInt16(end), toByteOffset: (place + 1) * Self.placeByteCount, as: UInt16.self)
      }
      count = end
    }
  }

  public subscript(place: Int) -> PropertyValue {
    bytes.withUnsafeBytes { bytes in
      func start(of place: Int) -> Int {
        Int(bytes.loadUnaligned(fromByteOffset: place * Self.placeByteCount, as: UInt16.self))
      }
      return Self.value(of: UnsafeRawBufferPointer(rebasing: bytes[start(of: place)..<start(of: place + 1)]))
    }
  }

  /// Without its type; `nil` where it is not kept as bytes.
  private static func byteCount(of value: PropertyValue) -> Int? {
    switch value {
    case .boolean: 0
    case .integer: MemoryLayout<Int64>.size
    case .data(let bytes): bytes.count
    case .string(let text): text.utf8.count
    case .date(let date): MemoryLayout<Double>.size + (date.encodedText?.utf8.count ?? 0)
    case .null, .unsignedInteger, .real, .uid, .array, .dictionary, .set: nil
    }
  }

  /// - Returns: How many bytes its type and it take.
  private static func write(_ value: PropertyValue, to target: UnsafeMutableRawBufferPointer) -> Int {
    let contents = UnsafeMutableRawBufferPointer(rebasing: target[1...])
    let tag: Tag
    switch value {
    case .boolean(let value): tag = value ? .yes : .no
    case .integer(let value):
      tag = .integer
      contents.storeBytes(of: value, as: Int64.self)
    case .data(let bytes):
      tag = .data
      contents.copyBytes(from: bytes)
    case .string(let text):
      tag = .string
      contents.copyBytes(from: text.utf8)
    case .date(let date):
      tag = date.encodedText == nil ? .date : .dateWithText
      contents.storeBytes(of: date.secondsSinceReferenceDate, as: Double.self)
      UnsafeMutableRawBufferPointer(rebasing: contents[MemoryLayout<Double>.size...])
        .copyBytes(from: (date.encodedText ?? "").utf8)
    case .null, .unsignedInteger, .real, .uid, .array, .dictionary, .set: return 0
    }
    target[0] = tag.rawValue
    return 1 + (byteCount(of: value) ?? 0)
  }

  private static func value(of bytes: UnsafeRawBufferPointer) -> PropertyValue {
    guard let tag = bytes.first.flatMap(Tag.init(rawValue:)) else { return .null }
    let contents = UnsafeRawBufferPointer(rebasing: bytes[1...])
    switch tag {
    case .no: return .boolean(false)
    case .yes: return .boolean(true)
    case .integer: return .integer(contents.loadUnaligned(as: Int64.self))
    case .data: return .data(Array(contents))
    case .string: return .string(String(decoding: contents, as: UTF8.self))
    case .date, .dateWithText:
      let text = contents[MemoryLayout<Double>.size...]
      return .date(
        KeychainDate(
          secondsSinceReferenceDate: contents.loadUnaligned(as: Double.self),
          encodedText: tag == .date ? nil : String(decoding: text, as: UTF8.self)))
    }
  }
}
