package import KeyhaulKit

/// The result of `rekey`, or of its dry run (`rekey-result/1`).
package struct RekeyDocument {
  package let json: JSONValue

  /// Creates the document of a change of the password or of the iterations.
  ///
  /// - Parameters:
  ///   - archive: The path of the backup, as the user typed it.
  ///   - keybag: The keybag after the change.
  ///   - isEncrypted: Whether the backup has a password after the change.
  ///   - isWritten: Whether this call changed the backup.
  ///   - isDryRun: Whether the user asked for a dry run.
  ///   - isKeyProven: Whether an item confirms the device key that was used; `nil` if none was used.
  package init(
    of archive: String, _ keybag: Keybag, isEncrypted: Bool, isWritten: Bool, isDryRun: Bool, isKeyProven: Bool? = nil
  ) {
    let rounds = [keybag.secondRound?.rounds, keybag.iterations].compactMap(\.self)
    json = [
      "format": "rekey-result/1", "archive": .string(archive), "encrypted": .boolean(isEncrypted),
      "rounds": .array(rounds.map { .integer(Int64($0)) }), "written": .boolean(isWritten),
      "dry_run": .boolean(isDryRun), "device_key_proven": isKeyProven.map { .boolean($0) } ?? .null,
    ]
  }
}
