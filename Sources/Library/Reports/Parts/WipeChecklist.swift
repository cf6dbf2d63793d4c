import KeyhaulKit

/// The checklist to follow before a phone is wiped. It covers the backup, the apps, and the other ways to move items.
///
/// It lists the apps to sign in to again, and the apps whose data must be transferred while the phone still works.
struct WipeChecklist {
  /// An item that even the best possible backup does not move to the target.
  struct Loss {
    let index: Int
    let identity: ItemDescriptor
    let reason: Reason
  }

  /// The states of the phone's backup. `argument` names the backup in a command line. `command` makes a new backup; it is
  /// `nil` if the phone is a real one, because Keyhaul cannot back it up.
  enum BackupState {
    /// A usable backup exists.
    case good(argument: String)
    /// A backup with a password must be made, because there is none.
    case missing(command: String?)
    /// A usable backup exists, but a new one would contain more items.
    case outdated(command: String)
    /// A backup exists that cannot be restored as it is.
    case unusable(BackupCondition, hasPassword: Bool, argument: String, command: String?)
  }

  /// The name of the phone that will be wiped, or a description.
  let phone: String
  /// The name or description of the target: another phone, or the same phone after it was erased.
  let target: String
  /// Whether the target is the same phone; `nil` if the checklist covers both cases.
  let isSameDevice: Bool?
  let backup: BackupState
  /// The number of items that move only if the backup has a password.
  let gainedByPassword: Int
  /// Whether the losses are from a backup, which may not contain all items of its phone.
  let sourceIsBackup: Bool
  let losses: [Loss]
  let apps: AppDirectory
  /// Whether the list is complete. A short list names only a few apps, and leaves out details.
  var showsAll = true
  /// The entries about one-time passwords.
  var codeEntries: [Checklist.Entry] = []
  /// The installed apps whose codes have an entry in `codeEntries`.
  var appsWithCodeEntry: Set<InstalledApp> = []

  var checklist: Checklist {
    let name = HTMLWriter.shortened(phone)
    return Checklist(
      title: "Before you erase", name: phone,
      note: "Print this list and tick off each step. No backup can restore what is lost with an erased phone.",
      groups: [
        .init(title: "The backup", entries: backupEntries + (isSameDevice == nil ? restoreEntries : [])),
        .init(
          title: "Apps, while \(name) still works", note: sourceIsBackup ? BackupBlindSpots.line : nil,
          entries: appEntries),
        .init(
          title: isSameDevice == true ? "After the restore" : "On \(HTMLWriter.shortened(target))",
          entries: accountEntries),
        .init(title: "Last of all", entries: finalEntries),
      ])
  }

  /// Returns the losses of the device's items that are not in the backup.
  ///
  /// - Parameters:
  ///   - sourceDeviceItems: The items of the device; `nil` if the device is not available.
  ///   - count: The number of the backup's items. The indices of the losses continue after them.
  static func losses(of sourceDeviceItems: SourceDeviceItems?, after count: Int) -> [Loss] {
    (sourceDeviceItems?.absent ?? []).enumerated().compactMap { offset, item in
      item.reason.map { Loss(index: count + offset, identity: item.identity, reason: $0) }
    }
  }

  // MARK: The backup

  private var backupEntries: [Checklist.Entry] {
    let name = HTMLWriter.shortened(phone)
    let entries: [Checklist.Entry] =
      switch backup {
      case .missing(let command?):
        [.init(text: "Make a backup with a password, and keep the password.\(gainSentence)", commands: [command])]
      case .missing(nil): [.init(text: "Make a new backup with a password.\(gainSentence)", details: passwordSteps)]
      case .outdated(let command):
        [.init(text: "Make a new backup: \(name) has items that are not in this one.", commands: [command])]
      case .unusable(.decryptedCopy, _, _, _):
        [.init(text: "Plan with the backup that this decrypted copy was made from: the copy cannot be restored.")]
      case .unusable(_, let hasPassword, let argument, let command):
        [
          .init(
            text: "Make a new backup with a password while \(name) still works.\(gainSentence)",
            details: command == nil && !hasPassword ? passwordSteps : [], commands: command.map { [$0] } ?? []),
          .init(text: "See what is wrong with this backup.", commands: [SuggestedCommands.verify(argument)]),
        ]
      case .good(let argument):
        [.init(text: "Check that the backup is intact.", commands: [SuggestedCommands.verify(argument)])]
      }
    return entries + damageEntries
  }

  /// The entry about items that cannot be read in a usable backup; empty if there are none.
  private var damageEntries: [Checklist.Entry] {
    let damagedCount = losses.count(where: \.reason.isLostInThisCopy)
    guard damagedCount > 0, sourceIsBackup, !isUnusable else { return [] }
    return [
      .init(
        text:
          "Find another copy of the backup, or make a new one: \(HumanReadable.count(damagedCount, "item")) cannot be "
          + "read in this one.")
    ]
  }

  /// Whether the backup cannot be restored as it is.
  var isUnusable: Bool { if case .unusable = backup { true } else { false } }

  /// The steps to set a backup password, for each kind of computer.
  private var passwordSteps: [String] {
    showsAll
      ? (PublishedStep.passwordSteps + [.earlierBackups, .forgottenPassword, .resetKeeps, .resetCosts]).map(\.text)
      : PublishedStep.shortPasswordSteps
  }

  /// A sentence about the effect of a password, such as " 14 of these items would then move."; empty if there is none.
  private var gainSentence: String {
    switch gainedByPassword {
    case 0: ""
    case 1: " 1 of these items would then move."
    default: " \(HumanReadable.grouped(gainedByPassword)) of these items would then move."
    }
  }

  // MARK: The new phone

  private var accountEntries: [Checklist.Entry] {
    let sharedCount = losses.count { $0.reason == .sharedGroup }
    var entries: [Checklist.Entry] = []
    if isSameDevice == false {
      entries += otherTransferEntries
      if !omitsLaterSteps { entries.append(.init(text: Self.addingCards + Self.cardsReason)) }
    }
    if sharedCount > 0 {
      entries.append(.init(text: "Sign in with the account that shares \(HumanReadable.count(sharedCount, "item"))."))
    }
    return entries
  }

  /// Whether to omit steps that the plan of a new backup will list: in the short list for a backup that cannot be
  /// restored.
  var omitsLaterSteps: Bool { !showsAll && isUnusable }

  /// The entry about other ways to move items to the target, or no entry.
  private var otherTransferEntries: [Checklist.Entry] {
    guard !omitsLaterSteps else { return [] }
    return [
      .init(
        text: "iCloud Keychain and Quick Start also move items: \(SuggestedCommands.explaining("new-phone"))",
        details: showsAll ? [PublishedStep.iCloudKeychain, .quickStart].map(\.text) : [])
    ]
  }

  /// The entries about the move to the new phone. They come before the entries about apps, because some steps in apps
  /// need the restored phone.
  private var restoreEntries: [Checklist.Entry] { [restoreEntry] + otherTransferEntries }

  private static let addingCards = "Add your cards to Wallet again"
  private static let cardsReason = ": they are in no backup."

  /// The entry to restore a backup. It also mentions the cards in Wallet, so that they need no entry of their own.
  private var restoreEntry: Checklist.Entry {
    let target = HTMLWriter.shortened(target)
    let sentence =
      switch backup {
      case .unusable(.decryptedCopy, _, _, _): "Restore the original backup to \(target)."
      case .missing, .outdated, .unusable:
        "Run \(SuggestedCommands.planning) on the new backup, then restore it to \(target)."
      case .good where sourceIsBackup && losses.contains(where: \.reason.isLostInThisCopy):
        "Restore the other copy or the new backup to \(target)."
      case .good: "Restore this backup to \(target)."
      }
    if omitsLaterSteps { return .init(text: sentence) }
    return .init(text: "\(sentence) \(Self.addingCards)\(showsAll ? Self.cardsReason : ".")")
  }

  private var finalEntries: [Checklist.Entry] {
    let name = HTMLWriter.shortened(phone)
    let copySentence = "Keep a copy of the backup, and its password."
    let eraseSentence = "Erase \(name) only when every app that you need works on \(HTMLWriter.shortened(target))."
    return switch isSameDevice {
    case true?: [.init(text: copySentence)]
    case false?: [.init(text: eraseSentence)]
    case nil: [.init(text: "\(eraseSentence) \(copySentence)")]
    }
  }
}
