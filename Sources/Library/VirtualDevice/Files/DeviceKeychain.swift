import Basics
import KeychainFormats
import Keychains

/// A device's keychain database as a file: made, opened, and changed as part of a change of the whole device.
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

  /// - Parameters:
  ///   - isForReading: Whether the database's rows stay as they are.
  ///   - shouldContinue: Whether a change of many items goes on.
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

  /// Does what a change asks for. Can be done again after it was cut off. No one else may have the database open.
  ///
  /// - Returns: How many items it destroyed one by one.
  @discardableResult
  func apply(_ action: DeviceChange.KeychainAction) throws(KeyhaulError) -> Int {
    switch action {
    case .keep: break
    case .empty:
      // The log goes first: without its database it means nothing, and must not meet the new one.
      for path in DeviceFile.keychainPaths(in: directory) { try files.remove(path) }
      try makeEmpty()
    case .dropPasscodeItems:
      let store = try open()
      try files.announceDatabaseChange(of: path)
      // The column tells their class. They cannot be decrypted, because the key of the class is removed with them.
      let count = try store.removeAll(protectedBy: .whenPasscodeSetThisDeviceOnly)
      try store.close()
      return count
    }
    return 0
  }
}
