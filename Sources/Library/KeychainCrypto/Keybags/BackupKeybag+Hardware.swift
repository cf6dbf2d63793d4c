import Basics
public import KeychainFormats

/// Which class keys of a backup need the hardware of the device that made it, and which lack the layer that says so.
extension BackupKeybag {
  /// The classes that every device wraps with its hardware key before anything else. Class 12 is in no backup of a
  /// device; its key never leaves the hardware.
  ///
  /// Source: real backup keybags of iOS 9 to 18, with a password (5, 9-11) and without one (5-11); Apple Platform
  /// Security, "Keybags for Data Protection".
  static func hardwareClasses(hasPassword: Bool) -> Set<KeyClass> {
    let bound: Set<KeyClass> = [
      .recovery, .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
      .whenPasscodeSetThisDeviceOnly,
    ]
    return hasPassword ? bound : bound.union(migratable)
  }

  /// The classes whose keys lack the hardware's layer though every device puts it on them: with a password, items of
  /// this device only would open on any device; without one, everybody can open the items, and anybody can have written
  /// them. In ascending order, each once.
  ///
  /// A record without `WRAP` is damaged, and is not among them.
  public static func classesWithoutHardware(of keybag: Keybag, hasPassword: Bool) -> [KeyClass] {
    let bound = hardwareClasses(hasPassword: hasPassword)
    let lacking = keybag.classKeys.compactMap { record -> KeyClass? in
      guard let keyClass = record.keyClass, bound.contains(keyClass), let wrap = record.wrap,
        !wrap.contains(.device)
      else { return nil }
      return keyClass
    }
    return Set(lacking).sorted()
  }

  /// The classes of a backup with a password whose keys are wrapped with the hardware though no device does that: what is
  /// under them would seem bound to a device, and an item that moves would seem to stay.
  public static func classesWithNeedlessHardware(of keybag: Keybag) -> [KeyClass] {
    let bound = hardwareClasses(hasPassword: true)
    return classes(of: keybag) { record, keyClass in
      (1...11).contains(keyClass.rawValue) && !bound.contains(keyClass) && record.wrap == [.device, .password]
    }
  }

  /// The classes of a backup with a password whose keys are whole without it: the hardware alone would open them.
  public static func classesWithoutPassword(of keybag: Keybag) -> [KeyClass] {
    classes(of: keybag) { record, _ in record.wrap == .device && record.wrappedKey?.count == 32 }
  }

  private static func classes(
    of keybag: Keybag, where isMeant: (Keybag.ClassKey, KeyClass) -> Bool
  ) -> [KeyClass] {
    let found = keybag.classKeys.compactMap { record in
      record.keyClass.flatMap { isMeant(record, $0) ? $0 : nil }
    }
    return Set(found).sorted()
  }

  /// - Throws: `.hardwareLayerMissing` naming the classes.
  static func requireHardwareLayers(of keybag: Keybag, hasPassword: Bool) throws(DataProtectionError) {
    let classes = classesWithoutHardware(of: keybag, hasPassword: hasPassword)
    guard classes.isEmpty else { throw .hardwareLayerMissing(classes) }
  }
}

extension DataProtectionError {
  static func hardwareLayerMissing(_ classes: [KeyClass]) -> DataProtectionError {
    let names = Amounts.list(classes.map { String($0.rawValue) })
    return DataProtectionError(
      .hardwareLayerMissing,
      classes.count == 1
        ? "the key of class \(names) is not wrapped with the hardware of any device"
        : "the keys of classes \(names) are not wrapped with the hardware of any device")
  }
}
