import Basics

extension Keybag {
  /// The hash with which hashcat (modes 14700 and 14800) and John the Ripper search for a backup's forgotten password.
  ///
  /// ```
  /// $itunes_backup$*9*KEY*ITERATIONS*SALT**
  /// $itunes_backup$*10*KEY*ITERATIONS*SALT*ITERATIONS*SALT    (with a second step of the derivation)
  /// ```
  ///
  /// The key is a wrapped class key. Any class key that the password wraps is suitable; published tools use the first
  /// such key. `nil` if the keybag has no such key, or lacks a parameter.
  ///
  /// Source: philsmd/itunes_backup2hashcat, "Explanation of the output format".
  package var passwordHash: String? {
    let wrappedKeys = classKeys.lazy.filter { $0.wrap?.contains(.password) == true }.compactMap(\.wrappedKey)
    guard let key = wrappedKeys.first(where: { $0.count == 40 }), let salt, salt.count == 20, let iterations else {
      return nil
    }
    let keyAndFirstStep = "\(String(hexadecimal: key))*\(iterations)*\(String(hexadecimal: salt))"
    guard let secondStep else { return "$itunes_backup$*9*\(keyAndFirstStep)**" }
    guard secondStep.salt.count == 20 else { return nil }
    return "$itunes_backup$*10*\(keyAndFirstStep)*\(secondStep.iterations)*\(String(hexadecimal: secondStep.salt))"
  }
}
