import ArgumentParser
import KeyhaulKit

/// The argument that names the keychain of an item command.
struct TargetKeychain: ParsableArguments {
  @Argument(
    help: "The device, the backup or the Simulator's keychain.", completion: .devicesAndFiles) var keychain: String

  init() {}

  /// Finds the keychain. Rejects options that do not apply to this kind of keychain.
  func find(
    _ accessOptions: BackupAccessOptions, _ databaseKeys: DatabaseKeyOptions? = nil, in session: Session
  ) throws(CommandError) -> ResolvedSource {
    let source = try SourceResolver(session, databaseKeys).keychain(keychain)
    if case .device(let device) = source { try accessOptions.reject(for: device.name) }
    if case .dump(let dump) = source { try dump.reject(accessOptions) }
    try databaseKeys?.check([source])
    return source
  }

  /// Finds the keychain and opens it for a change.
  ///
  /// - Parameters:
  ///   - selection: The items to change.
  ///   - accessOptions: The options for decrypting a backup.
  ///   - change: The destination of a changed backup.
  ///   - verb: The name of the command.
  ///   - isDryRun: Whether this is a dry run.
  func edit(
    _ selection: ItemSelection, _ accessOptions: BackupAccessOptions, _ change: ChangeOptions, to verb: String,
    isDryRun: Bool, in session: Session
  ) throws(CommandError) -> any EditableKeychain {
    let source = try find(accessOptions, in: session)
    if !source.isBackup { try change.reject(for: keychain) }
    return switch source {
    case .device(let device): EditableDevice(device, selection)
    case .backup(let backup):
      try EditableBackup(backup, selection, accessOptions, change, to: verb, isDryRun: isDryRun, in: session)
    case .dump(let dump): try EditableSimulator(dump, selection)
    }
  }
}
