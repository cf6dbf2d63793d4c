import ArgumentParser
import KeyhaulKit

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul demo`: shows a complete move between two virtual devices in a temporary folder.
struct Demo: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Show a backup, a plan and a restore on two virtual devices",
    usage: "keyhaul demo [--keep DIR]",
    examples: ["keyhaul demo", "keyhaul demo --keep ~/keyhaul-demo"],
    flags: ["--keep"])
  static let configuration = makeConfiguration(named: "demo")

  @Option(help: ArgumentHelp("Keep the devices and backups in this folder.", valueName: "dir"), completion: .directory)
  var keep: String?
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  /// A step of the demo: a sentence, followed by commands as a user would type them.
  private struct Step {
    let title: String
    let commands: [String]
  }

  private static let steps = [
    Step(
      title: "Two phones. The keychain of old-phone holds items of all seven protection classes.",
      commands: [
        "device create old-phone --from old-phone --passcode-file old.pin",
        "device create new-phone --from new-phone --passcode-file new.pin", "device list", "item find old-phone",
      ]),
    Step(
      title: "A backup without a password. None of its items can move: its keys need old-phone's device key.",
      commands: ["backup old-phone -o plain.backup/ --no-password", "plan plain.backup/ --to new-phone"]),
    Step(
      title: "A backup with a password. Items that are not bound to old-phone can move.",
      commands: [
        "backup old-phone -o family.backup --password-file password.txt",
        "plan family.backup --to new-phone --password-file password.txt -o move.plan",
      ]),
    Step(
      title: "The restore does exactly what the plan says.",
      commands: [
        "restore family.backup --to new-phone --plan move.plan --password-file password.txt --yes",
        "item find new-phone",
      ]),
    Step(
      title: "old-phone is erased and restored from its own backup, including the items bound to it.",
      commands: [
        "device erase old-phone --yes", "restore family.backup --to old-phone --password-file password.txt",
        "item find old-phone",
      ]),
  ]

  /// The passcodes and the password of the demo. The passcodes belong to the bundled fixtures.
  private static let files = [
    (name: "old.pin", text: "135790\n"), (name: "new.pin", text: "2468\n"),
    (name: "password.txt", text: "correct horse\n"),
  ]

  func run(in session: Session) throws -> CommandExitStatus {
    guard !session.isJSON else {
      throw CommandError.usage("the demo cannot print JSON", try: "run one of the commands that it shows")
    }
    // The demo must delete its folder even if it is interrupted.
    return try Interruption.deferringSignals { () throws in try runSteps(in: session) }
  }

  private func runSteps(in session: Session) throws -> CommandExitStatus {
    let directory = try DemoDirectory(keep: keep)
    defer { directory.leave() }
    for (name, text) in Self.files { try directory.write(text, to: name) }
    for (index, step) in Self.steps.enumerated() {
      try session.print("\(index == 0 ? "" : "\n")# \(step.title)", .bold)
      for command in step.commands {
        try Interruption.check(directory.interruptionNote)
        try session.print("\n$ keyhaul \(command)", .green)
        try session.flush()
        let status = try run(command, in: session)
        // The command has already reported the signal.
        if case .signal = status { return status }
      }
    }
    try session.print("\n" + directory.closingLine)
    return .ok
  }

  private func run(_ command: String, in session: Session) throws(CommandError) -> CommandExitStatus {
    var environment = session.environment
    for name in ["KEYHAUL_HOME", "KEYHAUL_PASSWORD_FILE", "KEYHAUL_PASSWORD_COMMAND"] { environment[name] = nil }
    environment["KEYHAUL_HOME"] = "devices"
    let arguments = command.split(separator: " ").map(String.init)
    let status = Program(
      arguments: arguments + ["--no-input", "--color", common.color.rawValue], environment: environment, isInDemo: true
    ).run()
    switch status {
    case .ok, .signal: return status
    default:
      throw CommandError(
        status, "the demo stopped", why: "keyhaul \(command) exited with \(status.code)",
        try: "run that command by itself")
    }
  }
}

/// The folder that the demo works in: a temporary one that is deleted afterwards, or one that the user keeps.
private final class DemoDirectory {
  private let path: String
  private let isKept: Bool
  /// The working directory before the demo.
  private let previousPath: String

  init(keep: String?) throws(CommandError) {
    let files = FileManager.default
    previousPath = files.currentDirectoryPath
    isKept = keep != nil
    path = keep ?? files.temporaryDirectory.path + "/keyhaul-demo-" + UUID().uuidString
    if keep != nil, let names = try? files.contentsOfDirectory(atPath: path), !names.isEmpty {
      throw .usage("\(path) is not empty", why: "the demo creates devices and backups in it", try: "another folder")
    }
    do {
      try files.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw CommandError(.failed, "cannot make the folder \(path)", why: "the system refused", try: "--keep DIR")
    }
    guard files.changeCurrentDirectoryPath(path) else {
      throw CommandError(.failed, "cannot enter the folder \(path)", why: "the system refused", try: "--keep DIR")
    }
  }

  func write(_ text: String, to name: String) throws(CommandError) {
    try OutputFile.write(Array(text.utf8), to: name)
  }

  func leave() {
    _ = FileManager.default.changeCurrentDirectoryPath(previousPath)
    if !isKept { try? FileManager.default.removeItem(atPath: path) }
  }

  var closingLine: String {
    isKept
      ? "Everything is in \(path); --home \(path)/devices finds the devices."
      : "The demo's files have been deleted from this machine."
  }

  /// The state of the files if the user interrupts the demo.
  var interruptionNote: String { isKept ? "the files so far are in \(path)" : "no files remain" }
}
