import Basics

/// The binary property list, version 00: reading with limits, and writing with each text stored once.
///
/// Source: Apple CoreFoundation, `CFBinaryPList.c`.
public enum BinaryPlist {
  /// What a file may ask for before it is refused.
  public struct Limits: Sendable, Hashable {
    /// The most bytes that a list may have.
    public var maximumByteCount: Int
    /// Levels of containers, the outermost value counted.
    public var maximumDepth: Int
    /// How many values may be read for each byte of the file. Every reference takes at least one byte, so a list
    /// whose containers are not shared stays below one; a few shared ones can otherwise stand for any number.
    public var valuesPerByte: Int
    /// Objects that the file may have, and values that may be made of them. A value takes sixteen bytes of memory and a
    /// container some eighty, where the file needs a single byte for either.
    public var maximumValueCount: Int

    /// Creates limits; what a list asks for beyond them is `.overLimit`.
    public init(maximumByteCount: Int, maximumDepth: Int, valuesPerByte: Int, maximumValueCount: Int = .max) {
      self.maximumByteCount = maximumByteCount
      self.maximumDepth = maximumDepth
      self.valuesPerByte = valuesPerByte
      self.maximumValueCount = maximumValueCount
    }

    /// For a backup's manifest, its status and what the computer wrote: some ten values for each of its apps.
    public static let standard = Limits(
      maximumByteCount: 256 << 20, maximumDepth: 128, valuesPerByte: 2, maximumValueCount: 1_000_000)
    /// For a keychain's file: three objects and four values for each of `KeychainBackupFile.maximumEntryCount` items,
    /// and room for keys that are not known here.
    public static let keychainFile = Limits(
      maximumByteCount: 1 << 30, maximumDepth: 128, valuesPerByte: 2, maximumValueCount: 10_000_000)
    /// For one file's record, which has some dozens of values.
    public static let small = Limits(
      maximumByteCount: 16 << 20, maximumDepth: 32, valuesPerByte: 2, maximumValueCount: 10_000)
    /// For one item in its older form: some dozens of values, one of which is the secret.
    public static let item = Limits(
      maximumByteCount: DERPropertyList.maximumByteCount, maximumDepth: 32, valuesPerByte: 2, maximumValueCount: 10_000)
  }

  /// Reads a whole list.
  ///
  /// - Throws: `.malformed`, `.truncated`, `.unsupportedVersion`, or `.overLimit` for one of `limits`.
  public static func decode(_ bytes: [UInt8], limits: Limits = .standard) throws(FormatError) -> PropertyValue {
    try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue in
      var builder = BinaryPlistBuilder(try BinaryPlistReader(buffer, limits: limits), limits: limits)
      return try builder.value(at: builder.document.rootIndex)
    }
  }

  /// Writes a list. Equal texts are stored once; the entries of dictionaries keep their order.
  ///
  /// - Throws: `.unencodable` for a null, `.overLimit` for more levels than `Limits.standard` accepts.
  public static func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    var writer = BinaryPlistWriter()
    return try writer.encode(value)
  }

  /// Changes a list and writes it again. A text that is not well formed stays what it is, byte for byte.
  ///
  /// - Parameter change: Takes the list; a text that is not well formed is another one in it.
  /// - Throws: As `decode` does for everything else, as `encode`, and what `change` throws.
  static func editing(
    _ bytes: [UInt8], limits: Limits = .standard, _ change: (inout PropertyValue) throws(FormatError) -> Void
  ) throws(FormatError) -> [UInt8] {
    let (value, malformedTexts) = try bytes.withRawBytes {
      (buffer: UnsafeRawBufferPointer) throws(FormatError) -> (PropertyValue, MalformedTexts?) in
      let document = try BinaryPlistReader(buffer, limits: limits)
      var builder = BinaryPlistBuilder(document, limits: limits, keeping: MalformedTexts())
      return (try builder.value(at: document.rootIndex), builder.malformedTexts)
    }
    var changed = value
    try change(&changed)
    var writer = BinaryPlistWriter(malformedTexts)
    return try writer.encode(changed)
  }

  static let magic = Array("bplist".utf8)
  static let version = Array("00".utf8)
  static let trailerByteCount = 32
}
