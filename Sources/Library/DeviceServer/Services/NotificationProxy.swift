import Basics
package import KeychainFormats

/// The notification proxy. Clients observe and post notifications, and the device relays the posted notifications.
package struct NotificationProxy {
  /// The name that the device posts after the backup password was set, changed or removed.
  package static let backupDomainChanged = "com.apple.mobile.backup.domain_changed"

  private static let maximumNameByteCount = 256
  private let device: ServedDevice

  package init(_ device: ServedDevice) { self.device = device }

  /// Returns the message that relays a notification.
  package static func relay(_ name: String) -> PropertyDictionary {
    ["Command": .string("RelayNotification"), "Name": .string(name)]
  }

  /// Serves a connection until the client ends it.
  ///
  /// - Throws: The errors of the channel; `.malformed` for bytes that are not property lists.
  package func run(on channel: any ByteChannel) throws(WireError) {
    let observer = NotificationHub.Observer { [weak channel] name in
      guard let bytes = try? PropertyListFrame.bytes(of: .dictionary(Self.relay(name)), as: .xml) else { return }
      try? channel?.write(bytes)
    }
    device.notifications.add(observer)
    defer { device.notifications.remove(observer) }
    let log = { (text: String) in device.log("\(ServiceName.notificationProxy.rawValue): \(text)") }
    try PropertyListServices.run(on: channel, logging: log) { request in answer(to: request, of: observer) }
  }

  /// Carries out a command.
  package func answer(
    to request: PropertyDictionary, of observer: NotificationHub.Observer
  ) -> (answers: [PropertyDictionary], isDone: Bool) {
    let name = request["Name"]?.stringValue.flatMap { $0.utf8.count <= Self.maximumNameByteCount ? $0 : nil }
    switch request["Command"]?.stringValue {
    case "ObserveNotification":
      if let name { observer.observe(name) }
      return ([], false)
    case "PostNotification":
      if let name { device.notifications.post(name) }
      return ([], false)
    case "Shutdown": return ([["Command": .string("ProxyDeath")]], true)
    default: return ([], false)
    }
  }
}
