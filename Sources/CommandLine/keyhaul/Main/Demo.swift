import ArgumentParser
import KeyhaulKit

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul demo`: the whole story on two virtual devices in a temporary directory.
struct Demo: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Show a backup, a plan and a restore on two virtual devices",
    usage: "keyhaul demo [--keep DIR]",
    examples: ["keyhaul demo", "keyhaul demo --keep ~/keyhaul-demo"],
    flags: ["--keep"])
  static let configuration = described(as: "demo")

  @Option(help: ArgumentHelp("Keep the devices and backups in this folder.", valueName: "dir"), completion: .directory)
  var keep: String?
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  /// A part of the story: a sentence, then commands as a person would type them.
  private struct Scene {
    let title: String
    let commands: [String]
  }

  private static let story = [
    Scene(
      title: "Two phones. The keychain of old-phone holds items of all seven protection classes.",
      commands: [
        "device create old-phone --from old-phone --passcode-file old.pin",
        "device create new-phone --from new-phone --passcode-file new.pin", "device list", "item find old-phone",
      ]),
    Scene(
      title: "A backup without a password. None of its items can move: its keys need old-phone's hardware key.",
      commands: ["backup old-phone -o plain.backup/ --no-password", "plan plain.backup/ --to new-phone"]),
    Scene(
      title: "A backup with a password. Items that are not bound to old-phone can move.",
      commands: [
        "backup old-phone -o family.backup --password-file password.txt",
        "plan family.backup --to new-phone --password-file password.txt -o move.plan",
      ]),
    Scene(
      title: "The restore does exactly what the plan says.",
      commands: [
        "restore family.backup --to new-phone --plan move.plan --password-file password.txt --yes",
        "item find new-phone",
      ]),
    Scene(
      title: "old-phone is erased and restored from its own backup, including the items bound to it.",
      commands: [
        "device erase old-phone --yes", "restore family.backup --to old-phone --password-file password.txt",
        "item find old-phone",
      ]),
  ]

  /// Invented for the demo; the devices' passcodes are those of the bundled fixtures.
  private static let files = [("old.pin", "135790\n"), ("new.pin", "2468\n"), ("password.txt", "correct horse\n")]

  func perform(in session: Session) throws -> CommandStatus {
    guard !session.isJSON else {
      throw CommandFailure.usage("the demo cannot print JSON", try: "run one of the commands that it shows")
    }
    // Its folder has to go, whatever a verb of the story waits for.
    return try Interruption.returning { () throws in try tell(in: session) }
  }

  private func tell(in session: Session) throws -> CommandStatus {
    let directory = try DemoDirectory(keep: keep)
    defer { directory.leave() }
    for (name, text) in Self.files { try directory.write(text, to: name) }
    for (index, scene) in Self.story.enumerated() {
      try session.say("\(index == 0 ? "" : "\n")# \(scene.title)", .bold)
      for command in scene.commands {
        try Interruption.check("no files remain")
        try session.say("\n$ keyhaul \(command)", .green)
        try session.flush()
        let status = try run(command, in: session)
        // The command has said already what stopped it.
        if case .signal = status { return status }
      }
    }
    try session.say("\n" + directory.closingLine)
    return .ok
  }

  private func run(_ command: String, in session: Session) throws(CommandFailure) -> CommandStatus {
    var environment = session.environment
    for name in ["KEYHAUL_HOME", "KEYHAUL_PASSWORD_FILE", "KEYHAUL_PASSWORD_COMMAND"] { environment[name] = nil }
    environment["KEYHAUL_HOME"] = "devices"
    let words = command.split(separator: " ").map(String.init)
    let status = Program(
      arguments: words + ["--no-input", "--color", common.color.rawValue], environment: environment, isInDemo: true
    ).run()
    switch status {
    case .ok, .signal: return status
    default:
      throw CommandFailure(
        status, "the demo stopped", why: "keyhaul \(command) exited with \(status.code)",
        try: "run that command by itself")
    }
  }
}

/// The directory that the demo works in: its own and gone afterwards, or one that the user wants to keep.
private final class DemoDirectory {
  private let path: String
  private let isKept: Bool
  private let previous: String

  init(keep: String?) throws(CommandFailure) {
    let files = FileManager.default
    previous = files.currentDirectoryPath
    isKept = keep != nil
    path = keep ?? files.temporaryDirectory.path + "/keyhaul-demo-" + UUID().uuidString
    if keep != nil, let names = try? files.contentsOfDirectory(atPath: path), !names.isEmpty {
      throw .usage("\(path) is not empty", why: "the demo creates devices and backups in it", try: "another folder")
    }
    do {
      try files.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw CommandFailure(.failed, "cannot make the folder \(path)", why: "the system refused", try: "--keep DIR")
    }
    guard files.changeCurrentDirectoryPath(path) else {
      throw CommandFailure(.failed, "cannot enter the folder \(path)", why: "the system refused", try: "--keep DIR")
    }
  }

  func write(_ text: String, to name: String) throws(CommandFailure) {
    try ReportFile.write(Array(text.utf8), to: name)
  }

  func leave() {
    _ = FileManager.default.changeCurrentDirectoryPath(previous)
    if !isKept { try? FileManager.default.removeItem(atPath: path) }
  }

  var closingLine: String {
    isKept
      ? "Everything is in \(path); --home \(path)/devices finds the devices."
      : "The demo's files have been deleted from this machine."
  }
}
