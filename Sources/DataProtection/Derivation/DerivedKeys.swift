import KeychainFormats
import ParallelWork

/// The passcode keys of one password, each derived once, however many keybags have the same salts and rounds: copies of one
/// backup, and all backups that a device made with one keybag.
///
/// The password is not in it; whoever has several passwords has one of these for each.
package final class DerivedKeys: Sendable {
  /// How many keys are kept, 32 bytes each: however many backups there are, no more memory is taken.
  package static let capacity = 4_096

  private struct Work: Hashable, Sendable {
    let parameters: PasswordDerivation.Parameters
    let form: PasswordForm
  }

  private let keys = OnceEach<Work, SensitiveBytes>(capacity: capacity)

  package init() {}

  /// How many keys were derived.
  package var count: Int { keys.count }

  /// The key of the password in one of its forms, derived where it was not yet.
  func passcodeKey(
    for parameters: PasswordDerivation.Parameters, in form: PasswordForm,
    derive: () throws(DataProtectionError) -> Secret
  ) throws(DataProtectionError) -> Secret {
    let key = try keys.value(for: Work(parameters: parameters, form: form)) { () throws(DataProtectionError) in
      try derive().withBytes { SensitiveBytes(copying: $0) }
    }
    return key.withBytes { Secret(copying: $0) }
  }
}
