import Basics
import KeychainFormats

/// Something that shows that a backup's keychain is not what its device wrote, or may not be: a fact of the whole, by which
/// items may be missing that nothing names. Damage of single items is a `Reason`.
public enum ArchiveDamage: Sendable, Hashable, CustomStringConvertible {
  /// The list of files records another digest of the keychain file.
  case keychainChanged
  /// The list of files records another size of the keychain file, in bytes.
  case keychainSize(recorded: Int64, found: Int64)
  /// Nothing says whether the device finished the backup.
  case statusMissing
  /// Class keys that items need do not unwrap: "10 of 11 class keys unwrap, class 7 does not".
  case classKeys(String)
  /// A part that is not as a device leaves it, and that reading went around.
  case finding(ArchiveFinding)

  /// A clause that names the fact found.
  public var description: String {
    switch self {
    case .keychainChanged: ArchiveNote.digestDiffers.description
    case .keychainSize(let recorded, let found):
      ArchiveNote.sizeDiffers(recorded: recorded, found: found).description
    case .statusMissing: ArchiveNote.statusMissing.description
    case .classKeys(let report): report
    case .finding(let finding): finding.description
    }
  }
}

extension OpenedArchive {
  /// What shows that items may be lost which no report can name; empty for a backup as its device wrote it.
  public var damage: [ArchiveDamage] {
    var damage = notes.compactMap { (note) -> ArchiveDamage? in
      switch note {
      case .digestDiffers: .keychainChanged
      case .sizeDiffers(let recorded, let found): .keychainSize(recorded: recorded, found: found)
      case .statusMissing: .statusMissing
      // Of these a backup loses no item, or no restore takes it at all, or it is a finding.
      case .encryptionNotStated, .encryptionClaimed, .propertyListUnreadable, .databaseUnpadded,
        .databaseInWriteAheadMode, .listJournalRead, .unfinished, .finding:
        nil
      }
    }
    damage += findings.filter(\.isDamage).map { .finding($0) }
    if let keybagDamage, losesItemsToKeybag { damage.append(.classKeys(keybagDamage)) }
    if let missing = missingClassKeys { damage.append(.classKeys(missing)) }
    return damage
  }

  /// The classes of items that the keybag has no key of, as a clause; `nil` where it has the keys of all.
  private var missingClassKeys: String? {
    let lost = items.compactMap { if case .noClassKey(let keyClass) = $0.failure { keyClass } else { nil } }
    // Where there is no keybag, that is the finding.
    guard !lost.isEmpty, !findings.contains(where: \.leavesNoKeybag) else { return nil }
    // A number with a key generation is another class to a backup, though one of a known name.
    let names = Amounts.list(Set(lost).sorted().map { $0.generation == 0 ? String($0.rawValue) : $0.words })
    let need = lost.count == 1 ? "needs" : "need"
    return "the keybag has no key of class \(names), and \(Amounts.count(lost.count, "item")) \(need) one"
  }

  /// Whether an item is of a class whose key in the keybag does not unwrap.
  public var losesItemsToKeybag: Bool {
    items.contains { item in
      if case .classKeyDamaged = item.failure { true } else { false }
    }
  }
}
