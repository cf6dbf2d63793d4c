import Basics
import KeyhaulKit

/// A client's conversation with mobilebackup2, the device's backup service.
package struct BackupConversation {
  private let device: ServedDevice
  private let link: DeviceLink

  package init(_ device: ServedDevice, on channel: any ByteChannel) {
    self.device = device
    link = DeviceLink(channel)
  }

  /// Answers requests until the client disconnects.
  ///
  /// - Throws: The error that ends the conversation. An incomplete request changes nothing.
  package func run() throws(WireError) {
    do throws(BackupServiceError) {
      try link.exchangeVersions()
      while let message = try link.receive(within: nil), message.name != "DLMessageDisconnect" {
        guard message.name == "DLMessageProcessMessage", let values = message.elements.first?.dictionaryValue else {
          throw DeviceLink.protocolError("the client sent another message than a request")
        }
        try answer(values)
      }
    } catch {
      switch error {
      case .connection(let error): throw error
      case .failed(let failure): throw WireError(.malformed, failure.reason)
      }
    }
  }

  private func answer(_ values: PropertyDictionary) throws(BackupServiceError) {
    guard values["MessageName"]?.stringValue != "Hello" else { return try exchangeHello(values) }
    do throws(BackupServiceError) {
      guard let request = BackupRequest(values), request.target == device.udid else {
        throw .failed(.other, "Invalid identifier")
      }
      let content = try device.runExclusively { () throws(BackupServiceError) in try perform(request) }
      guard let content else { throw .failed(.other, "Another request is running on the device") }
      try link.respond(with: content)
    } catch {
      guard case .failed(let failure) = error else { throw error }
      let kind = values["MessageName"]?.stringValue.flatMap(BackupRequest.Kind.init(rawValue:))
      device.log("\(kind?.rawValue ?? "an unknown request") failed: \(failure.text)")
      try link.respond(failure: failure)
    }
  }

  private func exchangeHello(_ values: PropertyDictionary) throws(BackupServiceError) {
    let offered = values["SupportedProtocolVersions"]?.arrayValue ?? []
    let common = DeviceLink.protocolVersions.last { offered.contains(.real($0)) }
    guard let common else { return try link.respond(failure: BackupFailure(.other, "No common version")) }
    try link.respond(with: ["ProtocolVersion": .real(common)])
  }

  /// Carries out a request.
  ///
  /// - Returns: The content of the response.
  private func perform(_ request: BackupRequest) throws(BackupServiceError) -> PropertyDictionary {
    let actions = BackupAndRestore(served: device)
    if let kind = request.kind { device.log("\(kind.rawValue) of \(request.source) requested") }
    switch request.kind {
    case .backup: try BackupUpload(device, link, actions).run()
    case .restore: try restore(request, actions)
    case .changePassword: try changePassword(request, actions)
    case .info, .list, .unback, .extract:
      return try ClientBackup(device, link, actions).perform(request)
    case .enableCloudBackup: throw .failed(.other, "A virtual device has no iCloud account")
    case .eraseDevice: throw .failed(.other, "A client cannot erase a virtual device")
    case nil: throw .failed(.other, "Unknown request")
    }
    return [:]
  }

  private func restore(_ request: BackupRequest, _ actions: BackupAndRestore) throws(BackupServiceError) {
    let folder = try StagingFolder(of: device)
    let client = ClientBackup(device, link, actions)
    let password = try request.password()
    let path = try client.fetch(request.source, into: folder, hasPassword: password != nil, withKeychain: true)
    let backup = try actions.open(path, password: password)
    // All bytes have been received. The restore is one transaction.
    try actions.restore(backup)
    // `password` is not `nil` here, because the encrypted backup was opened with it.
    if backup.archive.isEncrypted { try actions.replaceBackupPassword(password) }
  }

  private func changePassword(_ request: BackupRequest, _ actions: BackupAndRestore) throws(BackupServiceError) {
    let storedPassword = try actions.backupPassword()
    guard Self.areEqual(storedPassword, try request.oldPassword()) else {
      throw .failed(.wrongPassword, BackupFailure.wrongPassword)
    }
    let hadPassword = storedPassword != nil
    let newPassword = try request.newPassword()
    for name in ["Snapshot/Manifest.plist", "Manifest.plist"] {
      try changePassword(ofManifest: "\(device.udid)/\(name)", request, actions)
    }
    let hasPassword = newPassword != nil
    try actions.replaceBackupPassword(newPassword)
    device.log(
      hasPassword ? (hadPassword ? "backup password changed" : "backup password set") : "backup password removed")
    device.notifications.post(NotificationProxy.backupDomainChanged)
  }

  /// Changes the password of a manifest in the client's folder, if there is one.
  ///
  /// If the manifest cannot be changed or uploaded, the existing backup keeps its password, but the device's password for
  /// backups is changed anyway. If the manifest cannot be downloaded, or the connection fails, the request ends and the
  /// device's password stays.
  private func changePassword(
    ofManifest path: String, _ request: BackupRequest, _ actions: BackupAndRestore
  ) throws(BackupServiceError) {
    let manifest = try link.downloadBytes(path, atMost: ClientBackup.maximumPropertyListByteCount)
    guard let manifest, !manifest.isEmpty, let oldPassword = try request.oldPassword(),
      let newPassword = try request.newPassword()
    else { return }
    do throws(BackupServiceError) {
      guard let changed = try actions.rewrapped(manifest: manifest, from: oldPassword, to: newPassword) else { return }
      try link.upload([.init(changed, displayName: "/.ba/Manifest.plist", to: path)], progress: 100)
      device.log("the existing backup has the new password")
    } catch {
      guard case .failed(let failure) = error else { throw error }
      device.log("the existing backup keeps its password: \(failure.reason)")
    }
  }

  /// Returns whether both passwords are equal, or neither exists.
  private static func areEqual(_ left: borrowing Secret?, _ right: borrowing Secret?) -> Bool {
    switch left {
    case .none:
      switch right {
      case .none: true
      case .some: false
      }
    case .some(let left):
      switch right {
      case .none: false
      case .some(let right): left.matches(right)
      }
    }
  }
}
