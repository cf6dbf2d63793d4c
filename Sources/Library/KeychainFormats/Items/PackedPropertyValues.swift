import Basics

/// The values of an item's attributes in one array, which takes less than a third of the memory of separate values.
///
/// ```
/// array     offset of value 0, …, offset of value n-1, offset of the end, values
/// offset    1 byte; 2 bytes in an array of more than 255 bytes
/// value     tag (1 byte), contents
/// ```
///
/// Equal bytes represent equal values, including the texts of dates.
@usableFromInline package struct PackedPropertyValues: PackedAttributeValues {
  private let bytes: [UInt8]

  private enum Tag: UInt8 {
    /// The two booleans, without bytes.
    case no, yes
    case data, string
    /// The fewest bytes that represent the number, the lowest first; none for 0.
    case integer
    /// The 16 bytes of an upper-case UUID.
    case uuid
    /// The seconds since the reference date as a `Double`, and then the text, if there is one.
    case date, dateWithText
    /// A date whose text gives exactly its seconds: only the text, with two characters in a byte.
    case dateText
  }

  /// The packed type of a value, and the number of bytes of its packed contents.
  private typealias Layout = (tag: Tag, byteCount: Int)

  /// The maximum size of an array whose offsets take one byte. In a larger array they take two.
  private static let maximumShortByteCount = 255

  /// The maximum number of bytes to pack. Each access copies a value, which would be slow for megabytes.
  private static let maximumByteCount = 16 << 10

  /// Packs the values of almost every item; `nil` if they are too large, or if one is a container or a number that only
  /// property lists have.
  @usableFromInline package init?(_ values: [PropertyValue]) {
    self.init(
      count: values.count, layout: { Self.layout(of: values[$0]) }, write: { Self.write(values[$0], as: $1, to: $2) })
  }

  /// Packs values from their DER; `nil` if a value is not encoded as devices encode it.
  init?(_ elements: UnsafeBufferPointer<CanonicalDERReader.Element>) {
    self.init(
      count: elements.count, layout: { Self.layout(of: elements[$0]) },
      write: { Self.write(elements[$0], as: $1, to: $2) })
  }

  /// Packs values.
  ///
  /// - Parameters:
  ///   - valueCount: The number of values.
  ///   - layout: Returns the layout of a value, or `nil` if it cannot be packed.
  ///   - write: Writes the contents of a value with its tag.
  private init?(
    count valueCount: Int, layout: (_ index: Int) -> Layout?,
    write: (_ index: Int, _ tag: Tag, _ target: UnsafeMutableRawBufferPointer) -> Void
  ) {
    let packed = withUnsafeTemporaryAllocation(of: Layout.self, capacity: valueCount) { layouts -> [UInt8]? in
      for index in 0..<valueCount {
        guard let layout = layout(index) else { return nil }
        layouts.initializeElement(at: index, to: layout)
      }
      return Self.pack(UnsafeBufferPointer(layouts), write: write)
    }
    guard let packed else { return nil }
    bytes = packed
  }

  /// Returns the offsets and the values, or `nil` if they are too large.
  private static func pack(
    _ layouts: UnsafeBufferPointer<Layout>,
    write: (_ index: Int, _ tag: Tag, _ target: UnsafeMutableRawBufferPointer) -> Void
  ) -> [UInt8]? {
    let valuesByteCount = layouts.reduce(0) { $0 + 1 + $1.byteCount }
    let offsetCount = layouts.count + 1
    let offsetWidth = offsetCount + valuesByteCount <= maximumShortByteCount ? 1 : 2
    let byteCount = offsetCount * offsetWidth + valuesByteCount
    guard byteCount <= maximumByteCount else { return nil }
    return Array(unsafeUninitializedCapacity: byteCount) { buffer, initializedCount in
      let target = UnsafeMutableRawBufferPointer(buffer)
      var offset = offsetCount * offsetWidth
      writeOffset(offset, at: 0, width: offsetWidth, to: target)
      for (index, layout) in layouts.enumerated() {
        let contentStart = offset + 1
        target[offset] = layout.tag.rawValue
        offset = contentStart + layout.byteCount
        write(index, layout.tag, UnsafeMutableRawBufferPointer(rebasing: target[contentStart..<offset]))
        writeOffset(offset, at: index + 1, width: offsetWidth, to: target)
      }
      initializedCount = offset
    }
  }

  private static func writeOffset(
    _ offset: Int, at index: Int, width: Int, to target: UnsafeMutableRawBufferPointer
  ) {
    if width == 1 {
      target[index] = UInt8(truncatingIfNeeded: offset)
    } else {
      target.storeBytes(of: UInt16(truncatingIfNeeded: offset), toByteOffset: 2 * index, as: UInt16.self)
    }
  }

  @usableFromInline package subscript(index: Int) -> PropertyValue { withBytes(at: index, Self.value) }

  /// Returns an upper bound for a value's DER contents in bytes. If there is a bound, encoding and decoding the value
  /// gives the same value.
  ///
  /// - Returns: The bound, or `nil` if the value is a date that is not stored as its text, or that may be outside the
  ///   years 0 to 9999.
  func maximumDERByteCount(at index: Int) -> Int? {
    withBytes(at: index) { bytes in
      switch bytes.first.flatMap(Tag.init(rawValue:)) {
      case .date, .dateWithText, nil: nil
      // The byte after the tag has the first two digits of the year. With a time zone, a date of the years 0 to 99 or
      // 9900 to 9999 may be outside the years 0 to 9999.
      case .dateText: [0x00, 0x99].contains(bytes.dropFirst().first) ? nil : DERDate.maximumTextByteCount
      // The text of a UUID has little more than twice its packed bytes.
      case .no, .yes, .integer, .data, .string, .uuid: 3 * bytes.count
      }
    }
  }

  private func withBytes<Result>(at index: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    bytes.withUnsafeBytes { bytes in
      func offset(at index: Int) -> Int {
        bytes.count <= Self.maximumShortByteCount
          ? Int(bytes[index]) : Int(bytes.loadUnaligned(fromByteOffset: 2 * index, as: UInt16.self))
      }
      return body(UnsafeRawBufferPointer(rebasing: bytes[offset(at: index)..<offset(at: index + 1)]))
    }
  }

  /// Returns the layout of a value, or `nil` if the value cannot be packed.
  private static func layout(of value: PropertyValue) -> Layout? {
    switch value {
    case .boolean(let value): (value ? .yes : .no, 0)
    case .integer(let value): (.integer, byteCount(of: value))
    case .data(let bytes): (.data, bytes.count)
    case .string(let text):
      withBytes(of: text, UUIDText.isUppercase) ? (.uuid, 16) : (.string, text.utf8.count)
    case .date(let date): layout(of: date)
    case .null, .unsignedInteger, .real, .uid, .array, .dictionary, .set: nil
    }
  }

  private static func layout(of date: KeychainDate) -> Layout {
    let byteCount = MemoryLayout<Double>.size
    guard let text = date.encodedText else { return (.date, byteCount) }
    guard let packedByteCount = withBytes(of: text, { DERDate.packedByteCount(of: $0, representing: date) }) else {
      return (.dateWithText, byteCount + text.utf8.count)
    }
    return (.dateText, packedByteCount)
  }

  private static func layout(of element: CanonicalDERReader.Element) -> Layout? {
    let contents = element.contents
    switch element.tag {
    case DERPropertyList.Tag.boolean:
      return contents.count == 1 ? (contents[0] == 0 ? .no : .yes, 0) : nil
    case DERPropertyList.Tag.integer:
      // The shortest form has the highest byte first; 0 is packed without bytes.
      guard (1...8).contains(contents.count) else { return nil }
      let highest: UInt8 = contents[0]
      guard contents.count > 1 else { return (.integer, highest == 0 ? 0 : 1) }
      let isShortest = highest == 0 ? contents[1] >= 0x80 : highest != 0xFF || contents[1] < 0x80
      return isShortest ? (.integer, contents.count) : nil
    case DERPropertyList.Tag.data: return (.data, contents.count)
    case DERPropertyList.Tag.string:
      if UUIDText.isUppercase(contents) { return (.uuid, 16) }
      return UTF8Scalars.isValid(contents) ? (.string, contents.count) : nil
    case DERPropertyList.Tag.generalizedTime: return DERDate.packedByteCount(of: contents).map { (.dateText, $0) }
    default: return nil
    }
  }

  private static func write(
    _ element: CanonicalDERReader.Element, as tag: Tag, to target: UnsafeMutableRawBufferPointer
  ) {
    switch tag {
    case .integer: for index in target.indices { target[index] = element.contents[target.count - 1 - index] }
    case .uuid: UUIDText.write(uppercase: element.contents, to: target)
    case .dateText: DERDate.pack(element.contents, into: target)
    case .no, .yes: return
    case .data, .string, .date, .dateWithText: target.copyMemory(from: element.contents)
    }
  }

  private static func withBytes<Result>(of text: String, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    var text = text
    return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
  }

  private static func byteCount(of value: Int64) -> Int {
    value == 0 ? 0 : (Int64.bitWidth - (value < 0 ? ~value : value).leadingZeroBitCount) / 8 + 1
  }

  private static func write(_ value: PropertyValue, as tag: Tag, to target: UnsafeMutableRawBufferPointer) {
    switch value {
    case .integer(let value):
      for index in target.indices { target[index] = UInt8(truncatingIfNeeded: value >> (8 * Int64(index))) }
    case .data(let bytes): target.copyBytes(from: bytes)
    case .string(let text):
      guard tag == .uuid else { return target.copyBytes(from: text.utf8) }
      withBytes(of: text) { UUIDText.write(uppercase: $0, to: target) }
    case .date(let date):
      let text = date.encodedText ?? ""
      guard tag != .dateText else { return withBytes(of: text) { DERDate.pack($0, into: target) } }
      target.storeBytes(of: date.secondsSinceReferenceDate, as: Double.self)
      UnsafeMutableRawBufferPointer(rebasing: target[MemoryLayout<Double>.size...]).copyBytes(from: text.utf8)
    case .boolean, .null, .unsignedInteger, .real, .uid, .array, .dictionary, .set: return
    }
  }

  private static func value(of bytes: UnsafeRawBufferPointer) -> PropertyValue {
    guard let tag = bytes.first.flatMap(Tag.init(rawValue:)) else { return .null }
    let contents = UnsafeRawBufferPointer(rebasing: bytes[1...])
    switch tag {
    case .no: return .boolean(false)
    case .yes: return .boolean(true)
    case .integer:
      let sign: Int64 = contents.last.map { $0 < 0x80 } ?? true ? 0 : -1
      return .integer(contents.reversed().reduce(sign) { $0 << 8 | Int64($1) })
    case .data: return .data(Array(contents))
    case .string: return .string(String(decoding: contents, as: UTF8.self))
    case .uuid: return .string(UUIDText.uppercase(contents.loadUnaligned(as: SIMD16<UInt8>.self)))
    case .date: return .date(KeychainDate(secondsSinceReferenceDate: contents.loadUnaligned(as: Double.self)))
    case .dateText: return DERDate.date(unpacking: contents).map(PropertyValue.date) ?? .null
    case .dateWithText:
      let text = contents[MemoryLayout<Double>.size...]
      return .date(
        KeychainDate(
          secondsSinceReferenceDate: contents.loadUnaligned(as: Double.self),
          encodedText: String(decoding: text, as: UTF8.self)))
    }
  }
}
