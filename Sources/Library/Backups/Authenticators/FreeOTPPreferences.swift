import Basics
import KeychainFormats

/// The accounts in the preferences of FreeOTP's first versions for iOS.
///
/// `tokenOrder` is an array of keys. The value of each key in the preferences is an `otpauth` address. Later versions
/// move the accounts to the keychain. Source: freeotp/freeotp-ios, `TokenStore.m` and `Token.m`.
enum FreeOTPPreferences {
  /// Returns the addresses in the order of the app.
  ///
  /// - Throws: `.damaged` if the bytes are not a binary property list.
  static func addresses(in bytes: UnsafeRawBufferPointer) throws(KeyhaulError) -> [SensitiveBytes] {
    try translatingErrors(in: "FreeOTP's preferences") { () throws(FormatError) in
      let preferences = try PreferencesFile(bytes)
      var addresses: [SensitiveBytes] = []
      for key in try preferences.strings("tokenOrder") ?? [] {
        if let address = try preferences.sensitiveString(key) { addresses.append(address) }
      }
      return addresses
    }
  }
}
