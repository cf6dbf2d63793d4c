import ArchivedKeychain
import BackupArchive
import CommandSession
import KeychainFormats
import KeychainRules
import Migration
import VirtualDevice

extension Session {
  /// What a verb is given that takes a device as well as an archive.
  enum SourceArgument {
    case archive(NamedArchive)
    /// The path of its folder.
    case device(folder: String)
  }

  /// - Parameter isRestored: As `openArchive` takes it.
  func source(
    _ argument: String, storage: ManifestStorage = .temporaryFile, isRestored: Bool = false
  ) throws(CommandFailure) -> SourceArgument {
    switch try resolver().deviceOrArchive(argument) {
    case .device(_, let folder): .device(folder: folder.contains("/") ? folder : "./\(folder)")
    case .archive, .standardInput: .archive(try openArchive(argument, storage: storage, isRestored: isRestored))
    }
  }
}
