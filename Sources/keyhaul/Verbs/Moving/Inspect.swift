import ArchivedKeychain
import ArgumentParser
import BackupArchive
import DataProtection
import KeychainFormats
import Migration

/// `keyhaul inspect`: what is in an archive.
struct Inspect: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Show what is in a backup",
    usage: "keyhaul inspect ARCHIVE [--list | --keybag]",
    examples: ["keyhaul inspect family.backup", "keyhaul inspect family.backup --list --password-file ~/.bp"],
    flags: [
      ("--list", "the keychain's items"), ("--keybag", "the keybag's classes and rounds"), HelpScreen.passwordFlag,
      HelpScreen.jsonFlag,
    ])
  static let configuration = described(as: "inspect")

  /// Which part is shown in full.
  enum Part: String, EnumerableFlag {
    case list
    case keybag

    static func help(for value: Part) -> ArgumentHelp? {
      switch value {
      case .list: "List the keychain's items."
      case .keybag: "Show the keybag: its header, classes and rounds."
      }
    }
  }

  @Argument(help: "The backup: a folder, a file, or - for a tar stream.", completion: .file()) var archive: String
  @Flag var part: Part?
  @OptionGroup(title: "The archive's password") var password: PasswordFlags
  @OptionGroup(title: "Opening") var opening: OpeningOptions
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    if archive != "-", let backups = session.backups(inParent: archive) {
      try BackupListing(folder: archive, backups: backups).say(in: session)
      return .ok
    }
    let named = try session.openArchive(archive, storage: opening.limit.storage)
    let inspection = try Inspection(named, opened: opened(named, in: session))
    if session.isJSON {
      try session.answer(inspection.json)
    } else {
      for line in inspection.lines(part, style: session.resultStyle) { try session.say(line) }
    }
    if let damage = inspection.opened?.keybagDamage {
      throw CommandFailure.damagedKeybag(of: named.name, report: damage)
    }
    return inspection.isPartlyUnreadable ? .partial : .ok
  }

  /// The archive with its items tried, where the password is at hand or nothing but a password is missing for `--list`.
  private func opened(_ named: Session.NamedArchive, in session: Session) throws(CommandFailure) -> OpenedArchive? {
    let hasSource = try password.source(environment: session.environment) != .prompt
    let hasKey = try opening.deviceKeySource() != nil
    let wantsItems = part == .list || hasSource || hasKey
    guard !named.archive.isEncrypted || wantsItems else { return nil }
    return try session.unlockIfPresent(named, password, opening: opening)
  }
}
