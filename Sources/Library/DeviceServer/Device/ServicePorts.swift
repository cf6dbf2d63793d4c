import Basics

/// The services that a client may start, with their names in lockdown's requests.
package enum ServiceName: String, Sendable, CaseIterable {
  case backup = "com.apple.mobilebackup2"
  case diagnostics = "com.apple.mobile.diagnostics_relay"
  case fileConduit = "com.apple.afc"
  case installationProxy = "com.apple.mobile.installation_proxy"
  case notificationProxy = "com.apple.mobile.notification_proxy"
  case springBoard = "com.apple.springboardservices"
}

/// The port numbers that lockdown has issued, each valid for one connection.
package final class ServicePorts: Sendable {
  /// The service behind a port.
  package struct Reservation: Sendable {
    package let service: ServiceName
    /// The pairing of the session that requested the port. TLS on the port requires one of the pairing's certificates.
    package let pairing: Pairing
    fileprivate let expiration: ContinuousClock.Instant
  }

  private struct State {
    var lastPort = ServicePorts.ports.lowerBound
    var reservations: [Int: Reservation] = [:]
  }

  /// The dynamic ports (RFC 6335).
  private static let ports = 49152...65535
  private static let lifetime = Duration.seconds(60)
  /// The maximum number of unused ports. A client starts about six services, and connects to each immediately.
  private static let maximumCount = 64
  private let state = Locked(State())

  package init() {}

  /// Issues a port for a service.
  ///
  /// - Returns: `nil` if too many issued ports are unused.
  package func issue(_ service: ServiceName, for pairing: Pairing) -> Int? {
    let now = ContinuousClock.now
    return state.withLock { state in
      state.reservations = state.reservations.filter { $0.value.expiration > now }
      guard state.reservations.count < Self.maximumCount else { return nil }
      repeat {
        state.lastPort = state.lastPort == Self.ports.upperBound ? Self.ports.lowerBound : state.lastPort + 1
      } while state.reservations[state.lastPort] != nil
      state.reservations[state.lastPort] = Reservation(
        service: service, pairing: pairing, expiration: now.advanced(by: Self.lifetime))
      return state.lastPort
    }
  }

  /// Claims an issued port for a connection. It cannot be claimed again.
  ///
  /// - Returns: `nil` if the port was not issued, has been used, or has expired.
  package func claim(port: Int) -> Reservation? {
    let reservation = state.withLock { $0.reservations.removeValue(forKey: port) }
    return reservation.flatMap { $0.expiration > .now ? $0 : nil }
  }

  /// Revokes the ports of a pairing that was removed.
  package func revoke(hostID: String) {
    state.withLock { $0.reservations = $0.reservations.filter { $0.value.pairing.hostID != hostID } }
  }
}
