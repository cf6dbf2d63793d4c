import Basics

/// The services that a client may start, by the names that lockdown knows.
package enum ServiceName: String, Sendable, CaseIterable {
  case backup = "com.apple.mobilebackup2"
  case diagnostics = "com.apple.mobile.diagnostics_relay"
  case fileConduit = "com.apple.afc"
  case installationProxy = "com.apple.mobile.installation_proxy"
  case notificationProxy = "com.apple.mobile.notification_proxy"
  case springBoard = "com.apple.springboardservices"
}

/// The port numbers that lockdown has handed out, each good for one connection.
package final class ServicePorts: Sendable {
  /// The service behind a port.
  package struct Reservation: Sendable {
    package let service: ServiceName
    /// The pairing of the session that asked; TLS on the port requires one of its certificates.
    package let pairing: Pairing
    fileprivate let end: ContinuousClock.Instant
  }

  private struct State {
    var next = ServicePorts.ports.lowerBound
    var ports: [Int: Reservation] = [:]
  }

  private static let ports = 49152...65535
  private static let lifetime = Duration.seconds(60)
  /// A client starts about six services, and none is left waiting.
  private static let maximumCount = 64
  private let state = Locked(State())

  package init() {}

  /// Hands out a port.
  ///
  /// - Returns: `nil` if too many wait to be used.
  package func issue(_ service: ServiceName, for pairing: Pairing) -> Int? {
    let now = ContinuousClock.now
    return state.withLock { state in
      state.ports = state.ports.filter { $0.value.end > now }
      guard state.ports.count < Self.maximumCount else { return nil }
      repeat {
        state.next = state.next == Self.ports.upperBound ? Self.ports.lowerBound : state.next + 1
      } while state.ports[state.next] != nil
      state.ports[state.next] = Reservation(service: service, pairing: pairing, end: now.advanced(by: Self.lifetime))
      return state.next
    }
  }

  /// Takes a ticket, which is then used.
  ///
  /// - Returns: `nil` if the port was not handed out, has been used, or has been waiting for too long.
  package func claim(port: Int) -> Reservation? {
    let reservation = state.withLock { $0.ports.removeValue(forKey: port) }
    return reservation.flatMap { $0.end > .now ? $0 : nil }
  }

  /// Withdraws what was handed out for a pairing that has ended.
  package func revoke(hostID: String) {
    state.withLock { $0.ports = $0.ports.filter { $0.value.pairing.hostID != hostID } }
  }
}
