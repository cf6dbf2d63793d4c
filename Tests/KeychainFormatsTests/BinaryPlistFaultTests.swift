import Basics
import KeychainFormats
import TestSupport
import Testing

/// A binary property list that is assembled from its parts, so that a test can change each of them.
///
/// The file consists of the header, the objects, a table with the offset of each object, and a trailer of 32 bytes: six
/// bytes, the width of offsets, the width of references, and three numbers of 8 bytes (the number of objects, the root
/// object, and the offset of the table).
struct PlistParts {
  var header = Array("bplist00".utf8)
  var objects: [[UInt8]]
  var root: UInt64 = 0
  /// The number of objects in the trailer, or `nil` to write the correct one.
  var count: UInt64?
  var offsetWidth: UInt8 = 1
  var referenceWidth: UInt8 = 1
  /// The offset of the table in the trailer, or `nil` to write the correct one.
  var tableOffset: UInt64?
  /// The offsets in the table, or `nil` to write the correct ones.
  var offsets: [UInt8]?

  init(_ objects: [UInt8]...) { self.objects = objects }

  func with(_ change: (inout PlistParts) -> Void) -> PlistParts {
    var copy = self
    change(&copy)
    return copy
  }

  var objectsEnd: Int { header.count + objects.reduce(0) { $0 + $1.count } }

  var bytes: [UInt8] {
    var offset = header.count
    var table: [UInt8] = []
    for object in objects {
      table.append(UInt8(offset))
      offset += object.count
    }
    let numbers = [count ?? UInt64(objects.count), root, tableOffset ?? UInt64(objectsEnd)]
    var bytes = header + objects.flatMap(\.self) + (offsets ?? table)
    bytes += [0, 0, 0, 0, 0, 0, offsetWidth, referenceWidth]
    for number in numbers { bytes += [UInt8](bigEndian: Int(truncatingIfNeeded: number), count: 8) }
    return bytes
  }
}

@Suite("Binary property lists with one fault")
struct BinaryPlistFaultTests {
  /// An array with one reference, to the string "a".
  private static let array = PlistParts([0xA1, 1], [0x51, 0x61])

  /// Offsets in the bytes of `array`.
  private enum Offset {
    static let array = 8, reference = 9, table = 12, trailer = 14
    static let offsetWidth = trailer + 6, referenceWidth = trailer + 7
    static let count = trailer + 8, root = trailer + 16, tableOffset = trailer + 24
  }

  private static func object(_ name: String, _ bytes: [UInt8], _ code: FormatError.Code, at offset: Int = 8)
    -> FaultyInput
  {
    FaultyInput(name, PlistParts(bytes).bytes, code, at: offset)
  }

  private static func changed(_ name: String, at offset: Int, _ change: (inout PlistParts) -> Void) -> FaultyInput {
    FaultyInput(name, array.with(change).bytes, .malformed, at: offset)
  }

  static let faultyStructures: [FaultyInput] = [
    FaultyInput("no bytes", [], .malformed, at: 0),
    FaultyInput("another format", Array("<?xml version".utf8), .malformed, at: 0),
    FaultyInput("only a header", Array("bplist00".utf8), .truncated, at: 8),
    FaultyInput("a header and 31 bytes", Array("bplist00".utf8) + [UInt8](repeating: 0, count: 31), .truncated, at: 39),
    FaultyInput("version 15", array.with { $0.header = Array("bplist15".utf8) }.bytes, .unsupportedVersion, at: 6),
    changed("an offset width of 0", at: Offset.offsetWidth) { $0.offsetWidth = 0 },
    changed("an offset width of 9", at: Offset.offsetWidth) { $0.offsetWidth = 9 },
    changed("a reference width of 0", at: Offset.referenceWidth) { $0.referenceWidth = 0 },
    changed("a reference width of 9", at: Offset.referenceWidth) { $0.referenceWidth = 9 },
    changed("no objects", at: Offset.count) { $0.count = 0 },
    changed("more objects than offsets", at: Offset.count) { $0.count = 3 },
    changed("a count whose table overflows", at: Offset.count) { $0.count = .max },
    changed("a root beyond the objects", at: Offset.root) { $0.root = 2 },
    changed("the largest root", at: Offset.root) { $0.root = .max },
    changed("a table inside the header", at: Offset.tableOffset) { $0.tableOffset = 8 },
    changed("a table inside the trailer", at: Offset.tableOffset) { $0.tableOffset = UInt64(Offset.trailer) },
    changed("the largest table offset", at: Offset.tableOffset) { $0.tableOffset = .max },
    changed("an object inside the header", at: Offset.table) { $0.offsets = [7, 10] },
    changed("an object inside the table", at: Offset.table) { $0.offsets = [UInt8(Offset.table), 10] },
    changed("a reference beyond the objects", at: Offset.reference) { $0.objects[0] = [0xA1, 2] },
    changed("an array that contains itself", at: Offset.array) { $0.objects[0] = [0xA1, 0] },
  ]

  static let faultyObjects: [FaultyInput] = [
    object("the fill byte", [0x0F], .malformed),
    object("an unknown marker", [0x70], .malformed),
    object("an integer of 32 bytes", [0x15] + [UInt8](repeating: 0, count: 32), .malformed),
    object("an integer above 64 bits", [0x14, 1] + [UInt8](repeating: 0, count: 15), .malformed),
    object("an integer cut short", [0x13, 0, 0], .truncated),
    object("a real number of 1 byte", [0x20, 0], .malformed),
    object("a real number cut short", [0x23, 0, 0], .truncated),
    object("a date of 4 bytes", [0x32, 0, 0, 0, 0], .malformed),
    object("a date cut short", [0x33, 0], .truncated),
    object("data cut short", [0x42, 0], .truncated),
    object("data with a count that is not an integer", [0x4F, 0x51, 1], .malformed),
    // The next byte is not in an object, so it cannot be the integer with the count.
    object("data whose count is cut off", [0x4F], .malformed),
    object("data with the largest count", [0x4F, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255], .truncated),
    object("data with a negative count", [0x4F, 0x13, 255, 255, 255, 255, 255, 255, 255, 255], .malformed),
    object("an ASCII string with a byte above 7F", [0x51, 0x80], .malformed, at: 9),
    object("an ASCII string cut short", [0x53, 0x61], .truncated),
    object("a UTF-16 string cut short", [0x62, 0, 0x61], .truncated),
    object("half a surrogate pair", [0x61, 0xD8, 0x00], .malformed, at: 9),
    object("a UID of 9 bytes", [0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0], .malformed),
    object("an array cut short", [0xA2, 0], .truncated),
    object("an array whose size overflows", [0xAF, 0x13, 0x7F, 255, 255, 255, 255, 255, 255, 255], .truncated),
    object("a dictionary without values", [0xD1, 0], .truncated),
  ]

  @Test(
    "A binary property list with a fault is rejected with the reason and the offset",
    arguments: faultyStructures + faultyObjects)
  func rejected(_ input: FaultyInput) {
    input.check(.binaryPlist) { bytes throws(FormatError) in try BinaryPlist.decode(bytes) }
  }

  @Test("An integer of 16 bytes is read if its value fits into 64 bits")
  func wideIntegers() throws {
    let negative = PlistParts([0x14] + [UInt8](repeating: 0xFF, count: 16)).bytes
    #expect(try BinaryPlist.decode(negative) == .integer(-1))
    let small = PlistParts([0x14] + [UInt8](repeating: 0, count: 15) + [9]).bytes
    #expect(try BinaryPlist.decode(small) == .integer(9))
  }

  @Test("A real number of 4 bytes is read")
  func narrowReal() throws {
    #expect(try BinaryPlist.decode(PlistParts([0x22, 0x3F, 0x80, 0, 0]).bytes) == .real(1))
  }

  @Test("A property list with the maximum number of levels is read, and one more level is rejected")
  func depth() throws {
    func nested(_ levels: Int) -> PropertyValue { (1..<levels).reduce(.array([])) { value, _ in .array([value]) } }
    let limit = BinaryPlist.Limits.standard.maximumDepth
    let deepest = try BinaryPlist.encode(nested(limit))
    #expect(try BinaryPlist.decode(deepest) == nested(limit))
    #expect { try BinaryPlist.encode(nested(limit + 1)) } throws: { ($0 as? FormatError)?.code == .overLimit }
    var limits = BinaryPlist.Limits.standard
    limits.maximumDepth = limit - 1
    #expect { try BinaryPlist.decode(deepest, limits: limits) } throws: { ($0 as? FormatError)?.code == .overLimit }
  }

  @Test("A property list with the maximum number of bytes is read, and one more byte is rejected")
  func byteCount() throws {
    let bytes = Self.array.bytes
    let exact = BinaryPlist.Limits(maximumByteCount: bytes.count, maximumDepth: 2, valuesPerByte: 1)
    #expect(try BinaryPlist.decode(bytes, limits: exact) == .array([.string("a")]))
    var limits = exact
    limits.maximumByteCount -= 1
    #expect { try BinaryPlist.decode(bytes, limits: limits) } throws: { ($0 as? FormatError)?.code == .overLimit }
  }

  @Test("Shared containers that expand to a billion values are rejected, but a few shared containers are read")
  func sharedContainers() throws {
    // Each array refers twice to the next array, and the last array to a string.
    func doubling(_ levels: Int) -> [UInt8] {
      var parts = PlistParts()
      for level in 0..<levels { parts.objects.append([0xA2, UInt8(level + 1), UInt8(level + 1)]) }
      parts.objects.append([0x51, 0x61])
      return parts.bytes
    }
    #expect { try BinaryPlist.decode(doubling(30)) } throws: { ($0 as? FormatError)?.code == .overLimit }
    #expect(try BinaryPlist.decode(doubling(3)).arrayValue?.count == 2)
  }

  @Test("Overlapping objects of a property list are not copied repeatedly")
  func overlappingObjects() throws {
    let data: [UInt8] = [0x4F, 0x10, 100] + [UInt8](repeating: 7, count: 100)
    // An array of objects that are all at the same offset.
    func overlapping(_ count: UInt8) -> [UInt8] {
      let array = [0xAF, 0x10, count] + (1...count).map(\.self)
      return PlistParts(array, data).with { parts in
        parts.offsets = [8] + [UInt8](repeating: UInt8(8 + array.count), count: Int(count))
        parts.count = UInt64(count) + 1
      }.bytes
    }
    #expect(try BinaryPlist.decode(overlapping(1)).arrayValue == [.data([UInt8](repeating: 7, count: 100))])
    #expect { try BinaryPlist.decode(overlapping(40)) } throws: { ($0 as? FormatError)?.code == .overLimit }
  }

  @Test("A property list with the maximum number of values per byte is read, and rejected if it is one byte shorter")
  func valuesPerByte() throws {
    // The outer array, ten times the inner array, and ten strings in each: 111 values.
    func plist(paddedBy paddingByteCount: Int) -> [UInt8] {
      let outer = [0xAA] + [UInt8](repeating: 1, count: 10)
      let inner = [0xAA] + [UInt8](repeating: 2, count: 10)
      return PlistParts(outer, inner, [0x51, 0x61], [UInt8](repeating: 0, count: paddingByteCount)).bytes
    }
    let limits = BinaryPlist.Limits(maximumByteCount: 1000, maximumDepth: 10, valuesPerByte: 1)
    let exact = plist(paddedBy: 43)
    #expect(exact.count == 111)
    #expect(try BinaryPlist.decode(exact, limits: limits).arrayValue?.count == 10)
    let short = plist(paddedBy: 42)
    #expect { try BinaryPlist.decode(short, limits: limits) } throws: { ($0 as? FormatError)?.code == .overLimit }
  }

  @Test("Truncating a property list or flipping any of its bits does not crash the reader")
  func damage() throws {
    let bytes = try BinaryPlist.encode(
      .dictionary(["a": .array([.integer(70_000), .string("é"), .uid(1)]), "b": .data([1]), "c": .real(1)]))
    readDamagedVariants(of: bytes) { _ = try? BinaryPlist.decode($0) }
    for count in bytes.indices { #expect(throws: FormatError.self) { try BinaryPlist.decode(Array(bytes[..<count])) } }
  }
}
