import ArchivedKeychain
import ArgumentParser
import BackupArchive
import DataProtection
import KeychainFormats

/// `keyhaul inspect`: what is in an archive.
struct Inspect: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Show what is in a backup",
    usage: "keyhaul inspect ARCHIVE [--list | --keybag | --tree]",
    examples: ["keyhaul inspect family.backup", "keyhaul inspect family.backup --list --password-file ~/.bp"],
    flags: [
      ("--list", "the keychain's items"), ("--keybag", "the keybag's classes and rounds"),
      ("--tree", "the files by domain and folder; -v shows all folders"), HelpScreen.passwordFlag,
      HelpScreen.jsonFlag,
    ])
  static let configuration = described(as: "inspect")

  /// Which part is shown in full.
  enum Part: String, EnumerableFlag {
    case list
    case keybag
    case tree

    static func help(for value: Part) -> ArgumentHelp? {
      switch value {
      case .list: "List the keychain's items."
      case .keybag: "Show the keybag: its header, classes and rounds."
      case .tree: "Show the files by domain and folder, with their counts and sizes."
      }
    }
  }

  @Argument(help: "The backup: a folder, a file, or - for a tar stream.", completion: .file()) var archive: String
  @Flag var part: Part?
  @OptionGroup(title: "The archive's password") var password: PasswordFlags
  @OptionGroup(title: "Opening") var opening: OpeningOptions
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let named = try session.openArchive(archive)
    let keys = try keys(of: named, in: session)
    let inspection = try Inspection(named, keys: keys, part: part, showsAll: common.verbose > 0)
    inspection.tellDetails(in: session)
    if session.isJSON {
      try session.answer(inspection.json)
    } else {
      for line in inspection.lines(style: session.resultStyle) { try session.say(line) }
    }
    if let failure = inspection.failure { throw failure }
    return inspection.isPartlyUnreadable ? .partial : .ok
  }

  // MARK: The password

  /// The keys of an archive whose password is at hand, or whose password is all that a wanted part lacks.
  private func keys(of named: Session.NamedArchive, in session: Session) throws(CommandFailure) -> ClassKeys? {
    guard named.archive.isEncrypted else {
      if password.isGiven { session.warnOfUnusedPassword(named.name) }
      try session.checkRounds(of: named, accepting: opening.limit)
      let key = try session.deviceKey(opening, of: named.name)
      return try session.classKeys(of: named, password: nil, deviceKey: key, limit: opening.limit.rounds)
    }
    let hasDeviceKey = try opening.deviceKeySource() != nil
    if password.isGiven || hasDeviceKey || needsKeys(named) {
      try session.checkRounds(of: named, accepting: opening.limit)
      let key = try session.deviceKey(opening, of: named.name)
      let secret = try session.password(password, of: named.name)
      return try session.classKeys(of: named, password: secret, deviceKey: key, limit: opening.limit.rounds)
    }
    guard try password.source(environment: session.environment) != .prompt else { return nil }
    return try keysByEnvironment(of: named, in: session)
  }

  private func needsKeys(_ named: Session.NamedArchive) -> Bool {
    switch part {
    case .list?: true
    // Old backups have their list in clear.
    case .tree?: named.archive.layout != .mbdb
    case .keybag?, nil: false
    }
  }

  /// What the environment names is used where it fits. An overview needs no password, so that nothing is lost where it
  /// doesn't.
  private func keysByEnvironment(
    of named: Session.NamedArchive, in session: Session
  ) throws(CommandFailure) -> ClassKeys? {
    do throws(CommandFailure) {
      try session.checkRounds(of: named, accepting: opening.limit)
      let secret = try session.password(password, of: named.name)
      return try session.classKeys(of: named, password: secret, deviceKey: nil, limit: opening.limit.rounds)
    } catch {
      try Interruption.check()
      guard [.failed, .wrongPassword, .notFound].contains(error.status) else { throw error }
      session.warn(error.message, why: error.why, try: "the rest is shown without it")
      return nil
    }
  }
}
