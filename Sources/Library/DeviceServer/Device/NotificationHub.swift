import Basics

/// The notifications of one device and their observers.
package final class NotificationHub: Sendable {
  /// A connection to the notification proxy.
  package final class Observer: Sendable {
    fileprivate let names = Locked<Set<String>>([])
    fileprivate let relay: @Sendable (String) -> Void

    /// - Parameter relay: Sends a notification to the client.
    package init(relay: @escaping @Sendable (String) -> Void) { self.relay = relay }

    /// The maximum number of names that a client may observe.
    private static let maximumNameCount = 256

    /// Observes a name; does nothing if the client already observes the maximum number of names.
    package func observe(_ name: String) {
      names.withLock { names in
        if names.count < Self.maximumNameCount { names.insert(name) }
      }
    }
  }

  private let observers = Locked<[Observer]>([])

  package init() {}

  package func add(_ observer: Observer) { observers.withLock { $0.append(observer) } }
  package func remove(_ observer: Observer) { observers.withLock { $0.removeAll { $0 === observer } } }

  /// Sends a notification to every observer of its name.
  package func post(_ name: String) {
    let observers = observers.withLock { $0 }
    for observer in observers where observer.names.withLock({ $0.contains(name) }) { observer.relay(name) }
  }
}
