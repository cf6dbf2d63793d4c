/// A keychain file as macOS keeps it, such as `login.keychain-db`. It is recognized so that it can be named, and is not read.
///
/// Source: Apple Security, `AppleDatabase.cpp` (the header's magic number 0x6B796368).
package enum FileKeychain {
  /// What a sentence calls it.
  package static let phrase = "a macOS file keychain"

  /// Whether a file that begins so is one.
  package static func begins(with start: some Sequence<UInt8>) -> Bool { start.starts(with: "kych".utf8) }
}
