import Foundation
import KeyhaulKit

/// Checks and prepares the destination of a command that writes a backup.
enum BackupOutput {
  static let help =
    "The backup to write: a folder (ends in /) or one file (\(endings.joined(separator: ", "))); "
    + "- writes a tar to standard output."

  private static let endings = ContainerFormat.allCases.compactMap(\.fileExtensions.first)
  /// The extensions of formats that are not written. A tar with such a name would mislead the next program.
  private static let unsupportedEndings = [
    ".7z", ".rar", ".xz", ".txz", ".bz2", ".tbz", ".tbz2", ".lz", ".lzma", ".lz4", ".br", ".z", ".dmg", ".iso", ".cpio",
    ".gz", ".zst",
  ]

  /// Checks the output before anything is read.
  ///
  /// - Parameters:
  ///   - output: The value of `-o`.
  ///   - inputs: The paths that are read, which the output must not replace.
  /// - Throws: `.usage` for an unusable name, and for a tar that would go to a terminal or be mixed with JSON.
  static func check(
    _ output: String, differsFrom inputs: [String?], in session: Session
  ) throws(CommandError) {
    if output.isEmpty { throw .usage("--output is empty", try: "-o ARCHIVE") }
    if output == "-" { return try checkStream(in: session) }
    try session.requireOutput(output, differsFrom: inputs)
    switch BackupDestination(path: output) {
    case .directory(let path): try rejectFile(at: path, in: output)
    case .file(let path, _): try rejectUnsupportedEnding(of: path, in: output)
    case .stream: break
    }
  }

  /// Rejects writing a tar to a terminal, or to the stream of a JSON document.
  private static func checkStream(in session: Session) throws(CommandError) {
    try session.rejectTerminal(for: "a tar")
    guard !session.isJSON else {
      throw .usage("--json and -o - cannot be used together", why: "both write to standard output", try: "-o FILE")
    }
  }

  /// Rejects a file name with the extension of a format that Keyhaul does not write.
  private static func rejectUnsupportedEnding(of path: String, in output: String) throws(CommandError) {
    let name = path.lowercased()
    guard ContainerFormat.format(forFileName: name) == nil, unsupportedEndings.contains(where: name.hasSuffix) else {
      return
    }
    let ending = name.split(separator: ".").last.map { ".\($0)" } ?? name
    throw .usage(
      "\(output) cannot be written", why: "a backup cannot be a \(ending) file",
      try: "a name that ends in \(HumanReadable.list(endings, conjunction: "or")), or a folder")
  }

  /// Rejects a file at the path of a folder that is to be written.
  private static func rejectFile(at path: String, in output: String) throws(CommandError) {
    var isDirectory: ObjCBool = false
    let name = String(path.reversed().drop { $0 == "/" }.reversed())
    guard !name.isEmpty, FileManager.default.fileExists(atPath: name, isDirectory: &isDirectory), !isDirectory.boolValue
    else { return }
    throw .usage(
      "\(name) already exists as a file", why: "\(output) means a folder", try: "another name, or \(name) for one file")
  }

  /// Returns the destination of the backup, and whether the backup replaces something there. Asks before replacing.
  ///
  /// - Parameters:
  ///   - output: The value of `-o`.
  ///   - identifier: The identifier of the backup's device. A folder that contains other files gets a subfolder with
  ///     this name.
  ///   - asks: Whether to ask before replacing a backup. A dry run does not ask, because it writes nothing.
  static func destination(
    _ output: String, deviceIdentifier identifier: String?, asks: Bool, in session: Session
  ) throws(CommandError) -> (BackupDestination, replaces: Bool) {
    guard output != "-" else { return (.stream(descriptor: 1), false) }
    let destination = BackupDestination(path: output)
    let existingPath = existingPath(at: destination, deviceIdentifier: identifier)
    if let existingPath, asks { try session.lock(existingPath, named: existingPath, for: .writing) }
    if let existingPath, case .directory = destination {
      try requireOnlyBackup(in: existingPath, named: existingPath)
    }
    do throws(KeyhaulError) {
      try BackupInstaller().validateDestination(at: destination, for: identifier, replace: true)
    } catch {
      throw failure(error, writing: output)
    }
    guard let existingPath else { return (destination, false) }
    let replacedBackup = existingPath + ownerNote(of: existingPath, unless: identifier)
    if asks {
      try session.confirm("Replace \(replacedBackup)?", action: "replacing \(replacedBackup)")
    } else {
      session.info("\(UntrustedText.escaped(replacedBackup)) exists and would be replaced.")
    }
    return (destination, true)
  }

  /// Rejects replacing a backup's folder that also contains other files, because they would be deleted.
  ///
  /// - Parameter name: The user's name for the folder.
  static func requireOnlyBackup(in directory: String, named name: String) throws(CommandError) {
    let unrelatedFiles: [String]
    do throws(KeyhaulError) {
      unrelatedFiles = try BackupDirectory.unrelatedFiles(in: directory)
    } catch {
      throw CommandError(backup: error, name: name)
    }
    guard !unrelatedFiles.isEmpty else { return }
    let names = unrelatedFiles.prefix(3).joined(separator: ", ") + (unrelatedFiles.count > 3 ? ", ..." : "")
    throw .usage(
      "\(name) contains more than a backup",
      why: "\(names) \(unrelatedFiles.count == 1 ? "is" : "are") not part of the backup and would be deleted with it",
      try: "move \(unrelatedFiles.count == 1 ? "it" : "them") elsewhere first")
  }

  /// Returns a note that names the device of an existing backup, which may be the only backup of that device. The note is
  /// empty if the new backup is of the same device.
  private static func ownerNote(of existingPath: String, unless deviceIdentifier: String?) -> String {
    guard let archive = try? BackupArchive.open(.path(existingPath), system: .real),
      let identifier = archive.device.identifier,
      identifier != deviceIdentifier
    else { return "" }
    return " (a backup of \(archive.device.name ?? identifier))"
  }

  /// Returns the path of the file or backup that a new backup would replace; `nil` if there is none.
  static func existingPath(at destination: BackupDestination, deviceIdentifier identifier: String?) -> String? {
    let files = FileManager.default
    switch destination {
    case .file(let path, _): return files.fileExists(atPath: path) ? path : nil
    case .directory(let path):
      // A folder that contains other files gets a subfolder for this device.
      let subfolder = (path.hasSuffix("/") ? path : path + "/") + BackupDirectory.name(for: identifier)
      return [path, subfolder].first { files.fileExists(atPath: $0 + "/Manifest.plist") }
    case .stream: return nil
    }
  }

  /// Returns the error for a backup that could not be written, with the names that the user typed.
  static func failure(
    _ error: any ExplainedError, writing output: String, reading source: String? = nil
  ) -> CommandError {
    let name = output == "-" ? "standard output" : output
    let code = (error as? KeyhaulError)?.code
    let concernsOutput =
      switch code {
      case .notFound, .unwritable, .noSpace, .streamBroken, .libraryMissing, .occupied, .interrupted: true
      default: false
      }
    var failure = CommandError(backup: error, name: concernsOutput ? name : source ?? name)
    switch code {
    case .notFound:
      failure.status = .failed
      failure.message = "could not write \(name)"
      failure.advice = "an existing folder"
    // Without a source, the temporary space was needed for the new backup.
    case .noTemporarySpace where source == nil:
      failure.message = "could not write \(name)"
      failure.advice = error.commandLineAdvice
    case .occupied: failure.advice = "another name after -o"
    default: break
    }
    return failure
  }
}
