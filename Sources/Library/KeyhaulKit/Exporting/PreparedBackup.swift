public import Backups
import Basics
public import KeychainCrypto

/// A keychain sealed for a new keybag, ready to be written.
public struct PreparedBackup: ~Copyable, Sendable {
  /// What is about to be written: the device, the keybag and the sealed keychain.
  public let contents: BackupContents
  /// What the backup takes along and what it leaves.
  public let report: ExportReport
  let keys: ClassKeys

  /// Writes it, whole or not at all.
  ///
  /// - Throws: What the writer reports: something stands there, no space, no permission.
  public borrowing func write(
    to destination: ArchiveDestination, replace: Bool = false, random: some RandomSource = SystemRandomSource()
  ) throws(MigrationError) -> WrittenBackup {
    try write(with: BackupWriter(), to: destination, replace: replace, random: random)
  }

  package borrowing func write(
    with writer: BackupWriter, to destination: ArchiveDestination, replace: Bool,
    random: some RandomSource = SystemRandomSource()
  ) throws(MigrationError) -> WrittenBackup {
    do throws(BackupArchiveError) {
      return try writer.write(contents, keys: keys, random: random, to: destination, replace: replace)
    } catch {
      throw .making(error)
    }
  }
}
