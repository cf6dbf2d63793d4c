import ArgumentParser
import KeyhaulKit

/// Where a command writes a backup that it changes.
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

  /// Refuses both flags at once, and a copy that cannot be written.
  func check(differsFrom inputs: [String?], in session: Session) throws(CommandFailure) {
    guard let output else { return }
    guard !inPlace else {
      throw .usage(
        "--in-place and -o cannot be used together", why: "-o leaves the backup as it is", try: "use only one of them")
    }
    guard output != "-" else {
      throw .usage("a changed backup cannot be written to standard output", try: "-o FILE or -o FOLDER/")
    }
    try ArchiveOutput.check(output, differsFrom: inputs, in: session)
  }

  /// Refuses both flags for a keychain that is not a backup.
  func refuse(for name: String) throws(CommandFailure) {
    guard output != nil || inPlace else { return }
    throw .usage(
      "\(output != nil ? "-o" : "--in-place") applies only to backups",
      why: "\(name) is not a backup, and is always changed in place",
      try: "leave \(output != nil ? "-o" : "--in-place") out")
  }

  /// Returns where the changed backup goes.
  ///
  /// - Parameter isRehearsed: Whether nothing will be written.
  /// - Throws: `.usage` if neither flag is given for a backup that Keyhaul did not make.
  func target(
    for named: NamedArchive, isRehearsed: Bool, in session: Session
  ) throws(CommandFailure) -> BackupRewriter.Target {
    if let output {
      let (destination, replaces) = try ArchiveOutput.destination(
        output, deviceIdentifier: named.archive.device.identifier, asks: !isRehearsed, in: session)
      return .copy(destination, replace: replaces)
    }
    guard !inPlace, !isRehearsed, !named.archive.isMadeByKeyhaul else { return .inPlace }
    throw .usage(
      "\(named.name) is not changed in place unless you say so",
      why: "Keyhaul did not make it, and it may be the only backup of its device",
      try: "-o COPY to write a changed copy, or --in-place to change the backup itself")
  }

  /// What a sentence about the change ends with: where the copy is; empty if the backup itself is changed.
  func ending(for name: String) -> String {
    output.map { ", in the copy \(UntrustedText.escaped($0)); \(UntrustedText.escaped(name)) itself is unchanged" }
      ?? ""
  }

  /// The change that is final once the backup is written.
  func done(_ done: DoneChange) -> DoneChange {
    guard let output else { return done }
    return DoneChange("the changed copy \(output) was written", look: "keyhaul inspect \(ShellQuoting.quote(output))")
  }

  /// The member of a document that names the copy.
  var members: [(String, JSONValue)] { output.map { [("output", .string($0))] } ?? [] }
}
