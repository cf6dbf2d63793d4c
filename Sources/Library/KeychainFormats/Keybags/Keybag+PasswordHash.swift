import Basics

extension Keybag {
  /// The hash with which hashcat (modes 14700 and 14800) and John the Ripper search for a backup's forgotten password.
  ///
  /// It contains a wrapped class key and the parameters of the derivation. Any class key that the password wraps is
  /// suitable; published tools use the first one. `nil` if the keybag has no such key, or lacks a parameter.
  ///
  /// Source: philsmd/itunes_backup2hashcat, "Explanation of the output format".
  package var passwordHash: String? {
    let key = classKeys.lazy.compactMap { key in
      key.wrap?.contains(.password) == true ? key.wrappedKey.flatMap { $0.count == 40 ? $0 : nil } : nil
    }.first
    guard let key, let salt, salt.count == 20, let iterations else { return nil }
    let start = "*\(String(hexadecimal: key))*\(iterations)*\(String(hexadecimal: salt))*"
    guard let secondRound else { return "$itunes_backup$*9\(start)*" }
    guard secondRound.salt.count == 20 else { return nil }
    return "$itunes_backup$*10\(start)\(secondRound.rounds)*\(String(hexadecimal: secondRound.salt))"
  }
}
