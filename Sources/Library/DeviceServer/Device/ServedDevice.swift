import Basics
package import KeyhaulKit

/// A virtual device that clients can connect to: its identity, its pairings, and the state that its connections share.
package final class ServedDevice: Sendable {
  /// The identifier under which usbmuxd lists the device.
  package let deviceID: Int
  /// The device itself.
  package let device: VirtualDevice
  /// The device's identity and model at the time when the server started.
  package let record: DeviceRecord
  package let trust: PairingAuthorizer
  package let ports = ServicePorts()
  package let notifications = NotificationHub()
  package let sharedFiles = SharedFiles()
  /// The number of PBKDF2 iterations for encrypted backups.
  package let rounds: Int
  package let claim: ServingClaim
  private let writeLine: @Sendable (String) -> Void
  private let pairingLock = Locked(())
  private let isBusy = Locked(false)

  /// Claims a device for this process.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - deviceID: The identifier under which usbmuxd lists the device, above 0.
  ///   - trust: The policy for pairing.
  ///   - rounds: The number of PBKDF2 iterations for encrypted backups.
  ///   - log: Receives the lines of the log.
  /// - Throws: Category `busy` if another process serves the device; the errors of reading its files.
  package init(
    _ device: VirtualDevice, deviceID: Int, trust: TrustPolicy, rounds: Int, log: @escaping @Sendable (String) -> Void
  ) throws(KeyhaulError) {
    claim = try device.claimForServing()
    record = try device.withSession(.reading, verb: "device serve", wait: Self.wait) {
      (session) throws(KeyhaulError) in session.record
    }
    self.device = device
    self.deviceID = deviceID
    self.trust = PairingAuthorizer(device: device.name.text, trust)
    self.rounds = rounds
    writeLine = log
  }

  /// The time that a request waits for another process that uses the device.
  static let wait = Duration.seconds(10)

  package var udid: String { record.udid }

  /// The bundle identifiers of the device's apps, derived from their access groups.
  package var applications: [String] { AppDirectory.identifiers(of: record.apps) }

  /// Adds a line to the log, with the device's name.
  package func log(_ text: String) { writeLine("\(device.name.text): \(text)") }

  // MARK: Pairings

  /// Reads the pairing file. If there is none that can be read, creates one with a new key.
  ///
  /// - Throws: `.closed` if the system cannot read the file, or if no key can be created; the log has the reason. A new
  ///   file that cannot be written is logged, but is not an error.
  func pairingFile() throws(WireError) -> PairingFile {
    try pairingLock.withLock { (_) throws(WireError) in try readPairings() }
  }

  /// Changes the stored pairings.
  func changePairings(_ change: @Sendable (inout PairingFile) -> Void) throws(WireError) {
    try pairingLock.withLock { (_) throws(WireError) in
      var file = try readPairings()
      change(&file)
      try write(file)
    }
  }

  private func readPairings() throws(WireError) -> PairingFile {
    var bytes: [UInt8]?
    do throws(KeyhaulError) { bytes = try claim.pairings() } catch { throw failure(error) }
    defer { bytes?.withUnsafeMutableBytes { wipe($0) } }
    if let bytes, let file = PairingFile(bytes) { return file }
    if bytes != nil { log("its pairings cannot be read; every computer has to pair again") }
    do throws(CertificateError) {
      let file = try PairingFile()
      try? write(file)
      return file
    } catch {
      log("no key can be made: \(error.reason)")
      throw .closed
    }
  }

  private func write(_ file: PairingFile) throws(WireError) {
    var bytes: [UInt8]
    do throws(FormatError) { bytes = try file.encoded() } catch { throw WireError(.closed, error.reason) }
    defer { bytes.withUnsafeMutableBytes { wipe($0) } }
    do throws(KeyhaulError) { try claim.replacePairings(bytes) } catch { throw failure(error) }
  }

  /// Logs an error, and returns the error for the client's connection.
  private func failure(_ error: KeyhaulError) -> WireError {
    log("\(error.summary): \(error.reason)")
    return WireError(.closed, error.summary)
  }

  /// Stores a pairing.
  package func add(_ pairing: Pairing) throws(WireError) { try changePairings { $0.add(pairing) } }

  /// Returns the pairing with a host ID; `nil` if there is none.
  package func pairing(hostID: String) throws(WireError) -> Pairing? {
    try pairingFile().pairings.first { $0.hostID == hostID }
  }

  /// Removes a pairing, and the pair record that the server keeps for the computer. A client without a pair record pairs
  /// again automatically.
  package func forget(hostID: String) throws(WireError) {
    ports.revoke(hostID: hostID)
    try changePairings { file in
      file.pairings.removeAll { $0.hostID == hostID }
      guard let record = file.pairRecord.flatMap({ try? PropertyListFrame.value(of: $0) })?.dictionaryValue,
        record["HostID"]?.stringValue == hostID
      else { return }
      file.pairRecord = nil
    }
  }

  /// Returns the certificate and key that the device presents to a computer.
  package func identity(for pairing: Pairing) throws(WireError) -> TLSIdentity {
    let key = try pairingFile().privateKey
    do throws(TLSError) {
      return try TLSIdentity(certificate: pairing.deviceCertificate, privateKey: key)
    } catch {
      throw WireError(.untrusted, error.reason)
    }
  }

  // MARK: Backups

  /// Whether backups that clients make are encrypted.
  package var isBackupEncrypted: Bool {
    ((try? claim.backupPassword()) ?? nil) != nil
  }

  /// Runs an operation on the device's content, unless another operation is running.
  ///
  /// - Returns: `nil` if another operation is running.
  func runExclusively<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value? {
    let isFree = isBusy.withLock { isBusy in
      defer { isBusy = true }
      return !isBusy
    }
    guard isFree else { return nil }
    defer { isBusy.withLock { $0 = false } }
    return try body()
  }
}
