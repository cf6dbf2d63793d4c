import Basics
import KeychainFormats

/// What the passes over the list and over the payloads have seen.
struct FileTally {
  var listed = 0
  /// Those that are stored, or empty and need no payload.
  var present = 0
  var stored = 0
  /// Those that are empty and have no payload.
  var unstored = 0
  /// Whether the keychain's file, which has a check of its own, is listed and not stored.
  var isKeychainMissing = false
  var digests = 0
  /// Files of which the list has no digest, so that a changed byte in them cannot be seen.
  var undigested = 0
  /// Encrypted files that end in their padding, but for the keychain's.
  var paddings = 0
  /// Whether the keychain's file, whose padding its own check looks at, was among those that were read.
  var isKeychainRead = false
  var otherSizes = 0
  /// The first of them, with both sizes.
  var otherSizeNotes: [String] = []
  /// Files whose class key needs hardware that is not available.
  var sealed = 0
  var readByteCount: Int64 = 0
  /// What is wrong with payloads, in whatever order they came by.
  var faults = SortedFaults(limit: BackupVerification.maximumFaultCount)

  mutating func addOtherSize(of name: String, recorded: Int64, found: Int64) {
    otherSizes += 1
    guard otherSizeNotes.count < BackupVerification.maximumFaultCount else { return }
    otherSizeNotes.append(
      "\(name) has \(Amounts.grouped(found)) bytes, the manifest records \(Amounts.grouped(recorded))")
  }
}
