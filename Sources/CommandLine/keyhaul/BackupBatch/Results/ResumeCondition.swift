import KeyhaulKit

/// The inputs and the password of a result. A later run uses the result again only if both are the same.
struct ResumeCondition: Equatable, Sendable {
  /// The JSON member that contains the condition in a line of a `--resume` file.
  static let member = "question"

  /// The digest of the program version, the flags, and the files and devices that affect a result.
  let inputsDigest: String
  /// A random identifier of the password that decrypted the backup; `nil` if no password did. If two results have the same
  /// identifier, they have the same password.
  let passwordIdentifier: String?

  init(inputsDigest: String, passwordIdentifier: String?) {
    self.inputsDigest = inputsDigest
    self.passwordIdentifier = passwordIdentifier
  }

  /// Reads the condition from a line.
  ///
  /// - Returns: `nil` if the value has no digest.
  init?(_ json: JSONValue?) {
    guard let digest = json?["digest"]?.stringValue else { return nil }
    self.init(inputsDigest: digest, passwordIdentifier: json?["password"]?.stringValue)
  }

  var json: JSONValue { ["digest": .string(inputsDigest), "password": .text(passwordIdentifier)] }

  /// Returns the digest of all inputs that affect a result, except the backup and its password.
  ///
  /// The digest of a device key does not reveal the key, which is 16 random bytes.
  ///
  /// - Parameters:
  ///   - parameters: The value of `BatchResult.parameters`.
  ///   - inputs: The command's flags, with the contents of their files or the identities of their devices.
  ///   - decryption: The decryption options, whose device key is included.
  static func digest(
    parameters: [String], inputs: [(flag: String, content: [UInt8])], _ decryption: DecryptionOptions,
    in session: Session
  ) throws(CommandError) -> String {
    var parts =
      [ProgramVersion.line, String(parameters.count)].map { Array($0.utf8) } + parameters.map { Array($0.utf8) }
    for input in inputs { parts += [Array(input.flag.utf8), input.content] }
    for record in session.storedDeviceRecords() { parts += [Array("home".utf8), record.identityBytes] }
    let key = try decryption.deviceKey(of: "the backups", in: session)
    do throws(DataProtectionError) {
      if let key { parts += [Array("device key".utf8), try key.fingerprint()] }
      // Each part is preceded by its length, so that two different lists of parts never have equal bytes.
      return "sha256:" + String(hexadecimal: try Digest.sha256(parts.flatMap { Array("\($0.count):".utf8) + $0 }))
    } catch {
      throw CommandError(.failed, "cannot compute a digest for --resume", why: error.reason)
    }
  }
}

extension Session {
  /// Returns the records of the virtual devices. They affect results, because Keyhaul decrypts a backup with its source
  /// device's key and lists the device's other items.
  fileprivate func storedDeviceRecords() -> [DeviceRecord] {
    guard let devices = try? DeviceSet(of: self).devices() else { return [] }
    return devices.compactMap { try? $0.storedRecord() }
  }
}

extension DeviceRecord {
  /// Values that identify a device in its current state. They differ for a new device with the same name, and after each
  /// change of the revision.
  var identityBytes: [UInt8] {
    Array([name, udid, serialNumber, Timestamp.text(of: created), revision].joined(separator: "\u{0}").utf8)
  }
}

extension DeviceSession {
  /// Returns values that identify a device in its current state: its record and the fingerprint of its key.
  func identity() throws(KeyhaulError) -> [UInt8] {
    let key = try deviceKey()
    return record.identityBytes + [0] + ((try? key.fingerprint()) ?? [])
  }
}
