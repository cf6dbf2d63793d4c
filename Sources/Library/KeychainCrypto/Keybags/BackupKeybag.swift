import Basics
public import KeychainFormats

/// A keybag together with the keys it holds.
public struct UnlockedKeybag: Sendable {
  /// The bag as the manifest has it, with every key wrapped.
  public let keybag: Keybag
  /// The keys that its password, and the device's key where it was available, opened.
  public let classKeys: ClassKeys
}

/// Making the keybag of a new backup, and giving it another password.
///
/// Source: the class table of real backup keybags of iOS 9 to 18; Apple Platform Security, "Keybags for Data Protection".
public enum BackupKeybag {
  /// PBKDF2-HMAC-SHA256 rounds (`DPIC`) of every real backup since iOS 10.2.
  public static let standardRounds = 10_000_000
  /// PBKDF2-HMAC-SHA1 rounds (`ITER`) of every real backup.
  public static let lastRounds: UInt32 = 10_000
  /// The most rounds that a keybag is made with: what readers accept at their standard limit, less `lastRounds`.
  public static let maximumRounds = RoundLimit.standard - Int(lastRounds)
  static let saltSize = 20

  /// Makes a keybag with new class keys.
  ///
  /// With a password, the file classes and the migratable keychain classes are wrapped with it alone, 5 and 9-11 with it
  /// and the device key. Without one, the empty password takes its place and all keychain classes need the device key.
  ///
  /// - Parameters:
  ///   - password: `nil` for a backup without one.
  ///   - deviceKey: The hardware key of the device that the backup is made of.
  ///   - rounds: Of the first, slow round; 1 up to `maximumRounds`.
  ///   - random: The source of keys, salts and identifiers.
  ///   - progress: Told how far the derivation is; where it answers `false` it ends with `.cancelled`.
  /// - Throws: `.unsupported` for an empty password or a count of rounds that readers refuse.
  public static func make(
    password: borrowing Secret?, deviceKey: DeviceKey, rounds: Int = standardRounds,
    random: some RandomSource = SystemRandomSource(), progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> UnlockedKeybag {
    let uuid = try random.bytes(16)
    let salt = try random.bytes(saltSize)
    switch password {
    case .some(let password):
      try check(password)
      let secondRound = Keybag.SecondRound(rounds: try checked(rounds), salt: try random.bytes(saltSize))
      let parameters = PasswordDerivation.Parameters(
        salt: salt, iterations: lastRounds, first: .init(salt: secondRound.salt, iterations: secondRound.rounds))
      let key = try PasswordDerivation.passcodeKey(password: password, parameters: parameters, progress: progress)
      return try assemble(
        recipes(hasPassword: true), uuid: uuid, salt: salt, secondRound: secondRound, passcodeKey: key,
        deviceKey: deviceKey, random: random)
    case .none:
      let parameters = PasswordDerivation.Parameters(salt: salt, iterations: lastRounds)
      let key = try PasswordDerivation.passcodeKey(password: .empty, parameters: parameters)
      return try assemble(
        recipes(hasPassword: false), uuid: uuid, salt: salt, secondRound: nil, passcodeKey: key, deviceKey: deviceKey,
        random: random)
    }
  }

  /// The keybag under a new password: the class keys stay, so nothing else in the backup changes.
  ///
  /// Salts are new. A bag with one round keeps one, since readers of its time know no other.
  ///
  /// - Parameters:
  ///   - keybag: The bag of the backup as it is now.
  ///   - old: The password that opens it.
  ///   - new: The password that shall open it, not empty.
  ///   - rounds: Of the slow round; `nil` keeps the bag's.
  ///   - limit: The most rounds to accept; above it nothing is derived.
  ///   - random: The source of keys, salts and identifiers.
  ///   - progress: Told how far each of two derivations is; where it answers `false` it ends with `.cancelled`.
  /// - Throws: `.wrongPassword`; `.damagedKeybag` where a class key does not unwrap, because it would be lost;
  ///   `.unsupported` for an empty new password or a count of rounds that readers refuse.
  public static func rewrap(
    _ keybag: Keybag, from old: borrowing Secret, to new: borrowing Secret, rounds: Int? = nil,
    acceptingAtMost limit: Int = RoundLimit.standard, random: some RandomSource = SystemRandomSource(),
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Keybag {
    try check(new)
    let oldKey = try keybag.passcodeKey(password: old, acceptingAtMost: limit, progress: progress)
    return try rewrap(
      keybag, fromPasscodeKey: oldKey, to: new, rounds: rounds, acceptingAtMost: limit, random: random,
      progress: progress)
  }

  /// The same with the old password's key, where that was derived before.
  public static func rewrap(
    _ keybag: Keybag, fromPasscodeKey oldKey: borrowing Secret, to new: borrowing Secret, rounds: Int? = nil,
    acceptingAtMost limit: Int = RoundLimit.standard, random: some RandomSource = SystemRandomSource(),
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Keybag {
    try check(new)
    return try rewrap(
      try resalted(keybag, rounds: rounds, random: random), fromPasscodeKey: oldKey, to: new,
      acceptingAtMost: limit, remembering: DerivedKeys(), progress: progress)
  }

  /// The keybag with new salts, under which none of its keys is wrapped yet: what the new password's key is derived for.
  package static func resalted(
    _ keybag: Keybag, rounds: Int? = nil, random: some RandomSource = SystemRandomSource()
  ) throws(DataProtectionError) -> Keybag {
    var result = keybag
    result.salt = try random.bytes(saltSize)
    if let present = keybag.secondRound {
      result.secondRound = Keybag.SecondRound(
        rounds: try rounds.map(checked) ?? present.rounds, salt: try random.bytes(saltSize))
    }
    return result
  }

  /// Wraps the class keys of a keybag that has new salts.
  ///
  /// - Parameters:
  ///   - resalted: The wraps are still those of the old password.
  ///   - keys: Of the new password, with what of them was begun before.
  package static func rewrap(
    _ resalted: Keybag, fromPasscodeKey oldKey: borrowing Secret, to new: borrowing Secret,
    acceptingAtMost limit: Int, remembering keys: DerivedKeys, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag {
    try check(new)
    var result = resalted
    _ = try resalted.openClassKeys(passcodeKey: oldKey.copy(), deviceKey: nil, wrong: .wrongPassword)
    let newKey = try resalted.passcodeKey(
      password: new, in: .asGiven, acceptingAtMost: limit, remembering: keys, progress: progress)
    try result.replacePasswordLayer(oldKey, with: newKey, wrong: .wrongPassword)
    return result
  }

  /// Classes 11 to 1, as bags of real backups list them.
  static func recipes(hasPassword: Bool) -> [ClassKeyRecipe] {
    let deviceWrapped = hardwareClasses(hasPassword: hasPassword)
    return (UInt32(1)...11).reversed().map { number in
      let keyClass = KeyClass(rawValue: number)
      return ClassKeyRecipe(
        keyClass: keyClass, wrap: deviceWrapped.contains(keyClass) ? [.device, .password] : .password)
    }
  }

  private static func assemble(
    _ recipes: [ClassKeyRecipe], uuid: [UInt8], salt: [UInt8], secondRound: Keybag.SecondRound?,
    passcodeKey: consuming Secret, deviceKey: DeviceKey, random: some RandomSource
  ) throws(DataProtectionError) -> UnlockedKeybag {
    var records: [Keybag.ClassKey] = []
    for recipe in recipes {
      records.append(try recipe.makeRecord(passcodeKey: passcodeKey, deviceKey: deviceKey, random: random))
    }
    let keybag = try Keybag.building { () throws(FormatError) in
      try Keybag(
        type: .backup, uuid: uuid, salt: salt, iterations: lastRounds, secondRound: secondRound, classKeys: records)
    }
    let classKeys = try keybag.unlock(passcodeKey: consume passcodeKey, deviceKey: deviceKey)
    return UnlockedKeybag(keybag: keybag, classKeys: classKeys)
  }

  static func check(_ password: borrowing Secret) throws(DataProtectionError) {
    guard !password.isAllZero else {
      throw DataProtectionError(.unsupported, "a backup's password cannot be empty")
    }
  }

  static func checked(_ rounds: Int) throws(DataProtectionError) -> UInt32 {
    guard (1...maximumRounds).contains(rounds), let count = UInt32(exactly: rounds) else {
      throw DataProtectionError(
        .unsupported, "\(Amounts.grouped(rounds)) iterations; Keyhaul reads 1 to \(Amounts.grouped(maximumRounds))")
    }
    return count
  }
}

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
        ? "the key of class \(names) is not wrapped with the hardware key of any device"
        : "the keys of classes \(names) are not wrapped with the hardware key of any device")
  }
}

/// Setting a backup's password and taking it off. Both need the hardware's key: without a password it is that key which
/// protects what may migrate.
extension BackupKeybag {
  /// The classes that a password lets migrate: with one they are wrapped with it alone, without one with the hardware too.
  static let migratable: Set<KeyClass> = [.whenUnlocked, .afterFirstUnlock, .always]

  /// The keybag of a backup without a password under a new one. The class keys stay.
  ///
  /// Nothing in the bag tells whether `deviceKey` is the right one, unless a class has a public key: an item has to have
  /// been opened with it before.
  /// - Parameters:
  ///   - keybag: The bag of the backup as it is now.
  ///   - oldKey: The key of the empty password, as `Keybag.passcodeKey` derives it.
  ///   - password: The new one, not empty.
  ///   - deviceKey: The hardware key of the device that made the backup.
  ///   - rounds: Of the slow round; `nil` makes a bag with one round, as iOS 10.1 and earlier have it.
  ///   - random: The source of the new salts and of the bag's identifier.
  ///   - progress: Told how far the new password's derivation is; where it answers `false` it ends with `.cancelled`.
  /// - Throws: `.damagedKeybag` where a class key does not unwrap with that key; `.keyUnavailable` where a
  ///   public key shows that the hardware is another; `.hardwareLayerMissing` for a bag that no device wrote, which a
  ///   password would make look like any other; `.unsupported` for an empty password or a count of rounds that readers
  ///   refuse.
  public static func protect(
    _ keybag: Keybag, passcodeKey oldKey: borrowing Secret, with password: borrowing Secret,
    deviceKey: DeviceKey, rounds: Int?,
    random: some RandomSource = SystemRandomSource(), progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Keybag {
    try check(password)
    try requireHardwareLayers(of: keybag, hasPassword: false)
    var result = keybag
    result.salt = try random.bytes(saltSize)
    result.iterations = lastRounds
    result.secondRound = nil
    if let rounds {
      result.secondRound = Keybag.SecondRound(rounds: try checked(rounds), salt: try random.bytes(saltSize))
    }
    let newKey = try result.passcodeKey(password: password, progress: progress)
    try result.replacePasswordLayer(oldKey, with: newKey, wrong: .damagedKeybag) {
      (record, inner) throws(DataProtectionError) in
      guard let keyClass = record.keyClass, migratable.contains(keyClass), record.wrap == [.device, .password] else {
        return inner
      }
      let key = try inner.withBytes { (bytes) throws(DataProtectionError) in try deviceKey.unwrap(bytes) }
      if let publicKey = record.publicKey, try X25519.publicKey(of: key) != publicKey {
        throw DataProtectionError(.keyUnavailable, "the hardware key is not the source device's")
      }
      record.wrap = .password
      return key
    }
    return result
  }

  /// The keybag of a backup with a password without one, as a device would have made it: only its own hardware opens the
  /// keychain's class keys then. The class keys stay.
  ///
  /// - Parameters:
  ///   - keybag: The bag of the backup as it is now.
  ///   - oldKey: The key of the password, as `Keybag.fittingKey` gives it.
  ///   - deviceKey: The hardware key of the device that made the backup.
  ///   - random: The source of the new salts and of the bag's identifier.
  /// - Throws: `.wrongPassword`; `.damagedKeybag` where a class key does not unwrap; `.hardwareLayerMissing` for a bag
  ///   whose this-device-only classes lack that layer, which without a password would be open to everybody.
  public static func unprotect(
    _ keybag: Keybag, passcodeKey oldKey: borrowing Secret, deviceKey: DeviceKey,
    random: some RandomSource = SystemRandomSource()
  ) throws(DataProtectionError) -> Keybag {
    try requireHardwareLayers(of: keybag, hasPassword: true)
    var result = keybag
    result.salt = try random.bytes(saltSize)
    result.iterations = lastRounds
    result.secondRound = nil
    let newKey = try result.passcodeKey(password: .empty)
    try result.replacePasswordLayer(oldKey, with: newKey, wrong: .wrongPassword) {
      (record, inner) throws(DataProtectionError) in
      guard let keyClass = record.keyClass, migratable.contains(keyClass), record.wrap == .password else {
        return inner
      }
      record.wrap = [.device, .password]
      return try deviceKey.wrap(inner)
    }
    return result
  }
}

/// How one class of a new keybag is wrapped.
struct ClassKeyRecipe: Sendable, Equatable {
  var keyClass: KeyClass
  var wrap: Keybag.WrapFlags

  /// Makes a random class key and its record: the device's layer inside, the password's outside.
  func makeRecord(
    passcodeKey: borrowing Secret, deviceKey: DeviceKey, random: some RandomSource
  ) throws(DataProtectionError) -> Keybag.ClassKey {
    let uuid = try random.bytes(16)
    let key = try Secret(count: ClassKeys.keySize, from: random)
    let inner = wrap.contains(.device) ? try deviceKey.wrap(key) : key.copy()
    let wrapped =
      wrap.contains(.password) ? try KeyWrap.wrap(inner, with: passcodeKey) : inner.withBytes { Array($0) }
    return Keybag.ClassKey(uuid: uuid, keyClass: keyClass, wrap: wrap, wrappedKey: wrapped)
  }
}

extension Keybag {
  /// Takes the old password's layer off every class that has one and puts the new one on. Nothing else changes.
  ///
  /// - Parameter changing: What to put the new layer on instead of what was below the old one; it may change the record.
  /// - Throws: `code` where no class unwraps, `.damagedKeybag` where only some do: what does not open now would be lost.
  mutating func replacePasswordLayer(
    _ old: borrowing Secret, with new: borrowing Secret, wrong code: DataProtectionError.Code,
    changing: (inout ClassKey, consuming Secret) throws(DataProtectionError) -> Secret = { _, inner in inner }
  ) throws(DataProtectionError) {
    let opened = try openClassKeys(passcodeKey: old.copy(), deviceKey: nil, wrong: code)
    if let report = opened.damageReport { throw DataProtectionError(.damagedKeybag, report) }
    for index in classKeys.indices where classKeys[index].isPasswordWrapped {
      guard let wrapped = classKeys[index].wrappedKey, let inner = try KeyWrap.unwrap(wrapped, with: old) else {
        throw DataProtectionError(.damagedKeybag, "one of its class keys cannot be unwrapped")
      }
      let changed = try changing(&classKeys[index], inner)
      classKeys[index].wrappedKey = try KeyWrap.wrap(changed, with: new)
    }
  }

  /// Turns a refusal of the format into this layer's error; only fields that were made here can cause one.
  static func building(_ body: () throws(FormatError) -> Keybag) throws(DataProtectionError) -> Keybag {
    do throws(FormatError) { return try body() } catch { throw DataProtectionError(.damagedKeybag, error.reason) }
  }
}

/// A count of rounds that no real keybag of its form comes near, though it may be within the limit.
public struct UnusualRounds: Sendable, Equatable {
  /// What the keybag asks for, and what real ones do.
  public let rounds: UInt32
  /// What real keybags ask for in the same place.
  public let usual: UInt32

  /// "400 times": how many times the usual count it is, rounded down.
  public var multiple: UInt32 { rounds / max(1, usual) }

  /// - Returns: `nil` for a count up to `RoundLimit.usualMultiple` times the usual.
  init?(_ rounds: UInt32, usual: UInt32) {
    guard UInt64(rounds) > UInt64(usual) * UInt64(RoundLimit.usualMultiple) else { return nil }
    self.rounds = rounds
    self.usual = usual
  }
}

/// A count of rounds that is not the one of real keybags: of a keybag that was changed, so that no password fits any more,
/// or of one that was made to be opened fast.
public struct OddRounds: Sendable, Equatable {
  /// What the keybag asks for; 0 where it leaves the slow derivation out.
  public let rounds: UInt32
  /// What real keybags ask for in the same place.
  public let usual: UInt32
}

extension PasswordDerivation.Parameters {
  /// The first count that is another than that of real keybags, the slow one before the last.
  ///
  /// - Parameter isTwofold: Whether the backup is of a device that derives twice: since iOS 10.2, which is the first one
  ///   with an encrypted list of files.
  public func oddRounds(isTwofold: Bool) -> OddRounds? {
    let standard = UInt32(BackupKeybag.standardRounds)
    if isTwofold || first != nil, first?.iterations != standard {
      return OddRounds(rounds: first?.iterations ?? 0, usual: standard)
    }
    guard iterations != BackupKeybag.lastRounds else { return nil }
    return OddRounds(rounds: iterations, usual: BackupKeybag.lastRounds)
  }

  /// The count that is furthest from what a real keybag asks for: 10,000 in its last or only round, and 10,000,000 in
  /// the first of two. `nil` if none is more than five times that.
  ///
  /// Source: as `BackupKeybag.standardRounds` and `BackupKeybag.lastRounds`.
  public var unusualRounds: UnusualRounds? {
    let last = UnusualRounds(iterations, usual: BackupKeybag.lastRounds)
    let first = first.flatMap { UnusualRounds($0.iterations, usual: UInt32(BackupKeybag.standardRounds)) }
    guard let last, let first else { return last ?? first }
    return first.multiple > last.multiple ? first : last
  }
}
