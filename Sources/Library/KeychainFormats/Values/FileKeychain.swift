/// A keychain file of macOS, such as `login.keychain-db`. It is recognized to give a helpful error, but not read.
///
/// Source: Apple Security, `AppleDatabase.cpp` (the header's magic number 0x6B796368).
package enum FileKeychain {
  /// The name of the format in a sentence.
  package static let phrase = "a macOS file keychain"

  /// Returns whether a file that starts with these bytes is a file keychain.
  package static func begins(with start: some Sequence<UInt8>) -> Bool { start.starts(with: "kych".utf8) }
}
