import Basics
internal import KeychainFormats

/// How one class of a new keybag is wrapped.
struct ClassKeyRecipe: Sendable, Equatable {
  var keyClass: KeyClass
  var wrap: Keybag.WrapFlags

  /// Makes a random class key and its record: the device's layer inside, the password's outside.
  func makeRecord(
    passcodeKey: borrowing Secret, deviceKey: borrowing DeviceKey, random: some RandomSource
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
        throw DataProtectionError(.damagedKeybag, "a class key of it does not unwrap")
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
