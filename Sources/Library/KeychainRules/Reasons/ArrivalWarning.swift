/// What a plan warns of beside an item that arrives: the item is there, and its value may be of no use.
///
/// The raw value is the word that reports, JSON and `explain` use.
public enum ArrivalWarning: String, Sendable, CaseIterable, Hashable, Codable {
  /// The value has the form of a key that only the Secure Enclave of the device that made it can use, and the target is
  /// another device.
  case migratesButUnusable = "migrates-but-unusable"
  /// The value has that form, and the target is that device or may be it: no source says whether the chip still takes it
  /// there after a restore.
  case useNotKnown = "use-not-known"

  /// The warning for an item that arrives and whose value is a key of the Secure Enclave.
  ///
  /// - Parameter onSameDevice: Whether the target is the device that made the backup; `nil` where nothing proves it.
  public init(ofEnclaveKeyOnSameDevice onSameDevice: Bool?) {
    self = onSameDevice == false ? .migratesButUnusable : .useNotKnown
  }
}
