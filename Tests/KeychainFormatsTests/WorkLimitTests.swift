import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Small inputs that expand to much work")
struct WorkLimitTests {
  private func errorCode(_ body: () throws -> Void) -> FormatError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? FormatError)?.code
    }
  }

  private func limits(values: Int) -> BinaryPlist.Limits {
    .init(maximumByteCount: 1000, maximumDepth: 10, valuesPerByte: 2, maximumValueCount: values)
  }

  @Test("A property list with the maximum number of values is read, and one more value is rejected")
  func values() throws {
    // An array of three references to one string: four values.
    let bytes = PlistParts([0xA3, 1, 1, 1], [0x51, 0x61]).bytes
    #expect(try BinaryPlist.decode(bytes, limits: limits(values: 4)).arrayValue?.count == 3)
    #expect(errorCode { _ = try BinaryPlist.decode(bytes, limits: limits(values: 3)) } == .overLimit)
  }

  @Test("A long string may be reused for up to 16 bytes per byte of the file, and one more use is rejected")
  func sharedBytes() throws {
    // The string has 1 MiB. An array with 17 references to the string reuses it 16 times.
    let string: [UInt8] = [0x5F, 0x12, 0x00, 0x10, 0x00, 0x00] + Array(repeating: 0x61, count: 1 << 20)
    func file(_ count: UInt8) -> [UInt8] {
      PlistParts([0xAF, 0x10, count] + Array(repeating: 1, count: Int(count)), string).bytes
    }
    #expect(try BinaryPlist.decode(file(17)).arrayValue?.count == 17)
    #expect(errorCode { _ = try BinaryPlist.decode(file(18)) } == .overLimit)
  }

  @Test(
    "A property list with the maximum number of objects is read, even if nothing refers to them, and one more is rejected"
  )
  func objects() throws {
    let bytes = PlistParts([9], [9], [9], [9], [9]).bytes
    #expect(try BinaryPlist.decode(bytes, limits: limits(values: 5)) == .boolean(true))
    #expect(errorCode { _ = try BinaryPlist.decode(bytes, limits: limits(values: 4)) } == .overLimit)
  }

  @Test("343 bytes of nested arrays are rejected by every reader")
  func nestedArrays() {
    let bytes = CostlyPlists.nestedArrays
    #expect(bytes.count == 343)
    for limits in [BinaryPlist.Limits.standard, .keychainFile, .small] {
      #expect(errorCode { _ = try BinaryPlist.decode(bytes, limits: limits) } == .overLimit)
    }
    #expect(errorCode { _ = try FileRecord(archive: bytes) } == .malformed)
    #expect(errorCode { _ = try KeychainBackupFile(parsing: bytes) } == .malformed)
    #expect(
      errorCode { try bytes.withUnsafeBytes { _ = try KeychainItem(plistDictionary: $0, kind: .key) } } == .malformed)
  }

  @Test("A million elements of one byte each are rejected before memory is allocated for them")
  func manyElements() throws {
    // The values are the dictionary, its key, its value and the elements.
    let maximum = BinaryPlist.Limits.standard.maximumValueCount - 3
    #expect(
      try BinaryPlist.decode(CostlyPlists.manyElements(maximum)).dictionaryValue?["a"]?.arrayValue?.count == maximum)
    #expect(errorCode { _ = try BinaryPlist.decode(CostlyPlists.manyElements(maximum + 1)) } == .overLimit)
  }

  @Test("A manifest with 5,000 apps is within the limits")
  func realManifest() throws {
    var apps = PropertyDictionary()
    apps.entries = (0..<5_000).map { number in
      let app: PropertyDictionary = [
        "CFBundleIdentifier": .string("org.example.app\(number)"), "CFBundleVersion": .string("\(number)"),
        "ContainerContentClass": .string("Data/Application"), "Path": .string("/var/containers/\(number)"),
        "GroupContainers": .array([.string("group.\(number)"), .string("group.shared")]),
      ]
      return .init(key: .string("org.example.app\(number)"), value: .dictionary(app))
    }
    let value = PropertyValue.dictionary(["Applications": .dictionary(apps)])
    #expect(try BinaryPlist.decode(try BinaryPlist.encode(value)) == value)
  }

  // MARK: The keychain's file

  @Test("A keychain with very many items is within the limits if each has its own bytes")
  func realKeychain() throws {
    let entries = (0..<200_000).map { number in
      let bytes = (0..<20).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 4))) }
      return KeychainBackupFile.Entry(kind: .genericPassword, blob: bytes, persistentReference: [1] + bytes)
    }
    let file = try KeychainBackupFile(parsing: KeychainBackupFile(keybagUUID: nil, entries: entries).serialized())
    #expect(file.entries.count == entries.count && file.entries.last?.blob == entries.last?.blob)
  }

  @Test("190,000 items that share one blob are rejected before any is decrypted")
  func sharedBlob() {
    let bytes = CostlyPlists.sharedItem(entries: 190_000, blob: [UInt8](repeating: 7, count: 64 << 10))
    #expect(bytes.count < 260_000)
    #expect(errorCode { _ = try KeychainBackupFile(parsing: bytes) } == .overLimit)
  }

  @Test("Items that share one dictionary are rejected before there are very many of them")
  func sharedEntry() throws {
    // Each item uses 16 bytes of the limit, but its reference in the file raises the limit by one byte.
    let maximum = (KeychainBackupFile.maximumOverlap + CostlyPlists.sharedItem(entries: 0, blob: []).count) / 15
    let withinLimit = CostlyPlists.sharedItem(entries: maximum - 10, blob: [])
    let overLimit = CostlyPlists.sharedItem(entries: maximum + 10, blob: [])
    #expect(try KeychainBackupFile(parsing: withinLimit).entries.count > 69_000)
    #expect(errorCode { _ = try KeychainBackupFile(parsing: overLimit) } == .overLimit)
  }

  @Test("Items may share the allowed number of bytes beyond the file's size, and one more byte is rejected")
  func maximumOverlap() throws {
    let blob = [UInt8](repeating: 7, count: 500_000)
    let unpadded = CostlyPlists.sharedItem(entries: 4, blob: blob).count
    // Four blobs and the charge for four entries equal the file's size plus the maximum overlap.
    let padding = 4 * (blob.count + 16) - KeychainBackupFile.maximumOverlap - unpadded
    #expect(padding > 0)
    let exact = CostlyPlists.sharedItem(entries: 4, blob: blob, padding: padding)
    #expect(try KeychainBackupFile(parsing: exact).entries.map { $0.blob == blob } == [true, true, true, true])
    let short = CostlyPlists.sharedItem(entries: 4, blob: blob, padding: padding - 1)
    #expect(errorCode { _ = try KeychainBackupFile(parsing: short) } == .overLimit)
  }

  // MARK: Records

  @Test("A file record costs only its fields, because unreferenced objects are not read")
  func idleReferences() throws {
    let dense = CostlyPlists.fileRecord(unusedReferences: 1_000_000)
    let duration = try ProcessorTime.of {
      for _ in 0..<2_000 {
        let path = try FileRecord(archive: dense).relativePath
        #expect(path == "a")
      }
    }
    // A single complete reading would take longer than these 2,000.
    #expect(duration < .seconds(10))
  }

  @Test("A file record with the maximum number of keys is read, and one more key is rejected")
  func recordKeys() throws {
    let maximum = FileRecord.maximumKeyCount
    #expect(try FileRecord(archive: CostlyPlists.fileRecord(additionalKeys: maximum - 1)).relativePath == "a")
    #expect(errorCode { _ = try FileRecord(archive: CostlyPlists.fileRecord(additionalKeys: maximum)) } == .overLimit)
  }
}
