import Foundation
import KeychainServices
import Synchronization

/// Observers of notifications, removed when the last reference is gone.
final class Announcements: Sendable {
  private let center: NotificationCenter
  private nonisolated(unsafe) var tokens: [any NSObjectProtocol] = []
  private let lock = NSLock()

  init(_ center: NotificationCenter) { self.center = center }

  func observe(_ names: [Notification.Name], _ action: @escaping @Sendable () -> Void) {
    let new = names.map { name in center.addObserver(forName: name, object: nil, queue: nil) { _ in action() } }
    lock.withLock { tokens += new }
  }

  deinit {
    for token in tokens { center.removeObserver(token) }
  }
}
