import Foundation
import KeyhaulKit

/// Where a verb writes an archive: what `-o` may be, and what it would replace.
enum ArchiveOutput {
  static let help =
    "The backup to write: a folder (ends in /) or one file (\(endings.joined(separator: ", "))); "
    + "- writes a tar to standard output."

  private static let endings = ContainerFormat.allCases.compactMap(\.endings.first)
  /// Endings of containers that are not written. A tar by such a name would deceive whoever opens it.
  private static let foreignEndings = [
    ".7z", ".rar", ".xz", ".txz", ".bz2", ".tbz", ".tbz2", ".lz", ".lzma", ".lz4", ".br", ".z", ".dmg", ".iso", ".cpio",
    ".gz", ".zst",
  ]

  /// - Parameter inputs: What is read, which it may not take the place of.
  /// - Throws: `.usage` for a name that cannot be meant, and for a tar on a terminal or between JSON.
  static func check(
    _ output: String, differsFrom inputs: [String?], in session: Session
  ) throws(CommandFailure) {
    if output.isEmpty { throw .usage("--output is empty", try: "-o ARCHIVE") }
    if output == "-" {
      try session.refuseTerminal(for: "a tar")
      guard !session.isJSON else {
        throw .usage("--json and -o - cannot be used together", why: "both write to standard output", try: "-o FILE")
      }
    }
    if output != "-" { try session.requireOutput(output, differsFrom: inputs) }
    let destination = BackupDestination(path: output)
    if case .directory(let path) = destination { try requireNoFile(at: path, in: output) }
    guard case .file(let path, _) = destination else { return }
    let name = path.lowercased()
    guard ContainerFormat.named(by: name) == nil, foreignEndings.contains(where: name.hasSuffix), output != "-" else {
      return
    }
    let ending = name.split(separator: ".").last.map { ".\($0)" } ?? name
    throw .usage(
      "\(output) cannot be written", why: "a backup cannot be a \(ending) file",
      try: "a name that ends in \(HumanReadable.list(endings, conjunction: "or")), or a folder")
  }

  /// Refuses a directory in the place of a file.
  private static func requireNoFile(at path: String, in output: String) throws(CommandFailure) {
    var isDirectory: ObjCBool = false
    let name = String(path.reversed().drop { $0 == "/" }.reversed())
    guard !name.isEmpty, FileManager.default.fileExists(atPath: name, isDirectory: &isDirectory), !isDirectory.boolValue
    else { return }
    throw .usage(
      "\(name) already exists as a file", why: "\(output) means a folder", try: "another name, or \(name) for one file")
  }

  /// Where the archive goes, and whether it replaces what is there, which is asked for first.
  ///
  /// - Parameters:
  ///   - identifier: Of the backup's device: a directory that holds other things gets one of this name in it.
  ///   - asks: Whether anything will be written; a dry run only looks.
  static func destination(
    _ output: String, deviceIdentifier identifier: String?, asks: Bool, in session: Session
  ) throws(CommandFailure) -> (BackupDestination, replaces: Bool) {
    guard output != "-" else { return (.stream(descriptor: 1), false) }
    let destination = BackupDestination(path: output)
    let standing = standing(at: destination, identifier)
    if let standing, asks { try session.lock(standing, named: standing, for: .writing) }
    if let standing, case .directory = destination { try requireOnlyBackup(in: standing, named: standing) }
    do throws(KeyhaulError) {
      try BackupInstaller().validateDestination(at: destination, for: identifier, replace: true)
    } catch {
      throw failure(error, writing: output)
    }
    guard let standing else { return (destination, false) }
    let what = standing + owner(of: standing, unless: identifier)
    if asks {
      try session.confirm("Replace \(what)?", refusal: "replacing \(what)")
    } else {
      session.note("\(UntrustedText.escaped(what)) exists and would be replaced.")
    }
    return (destination, true)
  }

  /// Refuses to replace a backup's directory with things of a person's own in it, which would be gone with it.
  ///
  /// - Parameter name: What the user calls the directory.
  static func requireOnlyBackup(in directory: String, named name: String) throws(CommandFailure) {
    let foreign: [String]
    do throws(KeyhaulError) {
      foreign = try BackupDirectory.unrelatedFiles(in: directory)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
    guard !foreign.isEmpty else { return }
    let names = foreign.prefix(3).joined(separator: ", ") + (foreign.count > 3 ? ", ..." : "")
    throw .usage(
      "\(name) contains more than a backup",
      why: "\(names) \(foreign.count == 1 ? "is" : "are") not part of the backup and would be deleted with it",
      try: "move \(foreign.count == 1 ? "it" : "them") elsewhere first")
  }

  /// Whose backup it is, where it is another device's: that one may have no other.
  private static func owner(of standing: String, unless own: String?) -> String {
    guard let archive = try? BackupArchive.open(.path(standing), system: .real),
      let identifier = archive.device.identifier,
      identifier != own
    else { return "" }
    return " (a backup of \(archive.device.name ?? identifier))"
  }

  /// The file or the backup that stands where the new one goes.
  static func standing(at destination: BackupDestination, _ identifier: String?) -> String? {
    let files = FileManager.default
    switch destination {
    case .file(let path, _): return files.fileExists(atPath: path) ? path : nil
    case .directory(let path):
      // A directory that holds other things gets one for this device in it.
      let inner = (path.hasSuffix("/") ? path : path + "/") + BackupDirectory.name(for: identifier)
      return [path, inner].first { files.fileExists(atPath: $0 + "/Manifest.plist") }
    case .stream: return nil
    }
  }

  /// What kept an archive from being written, in the words of what the user named.
  static func failure(
    _ error: any ExplainedError, writing output: String, reading source: String? = nil
  ) -> CommandFailure {
    let name = output == "-" ? "standard output" : output
    let code = (error as? KeyhaulError)?.code
    let isSourceFault =
      switch code {
      case .notFound, .unwritable, .noSpace, .streamBroken, .libraryMissing, .occupied, .interrupted: false
      default: source != nil
      }
    var failure = CommandFailure(archive: error, name: isSourceFault ? source ?? name : name)
    switch code {
    case .notFound:
      failure.status = .failed
      failure.message = "could not write \(name)"
      failure.advice = "an existing folder"
    // What is written is kept nowhere else meanwhile.
    case .noTemporarySpace where source == nil:
      failure.message = "could not write \(name)"
      failure.advice = error.call
    case .occupied: failure.advice = "another name after -o"
    default: break
    }
    return failure
  }
}
