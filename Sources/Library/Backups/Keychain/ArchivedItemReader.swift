import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// A backup after its keys were tried on it, as `OpenedArchive` is, but that no item is held: each is opened when it is
/// its turn, for whoever looks at it and goes on.
package struct ArchivedItemReader: ~Copyable, Sendable {
  private let keychain: UnlockedKeychain
  private let keys: ClassKeys
  /// What the items prove about the device key that was tried on them; nothing where none was tried, or no item needs one.
  package let hardware: HardwareProof

  /// - Parameters:
  ///   - archive: The backup as it was opened.
  ///   - key: What its password comes to.
  ///   - deviceKey: The hardware key of a device that may have made it. The items that need one are tried with it at once.
  ///   - use: What it is opened for.
  /// - Throws: As of `OpenedArchive`.
  package init(
    _ archive: BackupArchive, key: borrowing ArchiveKey, deviceKey: borrowing DeviceKey?, for use: ArchiveUse
  ) throws(ArchivedKeychainError) {
    let keys = try key.classKeys(deviceKey: deviceKey)
    let keychain = try UnlockedKeychain(archive, key: key, keys: keys, for: use)
    hardware = try Self.proof(of: keychain.index, with: keys)
    self.keychain = keychain
    self.keys = keys
  }

  private static func proof(
    of file: KeychainIndex, with keys: borrowing ClassKeys
  ) throws(ArchivedKeychainError) -> HardwareProof {
    var proof = HardwareProof()
    guard keys.classes.contains(where: { keys.availability(of: $0) == .availableThroughDevice }) else { return proof }
    try ArchivedItem.openPortions(of: file, with: keys, only: .availableThroughDevice) { proof.take($0) }
    return proof
  }

  /// What is wrong with single class keys.
  package var keybagDamage: String? { keychain.keybagDamage }
  /// What was unusual about the archive, and tolerated.
  package var notes: [ArchiveNote] { keychain.notes }

  /// Opens every item, some at a time and in the archive's order. They are gone with their portion.
  ///
  /// - Parameters:
  ///   - translate: Makes an error of the archive one of the caller's.
  ///   - body: Takes a portion; where it throws, no further one comes.
  /// - Throws: What `body` throws, and what the system did not give of the archive.
  package borrowing func forEachPortion<Failure: Error>(
    translating translate: (ArchivedKeychainError) -> Failure, _ body: ([ArchivedItem]) throws(Failure) -> Void
  ) throws(Failure) {
    var failure: Failure?
    func goesOn() -> Bool { failure == nil }
    do throws(ArchivedKeychainError) {
      try ArchivedItem.openPortions(of: keychain.index, with: keys, shouldContinue: goesOn) { items in
        do throws(Failure) { try body(items) } catch { failure = error }
      }
    } catch {
      throw failure ?? translate(error)
    }
    if let failure { throw failure }
  }

  /// Why an item does not open here; `nil` where it opens.
  package func reason(of item: ArchivedItem) -> Reason? {
    item.reason(hardware: hardware, backupHasPassword: keychain.hasPassword)
  }
}
