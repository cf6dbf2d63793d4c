import Basics
import KeychainFormats

extension BackupVerification {
  /// What was found of the listed files, by kind.
  public struct FileCounts: Sendable, Equatable {
    /// Files that the list names.
    public var listed = 0
    /// Of these, those that are stored, or empty and need no payload.
    public var present = 0
    /// Of those that are present, empty ones without a payload.
    public var unstored = 0
    /// Those that are not present.
    public var missing = 0
    /// Payloads that are stored and not listed.
    public var surplus = 0
    /// Files whose bytes have the digest that the list records.
    public var digestsRight = 0
    /// Files of which the list has none: a change in them cannot be seen.
    public var withoutDigest = 0
    /// Encrypted files, that of the keychain apart, that end in their padding.
    public var paddingRight = 0
    /// Files that have another size than the list records, though nothing else is wrong with them.
    public var otherSize = 0
    /// Files whose key needs the hardware of the device, so that nothing was read of them.
    public var unread = 0

    /// Files in which a change could not be seen.
    public var unproven: Int { withoutDigest + unread }
  }

  /// How the items of the keychain answered to every key at hand.
  public struct ItemCounts: Sendable, Equatable {
    /// Items whose tag is right and whose content is an item.
    public var readable = 0
    /// Items that open only with other hardware than was available, as far as anybody can tell. Nothing tells whether their
    /// bytes are right.
    public var deviceBound = 0
    /// Items that a key known to be right does not open, or that follow no format.
    public var damaged = 0

    /// The items of all three counts.
    public var total: Int { readable + deviceBound + damaged }
  }

  /// What the seal shows, as a clause: "2 files are not what was sealed". What the list of files misses too is left out;
  /// `nil` where nothing else is wrong.
  public var sealClause: String? {
    guard !faults.contains(where: { $0.check == .seal && $0.file == "Keyhaul.seal" }) else {
      return "its seal has changed"
    }
    let count = faultCount[.seal, default: 0] - min(sealedMissingCount, missingCount)
    return count == 0 ? nil : "\(Amounts.count(count, "file")) \(count == 1 ? "has" : "have") changed since the sealing"
  }
}
