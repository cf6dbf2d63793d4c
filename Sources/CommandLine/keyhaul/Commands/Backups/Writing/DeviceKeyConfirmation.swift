import KeyhaulKit
import Reports

/// Makes sure that `rekey` uses the right device key: an item confirms it, or the user accepts it.
struct DeviceKeyConfirmation {
  private let unlocker: BackupUnlocker
  /// Whether `--accept-unproven-key` was given.
  private let acceptsUnprovenKey: Bool

  init(_ unlocker: BackupUnlocker, acceptsUnprovenKey: Bool) {
    self.unlocker = unlocker
    self.acceptsUnprovenKey = acceptsUnprovenKey
  }

  private var loaded: LoadedBackup { unlocker.loaded }
  private var session: Session { unlocker.session }

  /// Returns the device key to try first, with its fallbacks. Rejects the command if no device key is available.
  ///
  /// - Parameter action: The action for the message: "set a password on".
  func availableKey(to action: String) throws -> DeviceKeyCandidate {
    if let deviceKey = try unlocker.deviceKey() { return deviceKey }
    // A device with this name may exist, but have a different key.
    let device = "the source device" + (loaded.archive.device.name.map { ", which calls itself \($0)" } ?? "")
    throw CommandError.usage(
      "cannot \(action) \(loaded.name) without its device's key",
      why: "without a password, the keychain's keys are wrapped with the device key of \(device)",
      try: "--device-key-file, or --home with the folder that contains that device")
  }

  /// Checks a device key, and then its fallbacks, against the items. If no item needs a device key,
  /// `--accept-unproven-key` or the user's consent is required, because no device can decrypt a backup that was written
  /// with a wrong key.
  ///
  /// - Returns: The key, and whether an item confirms it.
  func confirm(
    _ deviceKey: DeviceKeyCandidate, with key: BackupKey
  ) throws -> (key: DeviceKeyCandidate, isProven: Bool) {
    let opened = try openIntact(with: key, deviceKey)
    switch opened.deviceKeyVerification {
    case .proven:
      unlocker.reportDeviceKeySource(deviceKey)
      return (deviceKey, true)
    case .mixed(let unprovenClasses):
      let classes = unprovenClasses.map { String($0.rawValue) }
      throw CommandError(
        .refused, "Keyhaul cannot confirm every class key of \(loaded.name)",
        why:
          "the device key decrypts some items, but none of class \(HumanReadable.list(classes)); with a wrong "
          + "key, those items would be lost for good",
        try: "another copy")
    case .foreign(let itemCount):
      if let fallback = deviceKey.fallback {
        unlocker.warnAboutKeyOfOtherDevice()
        return try confirm(fallback, with: key)
      }
      throw CommandError(
        .refused, "this is not the device key of \(loaded.name)'s source device",
        why: "it decrypts none of the \(HumanReadable.count(itemCount, "item")) that need such a key",
        try: "the 0x835 key of that device")
    case .unknown, .noItems:
      try confirmUnprovenKey(deviceKey, hasItems: !opened.items.isEmpty)
      return (deviceKey, false)
    }
  }

  /// Decrypts the backup. Rejects a damaged backup, because new files and digests would hide the damage.
  private func openIntact(with key: BackupKey, _ deviceKey: DeviceKeyCandidate) throws(CommandError) -> UnlockedBackup {
    let opened: UnlockedBackup
    do throws(KeyhaulError) {
      opened = try loaded.archive.open(with: key, deviceKey: deviceKey.key, for: .rewriting)
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
    if let damage = opened.keybagDamage { throw CommandError.damagedKeybag(of: loaded.name, report: damage) }
    if let damage = opened.damage.first {
      throw CommandError(
        .damaged, "\(loaded.name) is damaged", why: damage.description,
        try: "keyhaul verify \(ShellQuoting.quote(loaded.name)) shows what can be saved")
    }
    return opened
  }

  /// Makes sure that the user accepts a device key that no item confirms.
  ///
  /// - Throws: `.refused` if the flag is missing and Keyhaul cannot ask; `.failed` if the user does not agree.
  private func confirmUnprovenKey(_ deviceKey: DeviceKeyCandidate, hasItems: Bool) throws(CommandError) {
    guard !acceptsUnprovenKey else { return }
    let keyDescription = deviceKey.virtualDeviceName.map { "the key of \($0)" } ?? "the given device key"
    let reason = hasItems ? "no item in it needs a device key" : "it has no items"
    guard let terminal = session.terminal() else {
      throw CommandError(
        .refused, "nothing confirms the device key for \(loaded.name)",
        why: "\(reason), so Keyhaul cannot check \(keyDescription); with a wrong key, no device could decrypt the "
          + "result",
        try: "--accept-unproven-key, if you are sure that the key is right")
    }
    try session.ask(
      "Nothing confirms \(keyDescription): \(reason). If the key is wrong, no device can decrypt \(loaded.name) "
        + "afterwards. Use it anyway?", on: terminal)
  }
}
