import Basics
package import KeychainFormats

/// A keybag with its unwrapped keys.
package struct UnlockedKeybag: Sendable {
  /// The keybag with its wrapped keys.
  package let keybag: Keybag
  /// The keys that the password, and the device key if it was available, unwrapped.
  package let classKeys: ClassKeys
}

/// Creates the keybag of a new backup, and changes its password.
///
/// Source: the class table of real backup keybags of iOS 9 to 18; Apple Platform Security, "Keybags for Data
/// Protection".
public enum BackupKeybag {
  /// The PBKDF2-HMAC-SHA256 iterations (`DPIC`) of every real backup since iOS 10.2.
  public static let standardRounds = 10_000_000
  /// The PBKDF2-HMAC-SHA1 iterations (`ITER`) of every real backup.
  package static let lastRounds: UInt32 = 10_000
  /// The maximum number of iterations for the SHA-256 step of a new keybag. Both steps together are then within the
  /// readers' standard limit.
  package static let maximumRounds = IterationLimit.standard - Int(lastRounds)
  static let saltSize = 20

  /// Creates a keybag with new class keys.
  ///
  /// With a password, the file classes and the migratable keychain classes are wrapped only with the password. Classes 5
  /// and 9-11 are also wrapped with the device key. Without a password, the empty password is used instead, and all
  /// keychain classes require the device key.
  ///
  /// - Parameters:
  ///   - password: The password, or `nil` if the backup has none.
  ///   - deviceKey: The device key of the backup's device.
  ///   - rounds: The iterations of the SHA-256 step, 1 to `maximumRounds`. Ignored without a password.
  ///   - random: The source of keys, salts and identifiers.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  /// - Throws: `.unsupported` for an empty password or a number of iterations that readers reject.
  package static func make(
    password: borrowing Secret?, deviceKey: DeviceKey, rounds: Int = standardRounds,
    random: some RandomSource = SystemRandomSource(), progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> UnlockedKeybag {
    let uuid = try random.bytes(16)
    let salt = try random.bytes(saltSize)
    switch password {
    case .some(let password):
      try rejectEmptyPassword(password)
      let secondStep = Keybag.SecondStep(iterations: try validIterations(rounds), salt: try random.bytes(saltSize))
      let parameters = PasswordDerivation.Parameters(
        salt: salt, iterations: lastRounds, sha256Step: .init(salt: secondStep.salt, iterations: secondStep.iterations))
      let key = try PasswordDerivation.passcodeKey(password: password, parameters: parameters, progress: progress)
      return try assemble(
        wrapPolicies(hasPassword: true), uuid: uuid, salt: salt, secondStep: secondStep, passcodeKey: key,
        deviceKey: deviceKey, random: random)
    case .none:
      let parameters = PasswordDerivation.Parameters(salt: salt, iterations: lastRounds)
      let key = try PasswordDerivation.passcodeKey(password: .empty, parameters: parameters)
      return try assemble(
        wrapPolicies(hasPassword: false), uuid: uuid, salt: salt, secondStep: nil, passcodeKey: key,
        deviceKey: deviceKey, random: random)
    }
  }

  /// Returns the keybag with a new password. The class keys stay the same, so nothing else in the backup changes.
  ///
  /// The salts are new. No SHA-256 step is added to a keybag without one, because older readers do not support it.
  ///
  /// - Parameters:
  ///   - keybag: The current keybag of the backup.
  ///   - old: The current password.
  ///   - new: The new password, not empty.
  ///   - rounds: The iterations of the SHA-256 step, or `nil` to keep their number.
  ///   - limit: The maximum number of iterations to accept.
  ///   - random: The source of salts.
  ///   - progress: Called during each of the two derivations, which end with `.cancelled` if it returns `false`.
  /// - Throws:
  ///   - `.wrongPassword`.
  ///   - `.damagedKeybag` if a class key cannot be unwrapped, because it would be lost.
  ///   - `.unsupported` for an empty new password or a number of iterations that readers reject.
  package static func rewrap(
    _ keybag: Keybag, from old: borrowing Secret, to new: borrowing Secret, rounds: Int? = nil,
    acceptingAtMost limit: Int = IterationLimit.standard, random: some RandomSource = SystemRandomSource(),
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Keybag {
    try rejectEmptyPassword(new)
    let oldKey = try keybag.passcodeKey(password: old, acceptingAtMost: limit, progress: progress)
    return try rewrap(
      keybag, fromPasscodeKey: oldKey, to: new, rounds: rounds, acceptingAtMost: limit, random: random,
      progress: progress)
  }

  /// Returns the keybag with a new password, given the derived key of the old password.
  package static func rewrap(
    _ keybag: Keybag, fromPasscodeKey oldKey: borrowing Secret, to new: borrowing Secret, rounds: Int? = nil,
    acceptingAtMost limit: Int = IterationLimit.standard, random: some RandomSource = SystemRandomSource(),
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Keybag {
    try rejectEmptyPassword(new)
    return try rewrap(
      try resalted(keybag, rounds: rounds, random: random), fromPasscodeKey: oldKey, to: new,
      acceptingAtMost: limit, remembering: DerivedKeyCache(), progress: progress)
  }

  /// Returns the keybag with new salts, for deriving the new password's key. Its class keys are still wrapped with the
  /// old password's key.
  package static func resalted(
    _ keybag: Keybag, rounds: Int? = nil, random: some RandomSource = SystemRandomSource()
  ) throws(DataProtectionError) -> Keybag {
    var result = keybag
    result.salt = try random.bytes(saltSize)
    if let current = keybag.secondStep {
      result.secondStep = Keybag.SecondStep(
        iterations: try rounds.map(validIterations) ?? current.iterations, salt: try random.bytes(saltSize))
    }
    return result
  }

  /// Wraps the class keys of a keybag with new salts.
  ///
  /// - Parameters:
  ///   - resalted: The keybag with new salts and keys that are wrapped with the old password.
  ///   - oldKey: The key of the old password.
  ///   - new: The new password.
  ///   - limit: The maximum number of iterations to accept.
  ///   - keys: The cached keys of the new password.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  package static func rewrap(
    _ resalted: Keybag, fromPasscodeKey oldKey: borrowing Secret, to new: borrowing Secret,
    acceptingAtMost limit: Int, remembering keys: DerivedKeyCache, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag {
    try rejectEmptyPassword(new)
    var result = resalted
    _ = try resalted.unwrapClassKeys(passcodeKey: oldKey.copy(), deviceKey: nil, errorIfNoneUnwraps: .wrongPassword)
    let newKey = try resalted.passcodeKey(
      password: new, in: .asTyped, acceptingAtMost: limit, remembering: keys, progress: progress)
    try result.replacePasswordWrap(oldKey, with: newKey, errorIfNoneUnwraps: .wrongPassword)
    return result
  }

  /// Returns the wrap policies of classes 11 to 1, in the order of real backups.
  static func wrapPolicies(hasPassword: Bool) -> [ClassKeyWrapPolicy] {
    let deviceWrapped = deviceWrappedClasses(hasPassword: hasPassword)
    return (UInt32(1)...11).reversed().map { number in
      let keyClass = KeyClass(rawValue: number)
      return ClassKeyWrapPolicy(
        keyClass: keyClass, wrap: deviceWrapped.contains(keyClass) ? [.device, .password] : .password)
    }
  }

  private static func assemble(
    _ policies: [ClassKeyWrapPolicy], uuid: [UInt8], salt: [UInt8], secondStep: Keybag.SecondStep?,
    passcodeKey: consuming Secret, deviceKey: DeviceKey, random: some RandomSource
  ) throws(DataProtectionError) -> UnlockedKeybag {
    var records: [Keybag.ClassKey] = []
    for policy in policies {
      records.append(try policy.makeRecord(passcodeKey: passcodeKey, deviceKey: deviceKey, random: random))
    }
    let keybag = try Keybag.building { () throws(FormatError) in
      try Keybag(
        type: .backup, uuid: uuid, salt: salt, iterations: lastRounds, secondStep: secondStep, classKeys: records)
    }
    let classKeys = try keybag.unlock(passcodeKey: consume passcodeKey, deviceKey: deviceKey)
    return UnlockedKeybag(keybag: keybag, classKeys: classKeys)
  }

  /// Rejects an empty password. HMAC pads its key with NUL bytes, so a password of NUL bytes equals the empty one.
  static func rejectEmptyPassword(_ password: borrowing Secret) throws(DataProtectionError) {
    guard !password.isAllZero else {
      throw DataProtectionError(.unsupported, "a backup's password cannot be empty")
    }
  }

  static func validIterations(_ rounds: Int) throws(DataProtectionError) -> UInt32 {
    guard (1...maximumRounds).contains(rounds), let count = UInt32(exactly: rounds) else {
      throw DataProtectionError(
        .unsupported,
        "\(HumanReadable.grouped(rounds)) iterations; Keyhaul reads 1 to \(HumanReadable.grouped(maximumRounds))")
    }
    return count
  }
}

/// The wrap of one class in a new keybag.
struct ClassKeyWrapPolicy: Sendable, Equatable {
  var keyClass: KeyClass
  var wrap: Keybag.WrapFlags

  /// Creates a random class key and its record, wrapped with the device key first and then with the password.
  func makeRecord(
    passcodeKey: borrowing Secret, deviceKey: DeviceKey, random: some RandomSource
  ) throws(DataProtectionError) -> Keybag.ClassKey {
    let uuid = try random.bytes(16)
    let key = try Secret(count: ClassKeys.keySize, from: random)
    let deviceWrapped = wrap.contains(.device) ? try deviceKey.wrap(key) : key.copy()
    let wrapped =
      wrap.contains(.password)
      ? try KeyWrap.wrap(deviceWrapped, with: passcodeKey) : deviceWrapped.withBytes { Array($0) }
    return Keybag.ClassKey(uuid: uuid, keyClass: keyClass, wrap: wrap, wrappedKey: wrapped)
  }
}

extension Keybag {
  /// Wraps every class key that has a password wrap with the new key instead of the old key. Nothing else changes.
  ///
  /// - Parameters:
  ///   - old: The key of the old password.
  ///   - new: The key of the new password.
  ///   - code: The error if no class key can be unwrapped.
  ///   - changing: A closure that returns the bytes to wrap with the new key, given the unwrapped bytes. It may also
  ///     change the record.
  /// - Throws: `code` if no class key can be unwrapped; `.damagedKeybag` if only some class keys can be unwrapped, because
  ///   the rest would be lost.
  mutating func replacePasswordWrap(
    _ old: borrowing Secret, with new: borrowing Secret, errorIfNoneUnwraps code: DataProtectionError.Code,
    changing: (inout ClassKey, consuming Secret) throws(DataProtectionError) -> Secret = { _, inner in inner }
  ) throws(DataProtectionError) {
    let unwrapped = try unwrapClassKeys(passcodeKey: old.copy(), deviceKey: nil, errorIfNoneUnwraps: code)
    if let report = unwrapped.damageReport { throw DataProtectionError(.damagedKeybag, report) }
    for index in classKeys.indices where classKeys[index].isPasswordWrapped {
      guard let wrapped = classKeys[index].wrappedKey, let inner = try KeyWrap.unwrap(wrapped, with: old) else {
        throw DataProtectionError(.damagedKeybag, "one of its class keys cannot be unwrapped")
      }
      let newInner = try changing(&classKeys[index], inner)
      classKeys[index].wrappedKey = try KeyWrap.wrap(newInner, with: new)
    }
  }

  /// Calls a closure that creates a keybag from new fields, and converts its format error.
  static func building(_ body: () throws(FormatError) -> Keybag) throws(DataProtectionError) -> Keybag {
    do throws(FormatError) { return try body() } catch { throw DataProtectionError(.damagedKeybag, error.reason) }
  }
}
