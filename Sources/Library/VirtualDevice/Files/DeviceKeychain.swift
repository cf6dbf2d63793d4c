import Basics
import KeychainFormats
import Keychains

/// The file of a device's keychain database.
struct DeviceKeychain {
  let directory: String
  let device: String
  let files: DeviceFiles

  private var path: String { DeviceFile.keychain.path(in: directory) }

  func makeEmpty() throws(KeyhaulError) {
    try files.announceDatabaseChange(of: path)
    try KeychainStore.create(at: path).close()
    try files.syncDirectory(directory)
  }

  /// Opens the database.
  ///
  /// - Parameters:
  ///   - durability: The time from which a change survives a power failure.
  ///   - isForReading: Whether rows are left as they are.
  ///   - shouldContinue: Called between the items of a large change. If it returns `false`, the change is rolled back.
  /// - Throws: `.deviceDamaged` if the database is missing, or an error of the keychain.
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

  /// Performs the keychain part of a change. It can be repeated after an interruption. No other process may have the
  /// database open.
  ///
  /// - Returns: The number of items that were deleted individually.
  @discardableResult
  func apply(_ action: DeviceChange.KeychainAction) throws(KeyhaulError) -> Int {
    switch action {
    case .keep: break
    case .empty:
      // The log is removed first, because it must not be applied to the new database.
      for path in DeviceFile.keychainPaths(in: directory) { try files.remove(path) }
      try makeEmpty()
    case .dropPasscodeItems:
      let store = try open()
      try files.announceDatabaseChange(of: path)
      // The column identifies the class. The items cannot be decrypted, because the class key is removed with them.
      let count = try store.removeAll(protectedBy: .whenPasscodeSetThisDeviceOnly)
      try store.close()
      return count
    }
    return 0
  }
}
