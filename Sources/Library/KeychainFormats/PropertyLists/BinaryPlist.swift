import Basics

/// Binary property lists, version 00: a reader with limits, and a writer that stores each string once.
///
/// Source: Apple CoreFoundation, `CFBinaryPList.c`.
package enum BinaryPlist {
  /// Limits for reading a property list.
  package struct Limits: Sendable, Hashable {
    /// The maximum number of bytes.
    package var maximumByteCount: Int
    /// The maximum number of levels of containers, including the root value.
    package var maximumDepth: Int
    /// The maximum number of values for each byte of the file. A file without shared containers has fewer values than
    /// bytes, because every reference takes at least one byte. A few shared containers could represent any number of
    /// values.
    package var valuesPerByte: Int
    /// The maximum number of objects in the file, and of values that are created from the objects. A value takes 16
    /// bytes of memory and a container about 80, but each may take only a single byte of the file.
    package var maximumValueCount: Int

    /// Creates limits; a list that exceeds one fails with `.overLimit`.
    package init(maximumByteCount: Int, maximumDepth: Int, valuesPerByte: Int, maximumValueCount: Int = .max) {
      self.maximumByteCount = maximumByteCount
      self.maximumDepth = maximumDepth
      self.valuesPerByte = valuesPerByte
      self.maximumValueCount = maximumValueCount
    }

    /// For a backup's manifest, status and computer information, which have about ten values for each app.
    package static let standard = Limits(
      maximumByteCount: 256 << 20, maximumDepth: 128, valuesPerByte: 2, maximumValueCount: 1_000_000)
    /// For a keychain file: three objects and four values for each of `KeychainBackupFile.maximumEntryCount` items, and
    /// some for unknown keys.
    package static let keychainFile = Limits(
      maximumByteCount: 1 << 30, maximumDepth: 128, valuesPerByte: 2, maximumValueCount: 10_000_000)
    /// For the record of one file, which has some dozens of values.
    package static let small = Limits(
      maximumByteCount: 16 << 20, maximumDepth: 32, valuesPerByte: 2, maximumValueCount: 10_000)
    /// For one item in its older format: some dozens of values, including the secret.
    package static let item = Limits(
      maximumByteCount: DERPropertyList.maximumByteCount, maximumDepth: 32, valuesPerByte: 2, maximumValueCount: 10_000)
  }

  /// Decodes a property list.
  ///
  /// - Throws: `.malformed`, `.truncated`, `.unsupportedVersion`, or `.overLimit` for one of `limits`.
  package static func decode(_ bytes: [UInt8], limits: Limits = .standard) throws(FormatError) -> PropertyValue {
    try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue in
      let document = try BinaryPlistReader(buffer, limits: limits)
      var decoder = BinaryPlistDecoder(document, limits: limits)
      return try decoder.value(at: document.rootIndex)
    }
  }

  /// Encodes a property list. Equal strings are stored once; the entries of dictionaries keep their order.
  ///
  /// - Throws: `.unencodable` for a null, `.overLimit` for more levels than `Limits.standard` accepts.
  package static func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    var writer = BinaryPlistWriter()
    return try writer.encode(value)
  }

  /// Edits a property list. Malformed strings are preserved byte for byte.
  ///
  /// - Parameters:
  ///   - bytes: The property list.
  ///   - limits: The limits for reading the list.
  ///   - change: Edits the value, in which placeholders represent malformed strings.
  /// - Throws: The errors of `decode` and `encode`, and the error of `change`.
  static func editing(
    _ bytes: [UInt8], limits: Limits = .standard, _ change: (inout PropertyValue) throws(FormatError) -> Void
  ) throws(FormatError) -> [UInt8] {
    let (value, malformedStrings) = try bytes.withRawBytes {
      (buffer: UnsafeRawBufferPointer) throws(FormatError) -> (PropertyValue, MalformedStrings?) in
      let document = try BinaryPlistReader(buffer, limits: limits)
      var decoder = BinaryPlistDecoder(document, limits: limits, keeping: MalformedStrings())
      return (try decoder.value(at: document.rootIndex), decoder.malformedStrings)
    }
    var changed = value
    try change(&changed)
    var writer = BinaryPlistWriter(malformedStrings)
    return try writer.encode(changed)
  }

  static let magic = Array("bplist".utf8)
  static let version = Array("00".utf8)
  static let trailerByteCount = 32
}
