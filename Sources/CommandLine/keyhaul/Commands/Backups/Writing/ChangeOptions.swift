import ArgumentParser
import KeyhaulKit

/// The options for writing a changed backup.
struct ChangeOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Write the changed backup to a copy, a folder (ends in /) or one file. The backup itself stays as it is.",
      valueName: "copy"),
    completion: .file())
  var output: String?

  @Flag(
    help: ArgumentHelp(
      "Change the backup itself.",
      discussion: "Without it and without -o, only a backup that Keyhaul made is changed. Any other backup may be the "
        + "only one of its device."))
  var inPlace = false

  init() {}

  /// Rejects both flags together, and an output that is an input or cannot be written.
  func check(differsFrom inputs: [String?], in session: Session) throws(CommandError) {
    guard let output else { return }
    guard !inPlace else {
      throw .usage(
        "--in-place and -o cannot be used together", why: "-o leaves the backup as it is", try: "use only one of them")
    }
    guard output != "-" else {
      throw .usage("a changed backup cannot be written to standard output", try: "-o FILE or -o FOLDER/")
    }
    try BackupOutput.check(output, differsFrom: inputs, in: session)
  }

  /// Rejects both flags for a keychain that is not a backup.
  func reject(for name: String) throws(CommandError) {
    guard output != nil || inPlace else { return }
    throw .usage(
      "\(output != nil ? "-o" : "--in-place") applies only to backups",
      why: "\(name) is not a backup, and is always changed in place",
      try: "leave \(output != nil ? "-o" : "--in-place") out")
  }

  /// Returns the destination of the changed backup.
  ///
  /// - Parameters:
  ///   - loaded: The backup to change.
  ///   - isDryRun: Whether this is a dry run, which needs neither flag and does not ask about an existing copy.
  /// - Throws: `.usage` if neither flag is given for a backup that Keyhaul did not make.
  func target(
    for loaded: LoadedBackup, isDryRun: Bool, in session: Session
  ) throws(CommandError) -> BackupRewriter.Target {
    if let output {
      let (destination, replaces) = try BackupOutput.destination(
        output, deviceIdentifier: loaded.archive.device.identifier, asks: !isDryRun, in: session)
      return .copy(destination, replace: replaces)
    }
    guard !inPlace, !isDryRun, !loaded.archive.isMadeByKeyhaul else { return .inPlace }
    throw .usage(
      "\(loaded.name) is not changed in place unless you say so",
      why: "Keyhaul did not make it, and it may be the only backup of its device",
      try: "-o COPY to write a changed copy, or --in-place to change the backup itself")
  }

  /// Returns the end of a sentence about the change: the name of the copy, or nothing if the backup itself is changed.
  func ending(for name: String) -> String {
    output.map { ", in the copy \(UntrustedText.escaped($0)); \(UntrustedText.escaped(name)) itself is unchanged" }
      ?? ""
  }

  /// Returns the change that is final once the backup is written.
  ///
  /// - Parameter change: The change if the backup itself is rewritten.
  func committedChange(inPlace change: CommittedChange) -> CommittedChange {
    output.map { CommittedChange("the changed copy \($0) was written", at: $0) } ?? change
  }

  /// The member that names the copy in a document; empty if the backup itself is changed.
  var members: [(String, JSONValue)] { output.map { [("output", .string($0))] } ?? [] }
}
