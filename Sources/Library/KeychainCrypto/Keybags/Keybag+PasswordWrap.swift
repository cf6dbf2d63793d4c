import Basics
import KeychainFormats

extension Keybag {
  /// Wraps every class key that has a password wrap with the new key instead of the old one. Nothing else changes.
  ///
  /// - Parameters:
  ///   - old: The key of the old password.
  ///   - new: The key of the new password.
  ///   - code: The error if no class key can be unwrapped.
  ///   - changing: A closure that returns the bytes to wrap with the new key, given the unwrapped ones. It may also
  ///     change the record.
  /// - Throws: `code` if no class key can be unwrapped; `.damagedKeybag` if only some can, because the others would be
  ///   lost.
  mutating func replacePasswordWrap(
    _ old: borrowing Secret, with new: borrowing Secret, wrong code: DataProtectionError.Code,
    changing: (inout ClassKey, consuming Secret) throws(DataProtectionError) -> Secret = { _, inner in inner }
  ) throws(DataProtectionError) {
    let unwrapped = try unwrapClassKeys(passcodeKey: old.copy(), deviceKey: nil, wrong: code)
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
