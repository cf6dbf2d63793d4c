public import Basics
public import KeychainFormats

/// The keys at hand for a database's items: of a Simulator in the database itself, of a device from its keybag or from an
/// extraction that has unwrapped them.
///
/// May be used from several threads; they take turns with the ciphers.
public final class DatabaseKeys: Sendable {
  /// The key of a class that opens the keys of attributes.
  enum MetadataKey: Sendable {
    case wrapped(SensitiveBytes)
    case unwrapped(ClassKeys.HeldKey)
  }

  let metadataKeys: [KeyClass: MetadataKey]
  let classKeys: [KeyClass: ClassKeys.HeldKey]
  private let workspace: Locked<BoxWorkspace>

  /// Keys of classes and items are 32 bytes.
  static let keyByteCount = 32

  /// Takes the keys that there are. What is given is kept in memory that is wiped.
  ///
  /// - Parameters:
  ///   - wrappedMetadataKeys: The column `data` of the table `metadatakeys` by its class. An empty one counts as absent.
  ///   - metadataKeys: The same keys, unwrapped, 32 bytes each; one of these goes before a wrapped one.
  ///   - classKeys: The keys of a device's classes, 32 bytes each: its own keybag's, not a backup's.
  /// - Throws: `.malformed` for a key of another length.
  public init(
    wrappedMetadataKeys: [KeyClass: SensitiveBytes] = [:], metadataKeys: [KeyClass: SensitiveBytes] = [:],
    classKeys: [KeyClass: SensitiveBytes] = [:]
  ) throws(DataProtectionError) {
    func held(_ keys: [KeyClass: SensitiveBytes]) throws(DataProtectionError) -> [KeyClass: ClassKeys.HeldKey] {
      var held: [KeyClass: ClassKeys.HeldKey] = [:]
      for (keyClass, key) in keys {
        guard key.count == Self.keyByteCount else {
          throw DataProtectionError(
            .malformed, "the key of class \(keyClass.rawValue) is \(key.count) bytes; it has \(Self.keyByteCount)")
        }
        held[keyClass] = ClassKeys.HeldKey(key.withBytes { Secret(copying: $0) })
      }
      return held
    }
    let all = wrappedMetadataKeys.filter { !$0.value.isEmpty }.mapValues(MetadataKey.wrapped)
    let unwrapped = try held(metadataKeys).mapValues(MetadataKey.unwrapped)
    let ofClasses = try held(classKeys)
    let workspace = try BoxWorkspace()
    self.metadataKeys = all.merging(unwrapped) { _, unwrapped in unwrapped }
    self.classKeys = ofClasses
    self.workspace = Locked(workspace)
  }

  /// Lends the ciphers to one caller at a time.
  func withWorkspace<Result: ~Copyable, Failure: Error>(
    _ body: (borrowing BoxWorkspace) throws(Failure) -> sending Result
  ) throws(Failure) -> Result {
    try workspace.withLock { (workspace) throws(Failure) in try body(workspace) }
  }
}
