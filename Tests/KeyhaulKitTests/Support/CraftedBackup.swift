import Backups
import KeychainFormats
import KeyhaulKit

@testable import KeychainCrypto

/// A backup that was written without a device: its class keys are random and wrapped as requested.
struct CraftedBackup {
  let setup: TestSetup
  var password: String?
  /// The classes whose keys are wrapped only with the password, in addition to the classes of files, 1 to 4.
  var unboundClasses: Set<UInt32>
  var items: [KeychainItem]
  var device = BackupDevice(
    identifier: "4C1F0A2B-9D3E5F60718293A4", name: "old-phone", productType: "iPhone15,2", productVersion: "18.1",
    buildVersion: nil, serialNumber: nil)

  func write(named name: String = "crafted", as packaging: TestSetup.Packaging = .tar) throws -> String {
    let random = SeededRandomSource(seed: name)
    let (keybag, keys) = try makeKeybag(random: random)
    let entries = try items.map { item in
      KeychainBackupFile.Entry(kind: item.kind, blob: try keys.seal(item, as: .backup, random: random).serialized())
    }
    let file = KeychainBackupFile(keybagUUID: keybag.uuidText, entries: entries)
    let contents = BackupContents(
      device: device, date: TestSetup.now, keybag: keybag, isEncrypted: password != nil, wasPasscodeSet: true,
      keychainFile: try file.serialized())
    let (path, destination) = setup.destination(name, packaging)
    _ = try BackupWriter().write(contents, keys: keys, random: random, to: destination, replace: true)
    return path
  }

  private func makeKeybag(random: SeededRandomSource) throws -> (Keybag, ClassKeys) {
    let deviceKey = try DeviceKey(Secret(copying: [UInt8](repeating: 1, count: 16)))
    let salt = try random.bytes(20)
    let secondStep = password == nil ? nil : Keybag.SecondStep(iterations: 1, salt: salt)
    let passcodeKey = try PasswordDerivation.passcodeKey(
      password: Secret(utf8: password ?? ""),
      parameters: .init(
        salt: salt, iterations: 10, sha256Step: secondStep.map { .init(salt: $0.salt, iterations: $0.iterations) }))
    let fileClasses: ClosedRange<UInt32> = 1...4
    let records = try (UInt32(1)...11).reversed().map { number in
      let isUnbound = fileClasses.contains(number) || unboundClasses.contains(number)
      return try ClassKeyWrapPolicy(
        keyClass: KeyClass(rawValue: number), wrap: isUnbound ? .password : [.device, .password]
      ).makeRecord(passcodeKey: passcodeKey, deviceKey: deviceKey, random: random)
    }
    let keybag = try Keybag(
      type: .backup, uuid: random.bytes(16), salt: salt, iterations: 10, secondStep: secondStep, classKeys: records)
    return (keybag, try keybag.unlock(passcodeKey: passcodeKey.copy(), deviceKey: deviceKey))
  }
}
