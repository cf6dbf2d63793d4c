import Basics
import KeychainFormats
import Keychains

/// Creates, opens and changes the keychain database of a device.
struct DeviceKeychain {
  /// The path of the device's folder.
  let directory: String
  /// The device's name, for errors.
  let device: String
  let files: DeviceFiles

  private var path: String { DeviceFile.keychain.path(in: directory) }

  /// Creates an empty database. No database may exist.
  func createEmpty() throws(KeyhaulError) {
    try files.announceDatabaseChange(of: path)
    try KeychainStore.create(at: path).close()
    try files.syncDirectory(directory)
  }

  /// Opens the database.
  ///
  /// - Parameters:
  ///   - durability: Whether a change is safe from a power failure after each call, or only after the database is
  ///     closed.
  ///   - isForReading: Whether to leave the stored items unchanged. Otherwise their empty data is normalized, as in
  ///     `KeychainStore.open`.
  ///   - shouldContinue: Returns whether to go on with a large change. It is called between two items; `false` undoes
  ///     the change.
  /// - Throws: `.deviceDamaged` if the database is missing, or the errors of `KeychainStore.open`.
  func open(
    _ durability: KeychainStore.Durability = .eachCall, isForReading: Bool = false,
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) throws(KeyhaulError) -> KeychainStore {
    guard try files.kind(of: path) != nil else {
      throw KeyhaulError(.deviceDamaged, device, "its keychain (keychain-2.db) is missing")
    }
    return try KeychainStore.open(
      at: path, durability: durability, isForReading: isForReading, shouldContinue: shouldContinue)
  }

  /// Applies the part of a device change that concerns the keychain. The caller must hold the device's file
  /// lock.
  ///
  /// After an interruption, the same action can be applied again.
  ///
  /// - Returns: The number of items that `.dropPasscodeItems` deleted; 0 for the other actions.
  @discardableResult
  func apply(_ action: DeviceChange.KeychainAction) throws(KeyhaulError) -> Int {
    switch action {
    case .keep: break
    case .empty:
      // SQLite's log is removed before the database. If only the log remained, SQLite would apply it to the new
      // database.
      for path in DeviceFile.keychainPaths(in: directory) { try files.remove(path) }
      try createEmpty()
    case .dropPasscodeItems:
      let store = try open()
      try files.announceDatabaseChange(of: path)
      // The change also removes the class key, so the rows are selected by their class, without decryption.
      let count = try store.removeAll(protectedBy: .whenPasscodeSetThisDeviceOnly)
      try store.close()
      return count
    }
    return 0
  }
}
