import Basics
public import KeychainFormats

/// A keybag together with the keys it holds.
public struct UnlockedKeybag: ~Copyable, Sendable {
  /// The bag as the manifest has it, with every key wrapped.
  public let keybag: Keybag
  /// The keys that its password, and the device's key where it was available, opened.
  public let classKeys: ClassKeys

  /// Gives up the keys to a new owner.
  public consuming func takeClassKeys() -> ClassKeys { classKeys }
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
    password: borrowing Secret?, deviceKey: borrowing DeviceKey, rounds: Int = standardRounds,
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
    passcodeKey: consuming Secret, deviceKey: borrowing DeviceKey, random: some RandomSource
  ) throws(DataProtectionError) -> UnlockedKeybag {
    var records: [Keybag.ClassKey] = []
    for recipe in recipes {
      records.append(try recipe.makeRecord(passcodeKey: passcodeKey, deviceKey: deviceKey, random: random))
    }
    let keybag = try Keybag.building { () throws(FormatError) in
      try Keybag(
        type: .backup, uuid: uuid, salt: salt, iterations: lastRounds, secondRound: secondRound, classKeys: records)
    }
    let classKeys = try keybag.unlock(passcodeKey: consume passcodeKey, deviceKey: deviceKey.copy())
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
