import Basics
package import KeychainFormats

/// Finds class keys of a backup that require the source device, or lack the wrap that real devices add.
extension BackupKeybag {
  /// Returns the classes that every device also wraps with its device key. The key of class 12 never leaves the hardware,
  /// so no backup of a device contains this class.
  ///
  /// Source: real backup keybags of iOS 9 to 18, with a password (5, 9-11) and without one (5-11); Apple Platform
  /// Security, "Keybags for Data Protection".
  static func deviceWrappedClasses(hasPassword: Bool) -> Set<KeyClass> {
    let thisDeviceOnly: Set<KeyClass> = [
      .recovery, .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
      .whenPasscodeSetThisDeviceOnly,
    ]
    return hasPassword ? thisDeviceOnly : thisDeviceOnly.union(migratable)
  }

  /// Returns the classes that lack the device wrap although every device adds it, in ascending order without
  /// duplicates.
  ///
  /// In a backup with a password, any device could decrypt the this-device-only items of such a class. In a backup
  /// without a password, anyone could decrypt the items of the class, and anyone may have written them. A record without
  /// `WRAP` is damaged and not included.
  package static func classesWithoutDeviceWrap(in keybag: Keybag, hasPassword: Bool) -> [KeyClass] {
    let deviceWrapped = deviceWrappedClasses(hasPassword: hasPassword)
    return classes(in: keybag) { record, keyClass in
      guard let wrap = record.wrap else { return false }
      return deviceWrapped.contains(keyClass) && !wrap.contains(.device)
    }
  }

  /// Returns the classes of an encrypted backup that have a device wrap although no device adds one. Their items would
  /// seem to be bound to a device and to stay behind.
  package static func classesWithUnexpectedDeviceWrap(in keybag: Keybag) -> [KeyClass] {
    let deviceWrapped = deviceWrappedClasses(hasPassword: true)
    return classes(in: keybag) { record, keyClass in
      (1...11).contains(keyClass.rawValue) && !deviceWrapped.contains(keyClass) && record.wrap == [.device, .password]
    }
  }

  /// Returns the classes of an encrypted backup whose keys are not wrapped with the password. The device key alone
  /// unwraps them.
  package static func classesWithoutPasswordWrap(in keybag: Keybag) -> [KeyClass] {
    // The device wrap adds no bytes to the 32 bytes of a class key.
    classes(in: keybag) { record, _ in record.wrap == .device && record.wrappedKey?.count == 32 }
  }

  /// Returns the classes whose records match, in ascending order without duplicates.
  private static func classes(
    in keybag: Keybag, where matches: (Keybag.ClassKey, KeyClass) -> Bool
  ) -> [KeyClass] {
    let keyClasses = keybag.classKeys.compactMap { record in
      record.keyClass.flatMap { matches(record, $0) ? $0 : nil }
    }
    return Set(keyClasses).sorted()
  }

  /// Checks that no class lacks its device wrap.
  ///
  /// - Throws: `.hardwareLayerMissing` with the classes.
  static func requireDeviceWraps(in keybag: Keybag, hasPassword: Bool) throws(DataProtectionError) {
    let classes = classesWithoutDeviceWrap(in: keybag, hasPassword: hasPassword)
    guard classes.isEmpty else { throw .hardwareLayerMissing(classes) }
  }
}

extension DataProtectionError {
  static func hardwareLayerMissing(_ classes: [KeyClass]) -> DataProtectionError {
    let names = HumanReadable.list(classes.map { String($0.rawValue) })
    return DataProtectionError(
      .hardwareLayerMissing,
      classes.count == 1
        ? "the key of class \(names) is not wrapped with a device key"
        : "the keys of classes \(names) are not wrapped with a device key")
  }
}
